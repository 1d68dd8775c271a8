/* vectors.c - readv, writev, preadv2, pwritev2, with empty and bad parts, to standard output too. */
#include "show.h"
#include <sys/uio.h>
int main(void) {
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600);
  struct iovec v[4] = {{"alpha ", 6}, {NULL, 0}, {"beta ", 5}, {"gamma\n", 6}};
  SHOW(writev(1, v, 4));
  SHOW(writev(fd, v, 4));
  SHOW(pwritev2(fd, v, 2, 20, 0));
  char a[4], b[8], c[16];
  struct iovec r[3] = {{a, 4}, {b, 8}, {c, 16}};
  memset(c, '-', sizeof c);
  SHOW(preadv(fd, r, 3, 0));
  printf("%.4s|%.8s|%.5s\n", a, b, c);
  lseek(fd, 6, SEEK_SET);
  SHOW(readv(fd, r, 2));
  printf("%.4s|%.8s\n", a, b);
  SHOW(preadv2(fd, r, 2, -1, 0));
  SHOW(preadv2(fd, r, 2, 0, 0x80));
  r[1].iov_base = (void *)8;
  SHOW(preadv(fd, r, 3, 0));
  SHOW(readv(fd, r, -1));
  SHOW(writev(fd, r, 2000));
  SHOW(readv(fd, (struct iovec *)8, 2));
  return 0;
}
