/* As many threads as the first argument says add to a total, in turns. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
long total, noted;
long twice(long n) {
  long result = n * 2; /* line: twice */
  return result;       /* line: returns */
}
void add(long who, long n) {
  long value = twice(n); /* line: calls */
  total += value;        /* line: adds */
  noted = who;           /* line: notes */
}
static void *worker(void *who) {
  for (long n = 1; n <= 12; n++) {
    pthread_mutex_lock(&lock);
    add((long)who, n); /* line: works */
    pthread_mutex_unlock(&lock);
    usleep(100);
  }
  return NULL;
}
int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 1;
  pthread_t threads[4];
  for (long i = 1; i < count; i++) pthread_create(&threads[i], NULL, worker, (void *)i);
  worker(NULL);
  for (long i = 1; i < count; i++) pthread_join(threads[i], NULL);
  printf("%ld\n", total); /* line: prints */
  fflush(stdout);
  return 0;
}
