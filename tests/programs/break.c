/* break.c - brk and sbrk: grow, write, shrink, grow again (zeros), fail. */
#include "show.h"
int main(void) {
  setbuf(stdout, NULL);
  char *start = sbrk(0);
  SHOW(brk(start + 300000));
  memset(start, 7, 300000);
  SHOW((char *)sbrk(0) - start);
  SHOW(brk(start + 5000));
  SHOW(brk(start + 300000));
  printf("%d %d\n", start[4999], start[299999]);
  SHOW(brk((void *)0x7f0000000000));
  SHOW(syscall(SYS_brk, 0) == (long)(start + 300000));
  SHOW(syscall(SYS_brk, 8) == (long)(start + 300000));
  pid_t child = fork();
  if (!child) {
    sbrk(1 << 20);
    start[400000] = 1;
    _exit(start[4999]);
  }
  int status;
  wait(&status);
  show_status("child", status);
  SHOW((char *)sbrk(0) - start);
  return 0;
}
