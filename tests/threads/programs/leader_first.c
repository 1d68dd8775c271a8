/* main leaves by pthread_exit; the process lives on until the last thread returns, with status 0. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_t leader;
static void *work(void *arg) {
  pthread_join(leader, NULL);
  usleep(5000);
  printf("thread %ld\n", (long)arg);
  return NULL;
}
static void *last(void *arg) { usleep(50000); printf("last %d\n", getpid() > 1); return arg; }
int main(void) {
  pthread_t t;
  leader = pthread_self();
  pthread_create(&t, NULL, work, (void *)1);
  pthread_create(&t, NULL, last, NULL);
  printf("leader\n");
  pthread_exit(NULL);
}
