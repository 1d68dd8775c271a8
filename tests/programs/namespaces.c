/* namespaces.c - unshare and setns: user, mount, uts, pid; a child that is process 1 of its namespace. */
#include "show.h"
#include <sys/mount.h>
int main(void) {
  int status, p[2];
  char name[65] = "";
  setbuf(stdout, NULL);
  NEED(!pipe(p));
  if (unshare(CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWPID)) {
    puts("not permitted");
    return 0;
  }
  SHOW(sethostname("inside", 6));
  gethostname(name, sizeof name);
  puts(name);
  pid_t child = fork();
  if (!child) {
    printf("I am %d, my parent is %d\n", getpid(), getppid());
    pid_t inner = fork();
    if (!inner) {
      printf("grandchild %d of %d\n", getpid(), getppid());
      _exit(6);
    }
    waitpid(inner, &status, 0);
    printf("inner %d\n", inner);
    show_status("grandchild", status);
    if (!fork()) execl("/bin/sh", "sh", "-c", "echo shell is $$", NULL), _exit(1);
    wait(NULL);
    _exit(7);
  }
  waitpid(child, &status, 0);
  show_status("child", status);
  int fd = open("/proc/self/ns/uts", O_RDONLY);
  SHOW(setns(fd, CLONE_NEWUTS));
  SHOW(setns(99, 0));
  return 0;
}
