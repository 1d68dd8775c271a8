/* clone_variants.c - clone by hand: shared memory without vfork, own stack, shared descriptors, tids written. */
#include "show.h"
static char stack[4][65536] __attribute__((aligned(16)));
static volatile int shared;
static pid_t tid[3];
static int child(void *number) {
  shared += (int)(long)number;
  if ((long)number == 2) close(9);
  if ((long)number == 3) chdir("/");
  return 10 + (int)(long)number;
}
int main(void) {
  int status;
  setbuf(stdout, NULL);
  pid_t pid = clone(child, stack[0] + 65536, CLONE_VM | SIGCHLD, (void *)1);
  NEED(waitpid(pid, &status, 0) == pid);
  show_status("CLONE_VM", status);
  printf("shared %d\n", shared);
  dup2(1, 9);
  pid = clone(child, stack[1] + 65536, CLONE_FILES | SIGCHLD, (void *)2);
  waitpid(pid, &status, 0);
  show_status("CLONE_FILES", status);
  printf("shared %d\n", shared);
  SHOW(fcntl(9, F_GETFD));
  pid = clone(child, stack[2] + 65536, CLONE_FS | SIGCHLD, (void *)3);
  waitpid(pid, &status, 0);
  char here[100];
  printf("%s\n", getcwd(here, sizeof here));
  pid = syscall(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, 0, &tid[0], &tid[1], 0);
  if (!pid) _exit(tid[1] == getpid() ? 21 : 22);
  waitpid(pid, &status, 0);
  show_status("tids", status);
  printf("%d %d\n", tid[0] == pid, tid[1]);
  pid = clone(child, stack[3] + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)4);
  printf("shared %d\n", shared);
  waitpid(pid, &status, 0);
  show_status("CLONE_VFORK", status);
  pid = clone(child, stack[3] + 65536, 0, (void *)5);
  SHOW(waitpid(pid, &status, 0));
  printf("%d\n", waitpid(pid, &status, __WALL) == pid);
  int pidfd = -1;
  pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &pidfd, 0, 0);
  if (!pid) _exit(30);
  struct pollfd p = {pidfd, POLLIN, 0};
  SHOW(poll(&p, 1, -1));
  waitpid(pid, &status, 0);
  show_status("CLONE_PIDFD", status);
  SHOW(syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0));
  return 0;
}
