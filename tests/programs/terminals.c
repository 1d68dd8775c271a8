/* terminals.c - a pseudo-terminal: window size, modes, echo, line discipline, the hang-up when its master closes. */
#include "show.h"
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
int main(void) {
  int master, slave;
  char text[128];
  struct winsize size = {33, 77};
  struct termios t;
  NEED(!openpty(&master, &slave, NULL, NULL, &size));
  SHOW(isatty(slave));
  SHOW(ioctl(slave, TIOCGWINSZ, &size));
  printf("%d %d\n", size.ws_row, size.ws_col);
  write(master, "typed\n", 6);
  SHOW(read(slave, text, sizeof text));
  SHOW(read(master, text, sizeof text));
  tcgetattr(slave, &t);
  t.c_lflag &= ~(ECHO | ICANON);
  SHOW(tcsetattr(slave, TCSANOW, &t));
  write(master, "x", 1);
  SHOW(read(slave, text, sizeof text));
  size.ws_row = 10;
  SHOW(ioctl(master, TIOCSWINSZ, &size));
  char console[512]; /* requests of consoles: here they are not typewriter's */
  struct { unsigned short count; void *entries; } map = {4, console};
  SHOW(ioctl(slave, 0x4B66, &map)); /* GIO_UNIMAP, as Emacs asks */
  SHOW(ioctl(slave, 0x4B70, console));
  int n;
  SHOW(ioctl(master, TIOCGPTN, &n) == 0 && n >= 0);
  pid_t child = forkpty(&master, NULL, NULL, NULL);
  if (!child) {
    printf("on a terminal %d, leader %d\n", isatty(1), getsid(0) == getpid());
    fflush(stdout);
    execlp("sh", "sh", "-c", "read line; echo \"got $line\"; stty size", NULL);
    _exit(1);
  }
  size_t have = 0;
  for (ssize_t got; !memchr(text, '\n', have) && (got = read(master, text + have, sizeof text - 1 - have)) > 0;) have += got;
  write(master, "a line\n", 7); /* echoed behind the child's line */
  for (ssize_t got; have < sizeof text - 1 && (got = read(master, text + have, sizeof text - 1 - have)) > 0;) have += got;
  for (size_t i = 0; i < have; i++)
    if (text[i] != '\r') putchar(text[i]);
  waitpid(child, &n, 0);
  show_status("shell", n);
  return 0;
}
