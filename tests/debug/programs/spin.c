/* A second or two of computing without calls. */
#include <stdio.h>
volatile long spun;
__attribute__((noinline)) void spin(void) {
  for (long r = 0; r < 2500000000; r++) spun ^= r;
}
__attribute__((noinline)) void rare(long n) { spun += n; } /* line: rare */
void forever(void) { /* for the debugger to call */
  puts("forever");
  fflush(stdout);
  while (spun >= 0 || spun < 0) spun += 0;
}
int main(void) {
  puts("begin");
  fflush(stdout);
  spin();
  for (long n = 0; n < 900; n++) rare(n);
  printf("%ld\n", spun);
  return 0;
}
