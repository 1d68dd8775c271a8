/* overflow.c - a stack overflow caught on an alternate stack, several times over. */
#include "show.h"
#include <sys/resource.h>
static sigjmp_buf out;
static char stack[65536];
static void handler(int sig, siginfo_t *info, void *context) { siglongjmp(out, 1); }
static int deep(int n) {
  volatile char big[4096];
  big[n % 4096] = 1;
  return deep(n + 1) + big[0];
}
int main(void) {
  volatile int caught = 0;
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  handle(SIGSEGV, handler, SA_ONSTACK);
  for (volatile int i = 0; i < 3; i++)
    if (!sigsetjmp(out, 1))
      deep(0);
    else
      caught++;
  printf("%d\n", caught);
  return 0;
}
