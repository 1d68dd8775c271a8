/* Three threads wait for what never comes; the first one crashes when all of them do. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static int waiting;
__thread volatile int mine;
double number = 1.5;
__attribute__((noinline)) void waits_here(int n) {
  mine = n;
  pthread_mutex_lock(&lock);
  waiting++;
  pthread_cond_signal(&ready);
  for (;;) pthread_cond_wait(&never, &lock); /* line: waits */
}
static void *other(void *n) {
  waits_here((int)(long)n);
  return NULL;
}
__attribute__((noinline)) void crash(char *p) { *p = 1; } /* line: crashes */
int main(void) {
  pthread_t threads[3];
  for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, other, (void *)(i + 1));
  pthread_mutex_lock(&lock);
  while (waiting < 3) pthread_cond_wait(&ready, &lock);
  puts("now");
  fflush(stdout);
  crash((char *)16);
}
