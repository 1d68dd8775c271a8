/* mask_all.c - every signal blocked by raw calls and in handlers' masks; system calls and faults still work. */
#include "show.h"
static volatile int ran;
static void handler(int sig, siginfo_t *info, void *context) {
  sigset_t now;
  ran++;
  sigprocmask(SIG_BLOCK, NULL, &now);
  printf("handler %d, blocked %d %d %d\n", sig, sigismember(&now, SIGSYS), sigismember(&now, SIGSEGV), sigismember(&now, SIGKILL));
  ((ucontext_t *)context)->uc_sigmask.__val[0] = ~0ul;
}
int main(void) {
  sigset_t ignore;
  sigemptyset(&ignore);
  unsigned long all = ~0ul, old = 0, none = 0;
  SHOW(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, 8));
  SHOW(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &old, 8));
  printf("%lx\n", old);
  SHOW(getppid() > 0);
  SHOW(fork() ? wait(NULL) > 0 : (_exit(0), 0));
  kill(getpid(), SIGUSR1);
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  memset(&action.sa_mask, 255, sizeof action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  printf("%d\n", ran);
  SHOW(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8));
  printf("%d\n", ran);
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &old, 8);
  printf("%lx\n", old);
  unsigned long pending = 0;
  kill(getpid(), SIGTERM);
  sigaddset(&ignore, SIGCHLD);
  sigtimedwait(&ignore, NULL, &(struct timespec){0});
  SHOW(syscall(SYS_rt_sigpending, &pending, 8));
  printf("%lx\n", pending);
  SHOW(syscall(SYS_rt_sigprocmask, 7, &none, NULL, 8));
  SHOW(syscall(SYS_rt_sigprocmask, 0, &none, NULL, 16));
  return 0;
}
