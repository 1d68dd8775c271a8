/* Three threads wait in a barrier that never opens; the first one crashes. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_barrier_t barrier;
__thread volatile int mine;
double number = 1.5;
__attribute__((noinline)) void waits_here(int n) {
  mine = n;
  pthread_barrier_wait(&barrier); /* line: waits */
}
static void *other(void *n) {
  waits_here((int)(long)n);
  return NULL;
}
__attribute__((noinline)) void crash(char *p) { *p = 1; } /* line: crashes */
int main(void) {
  pthread_t threads[3];
  pthread_barrier_init(&barrier, NULL, 5);
  for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, other, (void *)(i + 1));
  usleep(50000);
  puts("now");
  fflush(stdout);
  crash((char *)16);
}
