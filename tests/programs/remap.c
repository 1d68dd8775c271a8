/* remap.c - mremap: shrink, grow in place, grow by moving, to a fixed place, DONTUNMAP, of a file mapping. */
#include "show.h"
int main(void) {
  char *a = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 65536; i++) a[i] = i >> 8;
  SHOW(mremap(a, 65536, 32768, 0) == a);
  SHOW(mremap(a, 32768, 65536, 0) == a);
  printf("%d %d\n", a[32767], a[32768]);
  char *b = mremap(a, 65536, 1 << 24, MREMAP_MAYMOVE);
  printf("moved %d: %d %d\n", b != MAP_FAILED, b[32767], b[(1 << 24) - 1]);
  char *to = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SHOW(mremap(b, 65536, 65536, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
  printf("%d\n", to[20000]);
  char *copy = mremap(to, 65536, 65536, MREMAP_MAYMOVE | 4);
  printf("%d %d\n", copy != MAP_FAILED ? copy[20000] : -1, copy != MAP_FAILED ? to[20000] : -1);
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600);
  for (int i = 0; i < 4096; i++) write(fd, "abcd", 4);
  char *f = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  f = mremap(f, 8192, 16384, MREMAP_MAYMOVE);
  printf("%c%c\n", f[12289], f[16383]);
  pwrite(fd, "ZZ", 2, 12289);
  printf("%c%c\n", f[12289], f[12291]);
  SHOW((long)mremap((char *)8192, 4096, 8192, 0));
  SHOW((long)mremap(f + 1, 4096, 8192, 0));
  char *twin = mremap(f, 0, 8192, MREMAP_MAYMOVE);
  twin[1] = '!';
  printf("%c\n", f[1]);
  char *part = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SHOW(mremap(f + 4096, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, part) == part);
  pwrite(fd, "first", 5, 0);
  pwrite(fd, "second", 6, 4096);
  pwrite(fd, "third", 5, 8192);
  printf("%.5s %.5s %.6s %.6s %.5s\n", f, twin, part, twin + 4096, f + 8192);
  return 0;
}
