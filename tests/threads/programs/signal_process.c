/* Signals to a process whose threads block in read, futex, poll and sigwait: one of them takes it, dedicated or not. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/signalfd.h>
static sem_t ready, never, handled;
static int pipes[2];
static volatile int usr1, usr2;
static void handler(int s) { if (s == SIGUSR1) usr1++; else usr2++; sem_post(&handled); }
static void *in_read(void *x) { char b; sem_post(&ready); while (read(pipes[0], &b, 1) < 0 && errno == EINTR) {} return x; }
static void *in_futex(void *x) { sem_post(&ready); while (sem_wait(&never) < 0) {} return x; }
static void *in_poll(void *x) { struct pollfd p = {pipes[0], POLLIN, 0}; sem_post(&ready); while (poll(&p, 1, -1) < 0) {} return x; }
static void *in_wait(void *x) {
  sigset_t s;
  siginfo_t i;
  sigemptyset(&s);
  sigaddset(&s, SIGTERM);
  sem_post(&ready);
  for (int k = 0; k < 3; k++) printf("sigwait %d from %d\n", sigwaitinfo(&s, &i), i.si_pid == getpid());
  return x;
}
int main(void) {
  void *(*all[])(void *) = {in_read, in_futex, in_poll, in_wait};
  pthread_t t[4];
  sigset_t s;
  pipe(pipes);
  sem_init(&ready, 0, 0);
  sem_init(&never, 0, 0);
  sem_init(&handled, 0, 0);
  signal(SIGUSR1, handler);
  signal(SIGUSR2, handler);
  sigemptyset(&s);
  sigaddset(&s, SIGTERM);
  sigprocmask(SIG_BLOCK, &s, NULL);
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, all[i], NULL), sem_wait(&ready);
  for (int i = 0; i < 20; i++) {
    kill(getpid(), i % 2 ? SIGUSR1 : SIGUSR2);
    while (sem_wait(&handled) < 0) {}
  }
  sigaddset(&s, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &s, NULL);
  for (int i = 0; i < 5; i++) {
    kill(getpid(), SIGUSR1);
    while (sem_wait(&handled) < 0) {}
  }
  for (int i = 0; i < 3; i++) kill(getpid(), SIGTERM), usleep(20000);
  pthread_join(t[3], NULL);
  write(pipes[1], "xx", 2);
  sem_post(&never);
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  sigset_t u;
  sigemptyset(&u);
  sigaddset(&u, SIGUSR2);
  sigprocmask(SIG_BLOCK, &u, NULL);
  int fd = signalfd(-1, &u, 0);
  kill(getpid(), SIGUSR2);
  struct signalfd_siginfo info;
  printf("signalfd %ld %u\n", (long)read(fd, &info, sizeof info) / (long)sizeof info, info.ssi_signo);
  printf("%d %d\n", usr1, usr2);
}
