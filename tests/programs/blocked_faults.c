/* blocked_faults.c - SIGSEGV and the like sent while blocked wait: seen by sigpending, taken by sigwaitinfo, or delivered later. */
#include "show.h"
static void handler(int sig, siginfo_t *info, void *context) { printf("handler: %d code %d\n", sig, info->si_code); }
int main(void) {
  static const int kinds[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS, SIGSTKFLT, SIGUSR1};
  sigset_t all, before, pending;
  setbuf(stdout, NULL);
  sigfillset(&all);
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    siginfo_t info;
    handle(kinds[i], handler, 0);
    sigprocmask(SIG_SETMASK, &all, &before);
    raise(kinds[i]);
    kill(getpid(), kinds[i]);
    sigpending(&pending);
    printf("%d pending: %d\n", kinds[i], sigismember(&pending, kinds[i]));
    SHOW(sigwaitinfo(&all, &info));
    printf("%d\n", info.si_code == SI_TKILL || info.si_code == SI_USER);
    while (sigtimedwait(&all, &info, &(struct timespec){0, 0}) > 0) {
    }
    raise(kinds[i]);
    puts("still blocked");
    sigprocmask(SIG_SETMASK, &before, NULL);
    raise(kinds[i]);
  }
  signal(SIGSEGV, SIG_DFL);
  sigprocmask(SIG_SETMASK, &all, NULL);
  raise(SIGSEGV);
  puts("alive");
  sigprocmask(SIG_SETMASK, &before, NULL);
  puts("not reached");
  return 0;
}
