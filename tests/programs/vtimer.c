/* vtimer.c - a profiling timer interrupts pure computing; the handler's count is the same in every replay. */
#include "show.h"
static volatile long ticks, turns;
static void handler(int sig, siginfo_t *info, void *context) { ticks++; }
int main(void) {
  handle(SIGPROF, handler, SA_RESTART);
  struct itimerval v = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &v, NULL);
  for (int i = 0; i < 20000; i++) {
    for (int k = 0; k < 2000; k++) turns += k & i;
    if (i % 100 == 0) getppid();
  }
  setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
  printf("%ld ticks %ld\n", ticks, turns);
  return 0;
}
