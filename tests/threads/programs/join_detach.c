/* Threads joined, detached, with a stack of their own, returning values; exit by return and by pthread_exit. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <semaphore.h>
#include <sys/mman.h>
static sem_t done;
static void *value(void *arg) { return (char *)arg + 1; }
static void *leave(void *arg) { pthread_exit((char *)arg + 2); }
static void *loose(void *arg) { sem_post(&done); return arg; }
int main(void) {
  pthread_t t[10];
  void *r;
  long sum = 0;
  sem_init(&done, 0, 0);
  for (long i = 0; i < 10; i++) pthread_create(&t[i], NULL, i % 2 ? value : leave, (void *)i);
  for (int i = 0; i < 10; i++) pthread_join(t[i], &r), sum += (long)r;
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
  for (int i = 0; i < 5; i++) pthread_create(&t[0], &a, loose, NULL);
  for (int i = 0; i < 5; i++) sem_wait(&done);
  void *stack = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t own;
  pthread_attr_init(&own);
  pthread_attr_setstack(&own, stack, 1 << 20);
  pthread_create(&t[0], &own, value, (void *)100);
  pthread_join(t[0], &r);
  printf("%ld %ld\n", sum, (long)r);
}
