/* Mutexes shared by processes: robust ones whose holder is killed are handed over with EOWNERDEAD; PI as well. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>
struct both { pthread_mutex_t m; volatile long n; volatile int held; };
static void run(int protocol, const char *name) {
  struct both *b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setprotocol(&a, protocol);
  pthread_mutex_init(&b->m, &a);
  for (int i = 0; i < 3; i++)
    if (!fork()) {
      for (int k = 0; k < 200; k++) {
        pthread_mutex_lock(&b->m);
        long was = b->n;
        if (k % 20 == 0) usleep(1);
        b->n = was + 1;
        pthread_mutex_unlock(&b->m);
      }
      _exit(0);
    }
  while (wait(NULL) > 0) {}
  pid_t victim = fork();
  if (!victim) {
    pthread_mutex_lock(&b->m);
    b->held = 1;
    _exit(3);
  }
  int st;
  waitpid(victim, &st, 0);
  int r = pthread_mutex_lock(&b->m);
  printf("%s %ld %d status %d\n", name, b->n, r == EOWNERDEAD, WEXITSTATUS(st));
}
int main(void) {
  run(PTHREAD_PRIO_NONE, "plain");
  run(PTHREAD_PRIO_INHERIT, "pi");
}
