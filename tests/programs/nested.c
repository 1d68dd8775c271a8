/* nested.c - handlers inside handlers, SA_NODEFER, SA_RESETHAND, a changed return context. */
#include "show.h"
static int depth;
static void handler(int sig, siginfo_t *info, void *context) {
  depth++;
  printf("enter %d depth %d\n", sig, depth);
  if (depth < 4) raise(depth == 2 ? SIGUSR2 : SIGUSR1);
  printf("leave %d depth %d\n", sig, depth);
  depth--;
}
static void change(int sig, siginfo_t *info, void *context) {
  ucontext_t *uc = context;
  uc->uc_mcontext.gregs[REG_RBX] = 4321;
  sigaddset(&uc->uc_sigmask, SIGHUP);
}
int main(void) {
  handle(SIGUSR1, handler, SA_NODEFER);
  handle(SIGUSR2, handler, 0);
  raise(SIGUSR1);
  handle(SIGTERM, change, SA_RESETHAND);
  long rbx = 1;
  __asm__ volatile("movq $1234, %%rbx; syscall; movq %%rbx, %0"
                   : "=r"(rbx)
                   : "a"(SYS_kill), "D"(getpid()), "S"(SIGTERM)
                   : "rbx", "rcx", "r11", "memory");
  printf("%ld\n", rbx);
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  printf("HUP blocked %d\n", sigismember(&now, SIGHUP));
  struct sigaction old;
  sigaction(SIGTERM, NULL, &old);
  printf("reset %d\n", old.sa_handler == SIG_DFL);
  fflush(stdout);
  raise(SIGTERM);
  return 1;
}
