/* pipes.c - pipes: order, end of file, EPIPE, packet mode, non-blocking, sizes, fifos. */
#include "show.h"
#include <sys/ioctl.h>
int main(void) {
  int fds[2], n;
  char text[64];
  signal(SIGPIPE, SIG_IGN);
  NEED(!pipe(fds));
  SHOW(write(fds[1], "abcdef", 6));
  SHOW(ioctl(fds[0], FIONREAD, &n));
  printf("%d\n", n);
  SHOW(read(fds[0], text, 4));
  close(fds[1]);
  SHOW(read(fds[0], text, sizeof text));
  SHOW(read(fds[0], text, sizeof text));
  close(fds[0]);
  NEED(!pipe2(fds, O_NONBLOCK | O_DIRECT | O_CLOEXEC));
  SHOW(read(fds[0], text, 1));
  write(fds[1], "one", 3);
  write(fds[1], "two", 3);
  SHOW(read(fds[0], text, sizeof text));
  SHOW(fcntl(fds[1], F_SETPIPE_SZ, 4096));
  SHOW(fcntl(fds[1], F_GETPIPE_SZ));
  close(fds[0]);
  SHOW(write(fds[1], "x", 1));
  SHOW(mkfifo("fifo", 0600));
  pid_t child = fork();
  if (!child) {
    int fd = open("fifo", O_WRONLY);
    write(fd, "through the fifo", 16);
    _exit(0);
  }
  int fd = open("fifo", O_RDONLY);
  for (ssize_t got; (got = read(fd, text, sizeof text)) > 0;) printf("%.*s\n", (int)got, text);
  wait(NULL);
  SHOW(open("fifo", O_WRONLY | O_NONBLOCK));
  return 0;
}
