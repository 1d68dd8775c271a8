/* Five hundred threads alive at the same time, each waiting for the one before it. */
#include <pthread.h>
#include <stdio.h>
#include <semaphore.h>
#define N 500
static sem_t turn[N + 1];
static long sum;
static void *work(void *arg) {
  long me = (long)arg;
  sem_wait(&turn[me]);
  sum = sum * 7 + me;
  sem_post(&turn[me + 1]);
  return NULL;
}
int main(void) {
  static pthread_t t[N];
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, 65536);
  for (int i = 0; i <= N; i++) sem_init(&turn[i], 0, 0);
  for (long i = 0; i < N; i++)
    if (pthread_create(&t[i], &a, work, (void *)i)) return 1;
  sem_post(&turn[0]);
  sem_wait(&turn[N]);
  for (int i = 0; i < N; i++) pthread_join(t[i], NULL);
  printf("%lx\n", (unsigned long)sum);
}
