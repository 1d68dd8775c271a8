/* Timers that signal a thread, make a thread, or profile; timerfd read by another thread; setitimer of each kind. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <semaphore.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/syscall.h>
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
static sem_t fired;
static volatile int in_thread, to_tid, prof, virt, wrong;
static pthread_t target;
static void by_thread(union sigval v) { if (v.sival_int == 42) __atomic_fetch_add(&in_thread, 1, 5); sem_post(&fired); }
static void by_signal(int s, siginfo_t *i, void *u) { (void)u; (void)s; if (!pthread_equal(pthread_self(), target)) wrong++; if (i->si_code == SI_TIMER) to_tid++; }
static void on_prof(int s) { if (s == SIGPROF) prof++; else virt++; }
static void *read_fd(void *arg) { unsigned long n, sum = 0; for (int i = 0; i < 3; i++) { read((int)(long)arg, &n, 8); sum += n; } return (void *)sum; }
static void *pauses(void *arg) { while (to_tid < 5) usleep(1000); return arg; }
static volatile long work;
int main(void) {
  timer_t t;
  struct itimerspec every = {{0, 2000000}, {0, 2000000}}, off = {{0, 0}, {0, 0}};
  sem_init(&fired, 0, 0);
  struct sigevent e = {0};
  e.sigev_notify = SIGEV_THREAD;
  e.sigev_notify_function = by_thread;
  e.sigev_value.sival_int = 42;
  if (timer_create(CLOCK_MONOTONIC, &e, &t)) return 1;
  timer_settime(t, 0, &every, NULL);
  for (int i = 0; i < 5; i++) sem_wait(&fired);
  timer_delete(t);
  printf("thread %d\n", in_thread >= 5);
  struct sigaction a = {0};
  a.sa_sigaction = by_signal;
  a.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGRTMIN + 1, &a, NULL);
  target = pthread_self();
  pthread_t other;
  pthread_create(&other, NULL, pauses, NULL);
  memset(&e, 0, sizeof e);
  e.sigev_notify = SIGEV_THREAD_ID;
  e.sigev_signo = SIGRTMIN + 1;
  e.sigev_notify_thread_id = (int)syscall(SYS_gettid);
  if (timer_create(CLOCK_MONOTONIC, &e, &t)) return 2;
  timer_settime(t, 0, &every, NULL);
  pthread_join(other, NULL);
  timer_settime(t, 0, &off, NULL);
  timer_delete(t);
  printf("tid %d wrong %d\n", to_tid >= 5, wrong);
  signal(SIGPROF, on_prof);
  signal(SIGVTALRM, on_prof);
  struct itimerval fast = {{0, 5000}, {0, 5000}}, none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &fast, NULL);
  while (prof < 5) work++;
  setitimer(ITIMER_PROF, &none, NULL);
  setitimer(ITIMER_VIRTUAL, &fast, NULL);
  while (virt < 5) { work++; if (work % 1000 == 0) getppid(); }
  setitimer(ITIMER_VIRTUAL, &none, NULL);
  printf("prof %d virt %d work %ld\n", prof, virt, work);
  int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  timerfd_settime(fd, 0, &every, NULL);
  void *r;
  pthread_create(&other, NULL, read_fd, (void *)(long)fd);
  pthread_join(other, &r);
  printf("timerfd %ld\n", (long)r);
}
