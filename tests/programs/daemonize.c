/* daemonize.c - daemon(): double fork, new session, standard descriptors on /dev/null; it works on and tells through a pipe. */
#include "show.h"
int main(void) {
  int fds[2];
  char text[200];
  NEED(!pipe(fds));
  pid_t first = fork();
  if (!first) {
    NEED(!daemon(0, 0));
    if (fork()) _exit(0);
    printf("nobody sees this\n");
    fflush(stdout);
    char here[100];
    dprintf(fds[1], "daemon in %s, session leader %d, tty %d\n", getcwd(here, sizeof here), getsid(0) == getpid(), isatty(0));
    _exit(0);
  }
  close(fds[1]);
  waitpid(first, NULL, 0);
  ssize_t n = read(fds[0], text, sizeof text);
  printf("%.*s", (int)n, text);
  SHOW(read(fds[0], text, 1));
  return 0;
}
