/* big_transfers.c - 64 MB read and written in one call, through a file, a pipe and a vector; checksums agree. */
#include "show.h"
#include <sys/uio.h>
#define SIZE (64ul << 20)
static unsigned sum(const unsigned char *at, size_t n) {
  unsigned s = 1;
  for (size_t i = 0; i < n; i += 61) s = s * 31 + at[i];
  return s;
}
int main(void) {
  unsigned char *a = malloc(SIZE), *b = calloc(1, SIZE);
  for (size_t i = 0; i < SIZE; i += 512) a[i] = i * 2654435761u >> 13;
  int fd = open("big", O_CREAT | O_RDWR | O_TRUNC, 0600), p[2];
  SHOW(write(fd, a, SIZE));
  SHOW(pread(fd, b, SIZE, 0));
  printf("%u %u\n", sum(a, SIZE), sum(b, SIZE));
  memset(b, 0, SIZE);
  struct iovec v[2] = {{b, SIZE / 2}, {b + SIZE / 2, SIZE / 2}};
  SHOW(preadv(fd, v, 2, 0));
  printf("%u\n", sum(b, SIZE));
  NEED(!pipe(p));
  pid_t child = fork();
  if (!child) {
    close(p[0]);
    size_t left = SIZE / 4;
    while (left) left -= write(p[1], a + SIZE / 4 - left, left);
    _exit(0);
  }
  close(p[1]);
  size_t have = 0;
  for (ssize_t n; (n = read(p[0], b + have, SIZE - have)) > 0;) have += n;
  printf("%zu %u %u\n", have, sum(b, have), sum(a, SIZE / 4));
  unlink("big");
  return 0;
}
