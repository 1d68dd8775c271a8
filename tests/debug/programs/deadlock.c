/* Two threads take two locks in opposite order. A third one ends the process once both locks have a waiter. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *one(void *unused) {
  pthread_mutex_lock(&first);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(&second);
  return unused;
}
static void *two(void *unused) {
  pthread_mutex_lock(&second);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(&first);
  return unused;
}
int main(void) {
  pthread_t threads[2];
  pthread_barrier_init(&both, NULL, 2);
  pthread_create(&threads[0], NULL, one, NULL);
  pthread_create(&threads[1], NULL, two, NULL);
  while (first.__data.__lock != 2 || second.__data.__lock != 2) usleep(10000);
  usleep(10000);
  _exit(0);
}
