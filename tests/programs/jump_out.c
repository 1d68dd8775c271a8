/* jump_out.c - siglongjmp out of handlers, a hundred times, from a fault, from a call and from a nested handler. */
#include "show.h"
static sigjmp_buf out;
static void handler(int sig, siginfo_t *info, void *context) {
  if (sig == SIGUSR1) raise(SIGUSR2);
  siglongjmp(out, sig);
}
int main(void) {
  volatile int segv = 0, usr = 0;
  handle(SIGSEGV, handler, 0);
  handle(SIGUSR1, handler, 0);
  handle(SIGUSR2, handler, 0);
  for (volatile int i = 0; i < 100; i++) {
    int sig = sigsetjmp(out, 1);
    if (!sig) {
      if (i % 2)
        *(volatile int *)0 = 1;
      else
        raise(SIGUSR1);
    } else if (sig == SIGSEGV) {
      segv++;
    } else {
      usr++;
    }
  }
  printf("%d %d\n", segv, usr);
  return 0;
}
