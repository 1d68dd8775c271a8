/* suspend.c - sigsuspend, ppoll, pselect and epoll_pwait let a blocked signal in for their own time and restore the mask. */
#include "show.h"
#include <sys/epoll.h>
#include <sys/select.h>
static void handler(int sig, siginfo_t *info, void *context) {
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  printf("signal %d; USR1 %d USR2 %d; saved USR1 %d\n", sig, sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2),
         sigismember(&((ucontext_t *)context)->uc_sigmask, SIGUSR1));
}
static void after(void) {
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  printf("after: USR1 %d USR2 %d\n", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));
}
int main(void) {
  sigset_t block, none, only2;
  sigemptyset(&none);
  sigemptyset(&block);
  sigaddset(&block, SIGUSR1);
  sigaddset(&block, SIGUSR2);
  only2 = none;
  sigaddset(&only2, SIGUSR2);
  sigprocmask(SIG_BLOCK, &block, NULL);
  handle(SIGUSR1, handler, 0);
  handle(SIGUSR2, handler, 0);
  kill(getpid(), SIGUSR1);
  SHOW(sigsuspend(&none));
  after();
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGUSR2);
  SHOW(sigsuspend(&only2));
  after();
  SHOW(ppoll(NULL, 0, NULL, &none));
  after();
  kill(getpid(), SIGUSR1);
  SHOW(pselect(0, NULL, NULL, NULL, NULL, &none));
  after();
  int ep = epoll_create1(0);
  struct epoll_event event;
  kill(getpid(), SIGUSR2);
  SHOW(epoll_pwait(ep, &event, 1, -1, &none));
  after();
  pid_t me = getpid(), child = fork();
  if (!child) {
    await_sleep(me);
    kill(me, SIGUSR2);
    _exit(0);
  }
  SHOW(sigsuspend(&none));
  after();
  waitpid(child, NULL, 0);
  struct timespec zero = {0, 0};
  SHOW(ppoll(NULL, 0, &zero, &none));
  sigset_t pending;
  sigpending(&pending);
  printf("pending %d\n", sigismember(&pending, SIGUSR1));
  return 0;
}
