/* Cancellation in read, in a condition wait (mutex held again by the cleanup), asynchronous, disabled. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <semaphore.h>
static int pipes[2];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t ready;
static volatile long spins;
static void unlock(void *arg) { (void)arg; pthread_mutex_unlock(&m); printf("cleanup\n"); }
static void *reads(void *arg) { char b; sem_post(&ready); read(pipes[0], &b, 1); return arg; }
static void *waits(void *arg) {
  pthread_mutex_lock(&m);
  pthread_cleanup_push(unlock, NULL);
  sem_post(&ready);
  for (;;) pthread_cond_wait(&c, &m);
  pthread_cleanup_pop(1);
  return arg;
}
static void *spin(void *arg) {
  int old;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
  sem_post(&ready);
  for (;;) spins++;
  return arg;
}
static void *disabled(void *arg) {
  int old;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  sem_post(&ready);
  usleep(10000);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
  pthread_testcancel();
  return arg;
}
int main(void) {
  void *(*all[])(void *) = {reads, waits, spin, disabled};
  pipe(pipes);
  sem_init(&ready, 0, 0);
  for (int i = 0; i < 4; i++) {
    pthread_t t;
    void *r;
    pthread_create(&t, NULL, all[i], NULL);
    sem_wait(&ready);
    pthread_cancel(t);
    pthread_join(t, &r);
    printf("%d %s\n", i, r == PTHREAD_CANCELED ? "cancelled" : "returned");
  }
  printf("%d\n", spins > 0);
}
