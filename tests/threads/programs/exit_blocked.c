/* exit_group while threads block in read, futex, poll, wait and in a spin. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/wait.h>
static sem_t never, ready;
static int pipes[2];
static void *a(void *x) { char b; sem_post(&ready); read(pipes[0], &b, 1); return x; }
static void *b(void *x) { sem_post(&ready); sem_wait(&never); return x; }
static void *c(void *x) { sem_post(&ready); poll(NULL, 0, -1); return x; }
static void *d(void *x) { if (!fork()) { pause(); _exit(0); } sem_post(&ready); return x; }
static void *e(void *x) { sem_post(&ready); for (volatile long n = 0;;) n++; return x; }
static void *f(void *x) { sem_post(&ready); for (;;) getppid(); return x; }
int main(void) {
  void *(*all[])(void *) = {a, b, c, e, f};
  pipe(pipes);
  sem_init(&never, 0, 0);
  sem_init(&ready, 0, 0);
  (void)d;
  for (int i = 0; i < 5; i++) {
    pthread_t t;
    pthread_create(&t, NULL, all[i], NULL);
    sem_wait(&ready);
  }
  printf("leaving\n");
  exit(5);
}
