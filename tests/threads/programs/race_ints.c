/* Unsynchronised counters: the lost updates of a recording are lost again in its replay. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile long counters[4];
static volatile unsigned order[4096], at;
static void *work(void *arg) {
  long me = (long)arg;
  for (int i = 0; i < 600; i++) {
    long was = counters[i % 4];
    if (i % 7 == (int)me) usleep(1);
    counters[i % 4] = was + 1;
    unsigned slot = at;
    if (i % 31 == 0) getppid(), sched_yield();
    order[slot % 4096] = (unsigned)me;
    at = slot + 1;
  }
  return NULL;
}
int main(void) {
  pthread_t t[5];
  for (long i = 0; i < 5; i++) pthread_create(&t[i], NULL, work, (void *)i);
  for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
  unsigned long sum = 0;
  for (unsigned i = 0; i < 4096; i++) sum = sum * 31 + order[i];
  printf("%ld %ld %ld %ld %u %lx\n", counters[0], counters[1], counters[2], counters[3], at, sum);
}
