/* timers.c - setitimer, alarm, timer_create with a value, timerfd: they fire, count and are read back. */
#include "show.h"
#include <sys/timerfd.h>
static volatile int alarms, values;
static void handler(int sig, siginfo_t *info, void *context) {
  alarms++;
  if (info->si_code == SI_TIMER) values = info->si_value.sival_int;
}
int main(void) {
  struct itimerval v = {{0, 0}, {0, 2000}}, old;
  handle(SIGALRM, handler, 0);
  handle(SIGRTMIN, handler, 0);
  sigset_t mask, none;
  sigemptyset(&none);
  sigemptyset(&mask);
  sigaddset(&mask, SIGALRM);
  sigaddset(&mask, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  SHOW(setitimer(ITIMER_REAL, &v, NULL));
  SHOW(sigsuspend(&none));
  printf("%d\n", alarms);
  v = (struct itimerval){{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &v, NULL);
  while (alarms < 6) sigsuspend(&none);
  setitimer(ITIMER_REAL, &(struct itimerval){0}, &old);
  printf("%ld\n", old.it_interval.tv_usec);
  SHOW(alarm(100));
  SHOW(alarm(0) > 90);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 77};
  SHOW(timer_create(CLOCK_MONOTONIC, &event, &timer));
  struct itimerspec spec = {{0, 0}, {0, 1000000}}, now;
  SHOW(timer_settime(timer, 0, &spec, NULL));
  while (!values) sigsuspend(&none);
  printf("value %d overrun %d\n", values, timer_getoverrun(timer));
  SHOW(timer_gettime(timer, &now));
  SHOW(timer_delete(timer));
  SHOW(timer_delete(timer));
  int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  uint64_t count = 0;
  spec = (struct itimerspec){{0, 1000000}, {0, 1000000}};
  SHOW(timerfd_settime(fd, 0, &spec, NULL));
  SHOW(read(fd, &count, sizeof count));
  printf("%d\n", count >= 1);
  SHOW(timerfd_gettime(fd, &now));
  printf("%ld\n", now.it_interval.tv_nsec);
  SHOW(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){1, 0}, NULL));
  return 0;
}
