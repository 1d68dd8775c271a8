/* transfers_out.c - sendfile, splice, copy_file_range and vmsplice to standard output, many times their size in one go. */
#include "show.h"
#include <sys/sendfile.h>
#include <sys/uio.h>
int main(void) {
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600), p[2], moved = 0;
  for (int i = 0; i < 20000; i++) dprintf(fd, "line %d\n", i);
  off_t at = 7, end = lseek(fd, 0, SEEK_END);
  NEED(!pipe(p));
  for (ssize_t n; at < end && (n = sendfile(1, fd, &at, end)) > 0;) moved++;
  fprintf(stderr, "sendfile %ld\n", (long)at);
  lseek(fd, end - 50, SEEK_SET);
  fprintf(stderr, "%zd\n", sendfile(1, fd, NULL, 1000));
  fprintf(stderr, "%ld\n", (long)lseek(fd, 0, SEEK_CUR) - end);
  fprintf(stderr, "%zd\n", sendfile(1, fd, NULL, 1000));
  pid_t child = fork();
  if (!child) {
    for (int i = 0; i < 9000; i++) dprintf(p[1], "through a pipe %d\n", i);
    _exit(0);
  }
  close(p[1]);
  long spliced = 0;
  for (ssize_t n; (n = splice(p[0], NULL, 1, NULL, 1 << 20, 0)) > 0;) spliced += n;
  if (!spliced)
    for (char c[4096]; (moved = read(p[0], c, sizeof c)) > 0;) spliced += write(1, c, moved);
  fprintf(stderr, "splice %ld\n", spliced);
  struct iovec v[2] = {{"from ", 5}, {"memory\n", 7}};
  if (vmsplice(1, v, 2, 0) < 0) writev(1, v, 2);
  ssize_t bad = sendfile(1, 99, NULL, 10);
  fprintf(stderr, "%zd %s\n", bad, strerrorname_np(errno));
  wait(NULL);
  return 0;
}
