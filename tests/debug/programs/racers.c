/* Four threads add to a counter under a lock; one of them once adds too much. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
volatile long counter;
__attribute__((noinline)) void add(long who, long n) {
  pthread_mutex_lock(&lock);
  counter += 1; /* line: adds */
  if (who == 2 && n == 50) counter += 1000; /* line: guilty */
  pthread_mutex_unlock(&lock);
}
static void *racer(void *who) {
  for (long n = 0; n < 100; n++) {
    add((long)who, n);
    if (n % 10 == 0) usleep(100);
  }
  return NULL;
}
int main(void) {
  pthread_t threads[4];
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, racer, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  printf("%ld\n", counter); /* line: prints */
  fflush(stdout);
  return counter != 400;
}
