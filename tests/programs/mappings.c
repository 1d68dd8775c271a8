/* mappings.c - mmap of every kind: private, shared, fixed over another, NOREPLACE, GROWSDOWN, mprotect, holes, errors. */
#include "show.h"
int main(void) {
  char *a = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(a, 1, 65536);
  SHOW((char *)mmap(a + 8192, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) - a);
  printf("%d %d %d\n", a[8191], a[8192], a[8192 + 4096]);
  SHOW((long)mmap(a, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
  SHOW(munmap(a + 16384, 4096));
  SHOW((char *)mmap(a + 16384, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) - a);
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600);
  for (int i = 0; i < 20000; i++) write(fd, "0123456789", 10);
  char *p = mmap(NULL, 200000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  char *q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 8192);
  p[8192] = 'X';
  printf("%c %c %c\n", p[8192], q[0], p[199999]);
  SHOW(mprotect(p, 4096, PROT_NONE));
  SHOW(mprotect(p + 100, 4096, PROT_NONE));
  SHOW(mprotect(a + 65536 * 1024ul * 1024, 4096, PROT_READ));
  SHOW((long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  SHOW((long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 99, 0));
  SHOW((long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 100));
  SHOW((long)mmap(NULL, 1ul << 60, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  SHOW(munmap(a + 1, 4096));
  char *down = mmap(NULL, 4096 * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(down, 4096 * 63);
  char *grows = mmap(down + 4096 * 63, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
  grows[0] = 1;
  grows[-1] = 2;
  grows[-4097] = 3;
  printf("%d %d\n", grows[-1], grows[-4097]);
  char *huge = mmap(NULL, 1ul << 36, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NEED(huge != MAP_FAILED);
  mprotect(huge + (1ul << 35), 4096, PROT_READ | PROT_WRITE);
  huge[1ul << 35] = 9;
  printf("%d\n", huge[1ul << 35]);
  char *s = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!fork()) {
    s[5000] = 42;
    _exit(0);
  }
  wait(NULL);
  printf("%d\n", s[5000]);
  unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};
  unsigned char *x = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(x, code, sizeof code);
  printf("%d\n", ((int (*)(void))x)());
  SHOW(mlock(a, 4096) == 0 || errno == EPERM || errno == ENOMEM);
  unsigned char core[16];
  SHOW(mincore(a, 65536, core));
  return 0;
}
