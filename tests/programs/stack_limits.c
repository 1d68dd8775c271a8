/* stack_limits.c - the main stack grows to its limit, also one that is raised or lowered while the program runs. */
#include "show.h"
#include <sys/resource.h>
static sigjmp_buf out;
static char stack[65536];
static long depth, room; /* in pages and a little */
static void handler(int sig, siginfo_t *info, void *context) { siglongjmp(out, 1); }
static int deep(long pages) {
  volatile char big[4096];
  big[pages & 4095] = 1;
  depth++;
  getppid();
  return (pages > 1 ? deep(pages - 1) : 0) + big[0];
}
static void limit(rlim_t megabytes) {
  struct rlimit r;
  NEED(!getrlimit(RLIMIT_STACK, &r));
  r.rlim_cur = megabytes << 20;
  SHOW(setrlimit(RLIMIT_STACK, &r));
  room = (long)(megabytes << 20) / (4096 + 32);
}
static void reach(long pages) {
  depth = 0;
  if (!sigsetjmp(out, 1))
    deep(pages), printf("%ld pages\n", depth);
  else
    printf("overflow near the limit: %d\n", labs(depth - room) < 50);
}
int main(int argc, char **argv) {
  setbuf(stdout, NULL);
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  handle(SIGSEGV, handler, SA_ONSTACK);
  if (argc == 1) {
    limit(2);
    reach(100);
    reach(1000);
    limit(24);
    reach(4000);
    limit(12);
    execl("/proc/self/exe", "again", "x", NULL);
  }
  limit(12);
  reach(2600);
  limit(11);
  reach(3000);
  return 0;
}
