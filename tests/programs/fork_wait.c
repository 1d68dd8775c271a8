/* fork_wait.c - fork and every way to wait: waitpid, WNOHANG, waitid, wait4 with usage, ECHILD. */
#include "show.h"
#include <sys/resource.h>
int main(void) {
  int status, fds[2];
  setbuf(stdout, NULL);
  SHOW(waitpid(-1, &status, 0));
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (!child) {
      printf("child %d of %d\n", i, getppid() > 1);
      _exit(10 + i);
    }
    NEED(waitpid(child, &status, 0) == child);
    show_status("child", status);
  }
  NEED(!pipe(fds));
  pid_t child = fork();
  if (!child) {
    char c;
    close(fds[1]);
    read(fds[0], &c, 1);
    _exit(7);
  }
  close(fds[0]);
  SHOW(waitpid(child, &status, WNOHANG));
  close(fds[1]);
  siginfo_t info = {0};
  SHOW(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
  printf("code %d status %d same %d\n", info.si_code, info.si_status, info.si_pid == child);
  struct rusage usage;
  printf("%d\n", wait4(child, &status, 0, &usage) == child && usage.ru_maxrss > 0);
  show_status("child", status);
  if (!(child = fork())) kill(getpid(), SIGKILL);
  waitpid(child, &status, 0);
  show_status("killed", status);
  if (!(child = fork())) {
    raise(SIGSTOP);
    for (;;) pause();
  }
  waitpid(child, &status, WUNTRACED);
  show_status("stopper", status);
  kill(child, SIGCONT);
  waitpid(child, &status, WCONTINUED);
  show_status("stopper", status);
  kill(child, SIGTERM);
  waitpid(child, &status, 0);
  show_status("stopper", status);
  SHOW(wait(NULL));
  return 5;
}
