/* A thread computes for long while others wait for work, sleep and print: they get on. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile int done;
static volatile unsigned long x;
static int ticks;
static void *compute(void *arg) {
  unsigned long a = 1;
  for (long i = 0; i < 300000000; i++) a = a * 6364136223846793005ul + 1442695040888963407ul;
  x = a;
  done = 1;
  return arg;
}
static void *tick(void *arg) { while (!done) usleep(5000), ticks++; return arg; }
int main(void) {
  pthread_t a, b;
  pthread_create(&b, NULL, tick, NULL);
  pthread_create(&a, NULL, compute, NULL);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  printf("%lx ticks %d\n", x, ticks);
}
