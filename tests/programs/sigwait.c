/* sigwait.c - signals taken synchronously: sigwaitinfo, sigtimedwait with and without a timeout, sigwait. */
#include "show.h"
int main(void) {
  sigset_t set;
  siginfo_t info;
  int sig;
  struct timespec zero = {0, 0}, little = {0, 1000000};
  sigfillset(&set);
  sigprocmask(SIG_BLOCK, &set, NULL);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGRTMIN);
  SHOW(sigtimedwait(&set, &info, &zero));
  SHOW(sigtimedwait(&set, &info, &little));
  sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 5});
  sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 6});
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGUSR1);
  for (int i = 0; i < 3; i++) {
    SHOW(sigwaitinfo(&set, &info));
    printf("%d code %d value %d\n", info.si_signo, info.si_code, info.si_signo == SIGUSR1 ? 0 : info.si_value.sival_int);
  }
  SHOW(sigtimedwait(&set, &info, &zero));
  pid_t me = getpid(), child = fork();
  if (!child) {
    await_sleep(me);
    kill(me, SIGUSR1);
    _exit(0);
  }
  SHOW(sigwait(&set, &sig));
  printf("%d\n", sig);
  wait(NULL);
  return 0;
}
