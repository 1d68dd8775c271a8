/* queued.c - real-time signals are queued: each arrives with its value, lowest number first, in order. */
#include "show.h"
static void handler(int sig, siginfo_t *info, void *context) {
  printf("rt+%d value %d code %d from me %d\n", sig - SIGRTMIN, info->si_value.sival_int, info->si_code, info->si_pid == getpid());
}
int main(void) {
  sigset_t set, old;
  for (int i = 0; i < 4; i++) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    sigaction(SIGRTMIN + i, &action, NULL);
  }
  sigfillset(&set);
  sigprocmask(SIG_BLOCK, &set, &old);
  for (int k = 0; k < 6; k++)
    for (int i = 3; i >= 0; i--) sigqueue(getpid(), SIGRTMIN + i, (union sigval){.sival_int = k * 10 + i});
  siginfo_t forged = {.si_signo = SIGRTMIN, .si_code = SI_QUEUE - 50};
  forged.si_pid = getpid();
  forged.si_value.sival_int = 1234;
  SHOW(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN, &forged));
  SHOW(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGRTMIN + 1, &forged));
  sigprocmask(SIG_SETMASK, &old, NULL);
  puts("end");
  for (int k = 0; k < 200; k++) sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = k});
  return 0;
}
