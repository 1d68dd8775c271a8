/* Robust, priority-inheriting, process-shared, recursive and error-checking mutexes, contended, with timeouts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <errno.h>
#include <unistd.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/wait.h>
static pthread_mutex_t *m;
static volatile long shared;
static void *count(void *arg) {
  for (int i = 0; i < 300; i++) {
    pthread_mutex_lock(m);
    long was = shared;
    if (i % 20 == 0) usleep(1);
    shared = was + 1;
    pthread_mutex_unlock(m);
  }
  return arg;
}
static void *dies_holding(void *arg) { pthread_mutex_lock(m); return arg; }
static sem_t held, tried;
static void *holds(void *arg) { pthread_mutex_lock(m); sem_post(&held); sem_wait(&tried); pthread_mutex_unlock(m); return arg; }
static void contended(const char *name, int protocol, int type, int pshared, int robust) {
  pthread_mutexattr_t a;
  pthread_t t[4];
  m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setprotocol(&a, protocol);
  pthread_mutexattr_settype(&a, type);
  pthread_mutexattr_setpshared(&a, pshared);
  pthread_mutexattr_setrobust(&a, robust);
  int made = pthread_mutex_init(m, &a);
  shared = 0;
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, count, NULL);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  struct timespec until;
  pthread_create(&t[0], NULL, holds, NULL);
  sem_wait(&held);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 1000000;
  if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
  int late = pthread_mutex_timedlock(m, &until), busy = pthread_mutex_trylock(m);
  sem_post(&tried);
  pthread_join(t[0], NULL);
  int owner = -1, consistent = -1;
  if (robust == PTHREAD_MUTEX_ROBUST) {
    pthread_create(&t[0], NULL, dies_holding, NULL);
    pthread_join(t[0], NULL);
    owner = pthread_mutex_lock(m);
    consistent = pthread_mutex_consistent(m);
    pthread_mutex_unlock(m);
  }
  printf("%s %d: %ld late %d busy %d owner %d %d\n", name, made, shared, late == ETIMEDOUT, busy == EBUSY, owner == EOWNERDEAD, consistent);
}
int main(void) {
  sem_init(&held, 0, 0);
  sem_init(&tried, 0, 0);
  contended("normal", PTHREAD_PRIO_NONE, PTHREAD_MUTEX_NORMAL, 0, 0);
  contended("robust", PTHREAD_PRIO_NONE, PTHREAD_MUTEX_NORMAL, 0, PTHREAD_MUTEX_ROBUST);
  contended("pi", PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL, 0, 0);
  contended("pi robust", PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL, 0, PTHREAD_MUTEX_ROBUST);
  contended("pi shared", PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED, 0);
  contended("shared", PTHREAD_PRIO_NONE, PTHREAD_MUTEX_NORMAL, PTHREAD_PROCESS_SHARED, 0);
  contended("recursive", PTHREAD_PRIO_NONE, PTHREAD_MUTEX_RECURSIVE, 0, 0);
  contended("checking", PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ERRORCHECK, 0, 0);
}
