/* die.c - death by the signal given: sent to itself, by a fault, by abort, or by an alarm in a loop without calls. */
#include "show.h"
#include <sys/resource.h>
static int deep(int n) {
  volatile char big[4096];
  big[n % 4096] = 1;
  return deep(n + 1) + big[0];
}
int main(int argc, char **argv) {
  const char *how = argv[1];
  volatile int zero = 0;
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  printf("about to die: %s\n", how);
  fflush(stdout);
  if (!strcmp(how, "abort")) abort();
  if (!strcmp(how, "segv")) *(volatile int *)16 = 1;
  if (!strcmp(how, "fpe")) zero = 1 / zero;
  if (!strcmp(how, "ill")) __asm__ volatile("ud2");
  if (!strcmp(how, "trap")) __asm__ volatile("int3");
  if (!strcmp(how, "blocked")) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    *(volatile int *)16 = 1;
  }
  if (!strcmp(how, "ignored")) {
    signal(SIGSEGV, SIG_IGN);
    *(volatile int *)16 = 1;
  }
  if (!strcmp(how, "overflow")) return deep(0);
  if (!strcmp(how, "pipe")) {
    int fds[2];
    NEED(!pipe(fds));
    close(fds[0]);
    write(fds[1], "x", 1);
  }
  if (!strcmp(how, "alarm")) {
    alarm(1);
    for (;;) pause();
  }
  if (!strcmp(how, "cpu")) {
    setrlimit(RLIMIT_CPU, &(struct rlimit){1, 2});
    for (;;) zero++;
  }
  if (!strcmp(how, "seccomp-like")) kill(getpid(), SIGSYS);
  raise(atoi(how));
  printf("survived\n");
  return 3;
}
