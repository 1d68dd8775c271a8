/* fork from a program with threads: the child has one thread, makes threads of its own, execs; atfork handlers run. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
static volatile int stop;
static long order;
static void prepare(void) { order = order * 10 + 1; }
static void parent(void) { order = order * 10 + 2; }
static void child(void) { order = order * 10 + 3; }
static void *busy(void *arg) { while (!stop) { free(malloc(100)); getppid(); } return arg; }
static void *hello(void *arg) { return (char *)arg + 1; }
int main(void) {
  pthread_t t[3];
  setbuf(stdout, NULL);
  pthread_atfork(prepare, parent, child);
  for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, busy, NULL);
  for (int i = 0; i < 4; i++) {
    pid_t p = fork();
    if (!p) {
      pthread_t mine;
      void *r;
      free(malloc(1000));
      pthread_create(&mine, NULL, hello, (void *)41);
      pthread_join(mine, &r);
      if (i == 2) execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
      if (i == 3) abort();
      _exit((int)(long)r + (order == 13));
    }
    int st;
    waitpid(p, &st, 0);
    printf("%d %d\n", WIFSIGNALED(st), WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st));
    order = 0;
  }
  stop = 1;
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}
