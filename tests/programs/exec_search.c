/* exec_search.c - programs searched for in PATH: by execvp, by posix_spawnp, by several threads' children at once; most names
 * do not exist, one folder becomes a file's place, and one program appears only when it was not found. */
#include "show.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
extern char **environ;
static void run(const char *name, int spawned) {
  char *argv[] = {(char *)name, "found", NULL};
  int status = 0, failed = 0;
  pid_t child = 0;
  if (spawned) {
    failed = posix_spawnp(&child, name, NULL, NULL, argv, environ);
  } else if (!(child = vfork())) {
    execvp(name, argv);
    _exit(errno);
  }
  if (!failed) waitpid(child, &status, 0);
  printf("%s %d: %s, %d\n", name, spawned, failed ? strerrorname_np(failed) : "started", WEXITSTATUS(status));
  fflush(stdout);
}
static void *search(void *argument) {
  char *argv[] = {"echo", NULL};
  int *failed = argument;
  pid_t child;
  *failed = posix_spawnp(&child, "no-such-program", NULL, NULL, argv, environ);
  return NULL;
}
int main(void) {
  int failed[4];
  pthread_t threads[4];
  NEED(!mkdir("folder", 0755) && !mkdir("closed", 0));
  close(open("data", O_CREAT | O_WRONLY, 0644));
  setenv("PATH", "/nowhere:/etc/passwd/x:data:folder::closed:/nowhere/else:/usr/bin:/bin", 1);
  for (int spawned = 0; spawned < 2; spawned++) {
    run("echo", spawned);
    run("no-such-program", spawned);
    run("data", spawned);
    run("later", spawned);
    NEED(spawned || !symlink("/bin/echo", "folder/later"));
  }
  for (int i = 0; i < 4; i++) NEED(!pthread_create(&threads[i], NULL, search, &failed[i]));
  for (int i = 0; i < 4; i++) {
    NEED(!pthread_join(threads[i], NULL));
    printf("%s\n", strerrorname_np(failed[i]));
  }
  fflush(stdout);
  execlp("no-such-program", "x", NULL);
  SHOW(execlp("", "x", NULL));
  execlp("echo", "echo", "at last", NULL);
  return 1;
}
