/* exec_fails.c - execs that fail for every reason, after which the program goes on. */
#include "show.h"
int main(void) {
  char *argv[] = {"x", NULL}, *none[] = {NULL};
  static char big[256 * 1024];
  memset(big, 'a', sizeof big - 1);
  char *huge[] = {"x", big, NULL};
  close(open("data", O_CREAT | O_WRONLY, 0755));
  int fd = open("broken", O_CREAT | O_WRONLY, 0755);
  write(fd, "\177ELF\2\1\1 this is not a program", 32);
  SHOW(execv("broken", argv));
  close(fd);
  symlink("loop", "loop");
  SHOW(execve("/no/such", argv, none));
  SHOW(execve("/etc", argv, none));
  SHOW(execve("/etc/passwd", argv, none));
  SHOW(execve("/etc/passwd/x", argv, none));
  SHOW(execve("data", argv, none));
  SHOW(execve("broken", argv, none));
  SHOW(execve("loop", argv, none));
  SHOW(execve((char *)8, argv, none));
  SHOW(execve("/bin/true", (char **)8, none));
  SHOW(execve("/bin/true", huge, none));
  SHOW(syscall(SYS_execveat, -1, "x", argv, none, 0));
  SHOW(syscall(SYS_execveat, AT_FDCWD, "", argv, none, AT_EMPTY_PATH));
  puts("still here");
  fflush(stdout);
  execl("/bin/echo", "echo", "at last", NULL);
  return 1;
}
