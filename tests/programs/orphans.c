/* orphans.c - a grandchild outlives its parent and reports who its parent is then. */
#include "show.h"
int main(void) {
  int fds[2], go[2];
  char text[64];
  NEED(!pipe(fds) && !pipe(go));
  pid_t child = fork();
  if (!child) {
    pid_t me = getpid();
    if (!fork()) {
      char c;
      close(go[1]);
      read(go[0], &c, 1);
      dprintf(fds[1], "orphan: new parent %d\n", getppid() != me);
      _exit(0);
    }
    _exit(2);
  }
  int status;
  waitpid(child, &status, 0);
  show_status("parent of the orphan", status);
  close(go[0]), close(go[1]), close(fds[1]);
  ssize_t n = read(fds[0], text, sizeof text);
  printf("%.*s", (int)n, text);
  SHOW(read(fds[0], text, 1));
  SHOW(wait(NULL));
  return 0;
}
