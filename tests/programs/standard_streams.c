/* standard_streams.c - reads standard input to its end, says what the three streams are, writes to both outputs in turn. */
#include "show.h"
int main(void) {
  char text[4096];
  ssize_t n, all = 0;
  for (int fd = 0; fd < 3; fd++) {
    struct stat s;
    dprintf(1, "%d: %s\n", fd, fstat(fd, &s) ? "closed" : S_ISREG(s.st_mode) ? "file" : S_ISFIFO(s.st_mode) ? "pipe" : S_ISCHR(s.st_mode) ? "device" : "other");
  }
  while ((n = read(0, text, sizeof text)) > 0) all += n;
  dprintf(1, "%zd bytes, then %zd %s\n", all, n, n < 0 ? strerrorname_np(errno) : "");
  for (int i = 0; i < 20; i++) dprintf(1 + i % 2, "line %d\n", i);
  dup2(1, 7);
  dup2(2, 1);
  dprintf(1, "to stderr by 1\n");
  dprintf(7, "to stdout by 7\n");
  int fd = open("/dev/stdout", O_WRONLY | O_APPEND);
  if (fd >= 0) dprintf(fd, "to stderr by /dev/stdout\n");
  return 3;
}
