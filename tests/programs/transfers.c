/* transfers.c - sendfile, splice, tee, vmsplice and copy_file_range, between files, pipes and standard output. */
#include "show.h"
#include <sys/sendfile.h>
#include <sys/uio.h>
static void copy_by_hand(int from, size_t n) {
  char text[256];
  while (n > 0) {
    ssize_t got = read(from, text, n < sizeof text ? n : sizeof text);
    if (got <= 0) break;
    write(1, text, got);
    n -= got;
  }
}
int main(void) {
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600), out = open("out", O_CREAT | O_RDWR | O_TRUNC, 0600), p[2], q[2];
  char text[64];
  write(fd, "0123456789 the quick brown fox\n", 31);
  off_t at = 11;
  SHOW(sendfile(out, fd, &at, 100));
  printf("%ld\n", (long)at);
  NEED(!pipe(p) && !pipe(q));
  loff_t from = 0;
  SHOW(splice(fd, &from, p[1], NULL, 10, 0));
  SHOW(tee(p[0], q[1], 10, 0));
  SHOW(splice(p[0], NULL, out, NULL, 10, 0));
  SHOW(read(q[0], text, sizeof text));
  printf("%.10s\n", text);
  struct iovec v = {"vmspliced", 9};
  SHOW(vmsplice(p[1], &v, 1, 0));
  SHOW(read(p[0], text, sizeof text));
  printf("%.9s\n", text);
  loff_t a = 0, b = 40;
  SHOW(copy_file_range(fd, &a, out, &b, 10, 0));
  ssize_t n = pread(out, text, sizeof text, 0);
  for (int i = 0; i < n; i++) putchar(text[i] ? text[i] : '.');
  putchar('\n');
  fflush(stdout);
  at = 11;
  if (sendfile(1, fd, &at, 100) < 0) {
    lseek(fd, 11, SEEK_SET);
    copy_by_hand(fd, 100);
  }
  write(p[1], "piped to standard output\n", 25);
  if (splice(p[0], NULL, 1, NULL, 25, 0) < 0) copy_by_hand(p[0], 25);
  SHOW(splice(fd, NULL, out, NULL, 10, 0));
  SHOW(sendfile(99, fd, NULL, 10));
  return 0;
}
