/* Robust mutexes whose holder is killed by SIGKILL: whoever waits for one, or comes later, is told (EOWNERDEAD), and goes on. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
struct both { pthread_mutex_t m; volatile int held, waiting; volatile long n; };
static int told(int status, struct both *b) {
  if (status == EOWNERDEAD) pthread_mutex_consistent(&b->m);
  return status == EOWNERDEAD;
}
static void run(int protocol, int timed, const char *name) {
  struct both *b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t a;
  int in[2];
  char c;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setprotocol(&a, protocol);
  pthread_mutex_init(&b->m, &a);
  for (int late = 0; late < 2; late++) {
    b->held = b->waiting = 0;
    pipe(in);
    pid_t victim = fork();
    if (!victim) {
      pthread_mutex_lock(&b->m);
      write(in[1], "x", 1);
      for (;;) pause();
    }
    read(in[0], &c, 1);
    int st, waiters = late ? 0 : 2;
    for (int i = 0; i < waiters; i++)
      if (!fork()) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 50;
        write(in[1], "w", 1);
        int dead = told(timed ? pthread_mutex_timedlock(&b->m, &until) : pthread_mutex_lock(&b->m), b);
        b->n += dead ? 100 : 1;
        pthread_mutex_unlock(&b->m);
        _exit(dead);
      }
    for (int i = 0; i < waiters; i++) read(in[0], &c, 1);
    if (waiters) usleep(20000);
    kill(victim, SIGKILL);
    waitpid(victim, &st, 0);
    int dead = late ? told(pthread_mutex_lock(&b->m), b) : 0;
    if (late) pthread_mutex_unlock(&b->m);
    for (int i = 0; i < waiters; i++) {
      waitpid(-1, &st, 0);
      dead += WEXITSTATUS(st);
    }
    printf("%s %s: %d told, %ld\n", name, late ? "after" : "while waiting", dead, b->n);
  }
}
int main(void) {
  run(PTHREAD_PRIO_NONE, 0, "plain");
  run(PTHREAD_PRIO_NONE, 1, "timed");
  run(PTHREAD_PRIO_INHERIT, 0, "pi");
}
