/* job_control.c - process groups on a terminal: foreground, SIGTTIN, SIGTSTP by a key, SIGCONT, SIGINT by a key. */
#include "show.h"
#include <pty.h>
#include <sys/ioctl.h>
static int session(void) {
  int status;
  signal(SIGTTOU, SIG_IGN);
  pid_t child = fork();
  if (!child) {
    setpgid(0, 0);
    char c;
    read(0, &c, 1);
    _exit(c);
  }
  setpgid(child, child);
  waitpid(child, &status, WUNTRACED);
  printf("background read: stopped by %d\n", WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
  tcsetpgrp(0, child);
  kill(-child, SIGCONT);
  puts("ready");
  fflush(stdout);
  waitpid(child, &status, WUNTRACED);
  show_status("foreground", status);
  tcsetpgrp(0, getpid());
  kill(-child, SIGCONT);
  kill(-child, SIGKILL);
  waitpid(child, &status, 0);
  puts("done");
  fflush(stdout);
  waitpid(fork() ?: (pause(), 0), &status, 0);
  return 0;
}
int main(void) {
  int master, status;
  pid_t leader = forkpty(&master, NULL, NULL, NULL);
  if (!leader) _exit(session());
  FILE *f = fdopen(master, "r+");
  char line[200];
  setbuf(f, NULL);
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\r\n")] = 0;
    if (*line && line[0] != '^') puts(line);
    if (strstr(line, "ready")) write(master, "\032", 1);
    if (strstr(line, "done")) write(master, "\003", 1);
  }
  waitpid(leader, &status, 0);
  show_status("leader", status);
  return 0;
}
