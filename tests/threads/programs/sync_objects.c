/* Condition variables with both clocks, barriers, read-write locks, semaphores, once, keys with destructors. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <semaphore.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>
static pthread_barrier_t barrier;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t slots;
static long readers, value, serial, once_runs, destroyed;
static __thread long tls[1000];
static void first(void) { once_runs++; usleep(2000); }
static void destroy(void *p) { destroyed += (long)p; if ((long)p > 1) pthread_setspecific(key, (void *)1); }
static void *work(void *arg) {
  long me = (long)arg;
  pthread_once(&once, first);
  pthread_setspecific(key, (void *)(me + 10));
  for (int i = 0; i < 30; i++) {
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) __atomic_fetch_add(&serial, me + 1, __ATOMIC_SEQ_CST);
    if (i % 4 == me) {
      pthread_rwlock_wrlock(&rw);
      value += me;
      usleep(1);
      pthread_rwlock_unlock(&rw);
    } else {
      pthread_rwlock_rdlock(&rw);
      __atomic_fetch_add(&readers, value, __ATOMIC_SEQ_CST);
      pthread_rwlock_unlock(&rw);
    }
    sem_wait(&slots);
    tls[i] += value;
    usleep(1);
    sem_post(&slots);
  }
  long sum = 0;
  for (int i = 0; i < 1000; i++) sum += tls[i];
  return (void *)sum;
}
int main(void) {
  pthread_t t[4];
  void *r;
  long total = 0;
  pthread_barrier_init(&barrier, NULL, 4);
  pthread_key_create(&key, destroy);
  sem_init(&slots, 0, 2);
  for (long i = 0; i < 4; i++) pthread_create(&t[i], NULL, work, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(t[i], &r), total += (long)r;
  printf("%ld %ld %ld %ld %ld %ld\n", readers, value, serial, once_runs, destroyed, total);
  for (int clock = 0; clock < 2; clock++) {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c;
    pthread_condattr_t a;
    struct timespec until;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, clock ? CLOCK_MONOTONIC : CLOCK_REALTIME);
    pthread_cond_init(&c, &a);
    clock_gettime(clock ? CLOCK_MONOTONIC : CLOCK_REALTIME, &until);
    until.tv_nsec += 5000000;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_mutex_lock(&m);
    printf("%d\n", pthread_cond_timedwait(&c, &m, &until) == ETIMEDOUT);
    pthread_mutex_unlock(&m);
  }
}
