/* altstack.c - sigaltstack: handlers on it, its state inside a handler, disarming, errors. */
#include "show.h"
static char stack[65536];
static void handler(int sig, siginfo_t *info, void *context) {
  stack_t now;
  char here;
  sigaltstack(NULL, &now);
  printf("signal %d on the stack %d, flags %d, saved flags %d\n", sig, &here > stack && &here < stack + sizeof stack, now.ss_flags,
         ((ucontext_t *)context)->uc_stack.ss_flags);
  SHOW(sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 32768}, NULL));
}
int main(void) {
  stack_t old, want = {.ss_sp = stack, .ss_size = sizeof stack};
  SHOW(sigaltstack(NULL, &old));
  printf("%d %zu\n", old.ss_flags, old.ss_size);
  SHOW(sigaltstack(&want, &old));
  SHOW(sigaltstack(NULL, &old));
  printf("%d %zu %d\n", old.ss_flags, old.ss_size, old.ss_sp == stack);
  handle(SIGUSR1, handler, SA_ONSTACK);
  handle(SIGUSR2, handler, 0);
  raise(SIGUSR1);
  raise(SIGUSR2);
  SHOW(sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 100}, NULL));
  SHOW(sigaltstack(&(stack_t){.ss_flags = 64}, NULL));
  SHOW(sigaltstack((stack_t *)8, NULL));
  want.ss_flags = 1 << 31;
  SHOW(sigaltstack(&want, NULL));
  raise(SIGUSR1);
  SHOW(sigaltstack(NULL, &old));
  printf("%x %d\n", old.ss_flags, old.ss_sp == stack);
  SHOW(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL));
  raise(SIGUSR1);
  return 0;
}
