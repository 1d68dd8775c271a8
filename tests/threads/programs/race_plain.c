/* The race of the acceptance list: read, wait, write back. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static volatile long x;
static void *work(void *arg) {
  for (int i = 0; i < 2000; i++) {
    long y = x;
    if (i % 50 == 0) usleep(1);
    x = y + 1;
  }
  return arg;
}
int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(t + i, 0, work, 0);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  printf("%ld\n", x);
}
