/* vfork_exec.c - vfork: the child writes its parent's memory, fails to exec, execs, or dies of a signal. */
#include "show.h"
int main(int argc, char **argv) {
  volatile int shared = 1;
  int status;
  setbuf(stdout, NULL);
  if (argc > 1) {
    printf("executed %s\n", argv[1]);
    return atoi(argv[1]);
  }
  pid_t child = vfork();
  if (!child) {
    shared = 2;
    execl("/no/such/program", "x", NULL);
    shared = errno;
    _exit(4);
  }
  printf("%s\n", strerrorname_np(shared));
  waitpid(child, &status, 0);
  show_status("failed exec", status);
  child = vfork();
  if (!child) {
    execl("/proc/self/exe", "again", "6", NULL);
    _exit(9);
  }
  waitpid(child, &status, 0);
  show_status("exec", status);
  child = vfork();
  if (!child) {
    shared = 33;
    kill(getpid(), SIGKILL);
  }
  printf("%d\n", shared);
  waitpid(child, &status, 0);
  show_status("signal", status);
  for (int i = 0; i < 100; i++) {
    if (!(child = vfork())) shared++, _exit(i);
    NEED(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == i);
  }
  printf("%d\n", shared);
  return 0;
}
