/* clone without a C library around it: shared memory without being a thread, its own signal, CLONE_PARENT_SETTID and CLEARTID. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>
static volatile int value;
static int child(void *arg) {
  value += (int)(long)arg;
  syscall(SYS_exit, 3);
  return 0;
}
static volatile pid_t ptid, ctid = -1;
int main(void) {
  char *stack = malloc(65536);
  int st;
  pid_t p = clone(child, stack + 65536, CLONE_VM | SIGCHLD, (void *)5);
  waitpid(p, &st, 0);
  printf("vm %d %d\n", value, WEXITSTATUS(st));
  signal(SIGUSR1, SIG_IGN);
  p = clone(child, stack + 65536, CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGUSR1, (void *)7, &ptid, NULL, &ctid);
  int same = ptid == p;
  waitpid(p, &st, __WALL);
  printf("settid %d value %d cleared %d\n", same, value, ctid == 0);
  p = clone(child, stack + 65536, SIGCHLD, (void *)9);
  waitpid(p, &st, 0);
  printf("copy %d %d\n", value, WEXITSTATUS(st));
  long r = syscall(SYS_clone3, NULL, 0);
  printf("clone3 %d\n", r < 0 && (errno == ENOSYS || errno == EINVAL));
}
