/* many_signals.c - a child sends a thousand signals while the parent reads, computes and forks. */
#include "show.h"
static volatile long hits;
static void handler(int sig, siginfo_t *info, void *context) { hits++; }
int main(void) {
  handle(SIGRTMIN, handler, SA_RESTART);
  int fds[2];
  NEED(!pipe(fds));
  pid_t me = getpid(), child = fork();
  if (!child) {
    for (int i = 0; i < 1000; i++) {
      while (sigqueue(me, SIGRTMIN, (union sigval){.sival_int = i}) && errno == EAGAIN) sched_yield();
      if (i % 10 == 0) write(fds[1], "x", 1);
    }
    _exit(0);
  }
  close(fds[1]);
  char c;
  long bytes = 0, sum = 0;
  while (read(fds[0], &c, 1) == 1) {
    bytes++;
    for (int i = 0; i < 1000; i++) sum += i;
    if (bytes % 20 == 0 && !fork()) _exit(0);
  }
  while (wait(NULL) > 0) {}
  printf("%ld bytes, %ld signals, %ld\n", bytes, hits, sum);
  return 0;
}
