/* unknown.c - calls that do not exist, that rr-py refuses by design, and ioctls nobody knows: errors, and the program goes on. */
#include "show.h"
#include <sys/ioctl.h>
int main(void) {
  char area[256];
  SHOW(syscall(999, 1, 2, 3));
  SHOW(syscall(-1));
  SHOW(syscall(0x40000000 | SYS_getpid));
  SHOW(syscall(SYS_io_uring_setup, 8, area) < 0);
  SHOW(syscall(SYS_io_setup, 8, area) < 0);
  SHOW(syscall(SYS_rseq, area, 32, 0, 0) < 0);
  SHOW(ioctl(0, 0xdeadbeef, area) < 0);
  SHOW(ioctl(1, _IOR('?', 77, int), area) < 0);
  SHOW(syscall(SYS_getppid) > 0);
  return 0;
}
