/* restart.c - a signal interrupts a blocking call: EINTR or restarted, for read, wait4, nanosleep, poll, futex, sleep. */
#include "show.h"
#include <linux/futex.h>
static volatile int hits;
static void handler(int sig, siginfo_t *info, void *context) { hits++; }
static int helper(int write_to, int signals) {
  pid_t me = getpid(), child = fork();
  if (!child) {
    for (int i = 0; i < signals; i++) {
      int before = hits;
      await_sleep(me);
      kill(me, SIGUSR1);
      (void)before;
    }
    if (write_to >= 0) {
      await_sleep(me);
      write(write_to, "x", 1);
    }
    _exit(0);
  }
  return child;
}
static void reap(void) {
  while (wait(NULL) < 0 && errno == EINTR) {}
}
int main(void) {
  int fds[2], word = 0;
  char c;
  NEED(!pipe(fds));
  handle(SIGUSR1, handler, 0);
  helper(-1, 1);
  SHOW(read(fds[0], &c, 1));
  reap();
  helper(-1, 1);
  SHOW(syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0));
  reap();
  helper(-1, 1);
  struct timespec left = {0}, want = {1000, 0};
  SHOW(nanosleep(&want, &left));
  printf("%d\n", left.tv_sec > 900 && left.tv_sec <= 1000);
  reap();
  helper(-1, 1);
  struct pollfd p = {fds[0], POLLIN, 0};
  SHOW(poll(&p, 1, -1));
  reap();
  helper(-1, 1);
  SHOW(pause());
  reap();
  int stop[2];
  NEED(!pipe(stop));
  pid_t waited = fork();
  if (!waited) {
    close(stop[1]);
    read(stop[0], &c, 1);
    _exit(4);
  }
  pid_t other = helper(-1, 1);
  SHOW(waitpid(waited, NULL, 0));
  waitpid(other, NULL, 0);
  close(stop[1]);
  waitpid(waited, NULL, 0);
  handle(SIGUSR1, handler, SA_RESTART);
  helper(fds[1], 1);
  SHOW(read(fds[0], &c, 1));
  reap();
  helper(-1, 1);
  SHOW(poll(&p, 1, -1));
  reap();
  printf("%d handler calls\n", hits);
  return 0;
}
