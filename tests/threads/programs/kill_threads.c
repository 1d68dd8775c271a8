/* Signals for one thread: each handler runs in the thread it was sent to, in what it blocks in or between. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <errno.h>
#include <semaphore.h>
#include <poll.h>
#include <time.h>
static __thread volatile int got;
static sem_t ready, never;
static volatile int stop;
static int pipes[2];
static void handler(int s, siginfo_t *i, void *u) { (void)u; got += s == SIGUSR1 && i->si_code == SI_TKILL ? 1 : 100; }
static void *in_read(void *arg) { char b; sem_post(&ready); long r = read(pipes[0], &b, 1); printf("read %ld %d got %d\n", r, errno, got); return arg; }
static void *in_sem(void *arg) { sem_post(&ready); int r = sem_wait(&never); printf("sem %d %d got %d\n", r, errno, got); return arg; }
static void *in_poll(void *arg) { sem_post(&ready); int r = poll(NULL, 0, 20000); printf("poll %d %d got %d\n", r, errno, got); return arg; }
static void *in_sleep(void *arg) { struct timespec t = {30, 0}; sem_post(&ready); int r = nanosleep(&t, &t); printf("sleep %d %d got %d left %d\n", r, errno, got, (int)t.tv_sec); return arg; }
static void *in_loop(void *arg) { sem_post(&ready); while (!got) getppid(); printf("loop got %d\n", got); return arg; }
static void *in_compute(void *arg) { volatile long n = 0; sem_post(&ready); while (!got) n++; printf("compute got %d\n", got); return arg; }
static void *in_wait(void *arg) {
  sigset_t s;
  siginfo_t i;
  sigemptyset(&s);
  sigaddset(&s, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &s, NULL);
  sem_post(&ready);
  int r = sigwaitinfo(&s, &i);
  printf("wait %d code %d got %d\n", r, i.si_code, got);
  return arg;
}
int main(void) {
  void *(*all[])(void *) = {in_read, in_sem, in_poll, in_sleep, in_loop, in_compute, in_wait};
  struct sigaction a = {0};
  a.sa_sigaction = handler;
  a.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &a, NULL);
  pipe(pipes);
  sem_init(&ready, 0, 0);
  sem_init(&never, 0, 0);
  for (int i = 0; i < 7; i++) {
    pthread_t t;
    pthread_create(&t, NULL, all[i], NULL);
    sem_wait(&ready);
    usleep(20000);
    int r = pthread_kill(t, SIGUSR1);
    pthread_join(t, NULL);
    printf("%d %d\n", i, r);
  }
  printf("main %d\n", got);
}
