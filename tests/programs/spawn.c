/* spawn.c - posix_spawn with file actions and attributes, and of what is not there. */
#include "show.h"
#include <spawn.h>
extern char **environ;
int main(void) {
  pid_t child;
  int status, fds[2];
  char text[100];
  setbuf(stdout, NULL);
  NEED(!pipe(fds));
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t set;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  posix_spawn_file_actions_addclose(&actions, fds[0]);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_init(&attributes);
  sigfillset(&set);
  posix_spawnattr_setsigdefault(&attributes, &set);
  sigemptyset(&set);
  posix_spawnattr_setsigmask(&attributes, &set);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  char *argv[] = {"sh", "-c", "echo from the child; exit 3", NULL};
  SHOW(posix_spawnp(&child, "sh", &actions, &attributes, argv, environ));
  close(fds[1]);
  ssize_t n = read(fds[0], text, sizeof text);
  printf("%.*s", (int)n, text);
  waitpid(child, &status, 0);
  show_status("spawned", status);
  SHOW(posix_spawn(&child, "/no/such/program", NULL, NULL, argv, environ));
  SHOW(posix_spawn(&child, "/etc/passwd", NULL, NULL, argv, environ));
  printf("%d\n", system("exit 9") >> 8);
  FILE *pipe = popen("echo popen", "r");
  NEED(pipe && fgets(text, sizeof text, pipe));
  printf("%s%d\n", text, pclose(pipe));
  return 0;
}
