/* Two threads that lock two mutexes in opposite order; main joins them for ever. Prints when glibc marks
 * both mutexes as waited for: from then on each thread is in its second lock. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *forwards(void *arg) { pthread_mutex_lock(&a); pthread_barrier_wait(&both); pthread_mutex_lock(&b); return arg; }
static void *backwards(void *arg) { pthread_mutex_lock(&b); pthread_barrier_wait(&both); pthread_mutex_lock(&a); return arg; }
int main(void) {
  pthread_t t[2];
  pthread_barrier_init(&both, NULL, 3);
  pthread_create(&t[0], NULL, forwards, NULL);
  pthread_create(&t[1], NULL, backwards, NULL);
  pthread_barrier_wait(&both);
  while (__atomic_load_n(&a.__data.__lock, __ATOMIC_SEQ_CST) != 2 || __atomic_load_n(&b.__data.__lock, __ATOMIC_SEQ_CST) != 2) sched_yield();
  printf("both wait\n");
  fflush(stdout);
  pthread_join(t[0], NULL);
}
