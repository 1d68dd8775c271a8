/* Queued real-time signals in order with their values, blocked ones merged, masks that differ between threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile int values[32], n;
static void handler(int s, siginfo_t *i, void *u) { (void)u; values[n++ % 32] = (s - SIGRTMIN) * 100 + i->si_value.sival_int; }
static void *sender(void *arg) {
  for (int i = 0; i < 6; i++) {
    union sigval v = {.sival_int = i};
    sigqueue(getpid(), SIGRTMIN + 2 + i % 2, v);
  }
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGUSR1);
  return arg;
}
int main(void) {
  struct sigaction a = {0};
  sigset_t all, some;
  a.sa_sigaction = handler;
  a.sa_flags = SA_SIGINFO;
  for (int s = SIGRTMIN; s < SIGRTMIN + 4; s++) sigaction(s, &a, NULL);
  sigaction(SIGUSR1, &a, NULL);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &some);
  pthread_t t;
  pthread_create(&t, NULL, sender, NULL);
  pthread_join(t, NULL);
  sigset_t pending;
  sigpending(&pending);
  printf("pending %d %d %d\n", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGRTMIN + 2), n);
  pthread_sigmask(SIG_SETMASK, &some, NULL);
  for (int i = 0; i < n; i++) printf("%d ", values[i]);
  printf("%d\n", n);
}
