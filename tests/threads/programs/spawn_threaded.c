/* vfork, posix_spawn and popen from a program with threads that keep running. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <spawn.h>
#include <unistd.h>
#include <sys/wait.h>
extern char **environ;
static volatile int stop;
static long calls[4];
static void *busy(void *arg) { while (!stop) { calls[(long)arg]++; getppid(); } return NULL; }
static void *spawns(void *arg) {
  for (int i = 0; i < 3; i++) {
    pid_t p;
    char *argv[] = {"sh", "-c", i == 1 ? "exit 4" : "exit 3", NULL};
    int st, r = posix_spawn(&p, i == 2 ? "/nonexistent" : "/bin/sh", NULL, NULL, argv, environ);
    if (!r) waitpid(p, &st, 0);
    printf("%d %d\n", r, r ? 0 : WEXITSTATUS(st));
  }
  return arg;
}
int main(void) {
  pthread_t t[3];
  setbuf(stdout, NULL);
  for (long i = 0; i < 2; i++) pthread_create(&t[i], NULL, busy, (void *)i);
  pthread_create(&t[2], NULL, spawns, NULL);
  pthread_join(t[2], NULL);
  for (int i = 0; i < 2; i++) {
    pid_t p = vfork();
    if (!p) {
      if (i) execl("/bin/true", "true", (char *)NULL);
      _exit(6);
    }
    int st;
    waitpid(p, &st, 0);
    printf("vfork %d\n", WEXITSTATUS(st));
  }
  char line[100];
  FILE *f = popen("echo popen", "r");
  while (fgets(line, sizeof line, f)) fputs(line, stdout);
  printf("%d\n", WEXITSTATUS(pclose(f)));
  stop = 1;
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  printf("%ld %ld\n", calls[0], calls[1]);
}
