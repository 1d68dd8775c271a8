/* all_handlers.c - handlers replaced for all signals, the core's own among them; what was set is what is read back. */
#include "show.h"
static volatile sig_atomic_t seen[65];
static void handler(int sig, siginfo_t *info, void *context) { seen[sig]++; }
int main(void) {
  int set = 0, same = 0, total = 0;
  for (int sig = 1; sig < 65; sig++) {
    struct sigaction action = {0}, old;
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    if (sigaction(sig, &action, NULL) == 0) set++;
    if (sigaction(sig, NULL, &old) == 0 && old.sa_sigaction == handler && old.sa_flags & SA_RESTART) same++;
  }
  printf("%d %d\n", set, same);
  for (int sig = 1; sig < 65; sig++)
    if (sig != SIGKILL && sig != SIGSTOP && sig != 32 && sig != 33) kill(getpid(), sig);
  for (int sig = 1; sig < 65; sig++) total += seen[sig];
  printf("%d\n", total);
  for (int sig = 1; sig < 65; sig++)
    if (sig != SIGKILL && sig != SIGSTOP && sig != 32 && sig != 33 && seen[sig] != 1) printf("%d: %d\n", sig, seen[sig]);
  SHOW(syscall(SYS_rt_sigaction, SIGKILL, 0, 0, 8));
  SHOW(sigaction(SIGKILL, &(struct sigaction){0}, NULL));
  SHOW(sigaction(65, NULL, NULL));
  SHOW(syscall(SYS_rt_sigaction, SIGUSR1, 0, 0, 4));
  SHOW(syscall(SYS_rt_sigaction, SIGUSR1, 8, 0, 8));
  return 0;
}
