/* child_signals.c - SIGCHLD: its siginfo, SIG_IGN and SA_NOCLDWAIT reap by themselves, SA_NOCLDSTOP is silent. */
#include "show.h"
static volatile int count;
static siginfo_t last;
static void handler(int sig, siginfo_t *info, void *context) {
  count++;
  last = *info;
}
static pid_t child(int status) {
  pid_t pid = fork();
  if (!pid) {
    if (status < 0) raise(-status);
    _exit(status < 0 ? 0 : status);
  }
  return pid;
}
int main(void) {
  int status;
  sigset_t set, none;
  sigemptyset(&none);
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  handle(SIGCHLD, handler, 0);
  pid_t pid = child(12);
  sigsuspend(&none);
  printf("code %d status %d same %d\n", last.si_code, last.si_status, last.si_pid == pid);
  SHOW(waitpid(pid, &status, 0) == pid);
  pid = child(-SIGKILL);
  sigsuspend(&none);
  printf("code %d status %d\n", last.si_code, last.si_status);
  waitpid(pid, &status, 0);
  count = 0;
  handle(SIGCHLD, handler, SA_NOCLDSTOP);
  pid = child(-SIGSTOP);
  waitpid(pid, &status, WUNTRACED);
  show_status("child", status);
  sigset_t pending;
  sigpending(&pending);
  printf("pending %d count %d\n", sigismember(&pending, SIGCHLD), count);
  kill(pid, SIGKILL);
  sigsuspend(&none);
  waitpid(pid, &status, 0);
  handle(SIGCHLD, handler, SA_NOCLDWAIT);
  pid = child(3);
  SHOW(waitpid(pid, &status, 0));
  signal(SIGCHLD, SIG_IGN);
  pid = child(4);
  SHOW(waitpid(-1, &status, 0));
  signal(SIGCHLD, SIG_DFL);
  pid = child(5);
  SHOW(waitpid(pid, &status, 0) == pid);
  return 0;
}
