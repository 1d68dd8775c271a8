/* Long computations of three kinds: counting in a register, in memory only, and by calls. */
#include <stdio.h>
#include <stdlib.h>
volatile long spun, calls, most = 600000000;
__attribute__((noinline)) void in_register(void) {
  for (long r = 0; r < most; r++) spun ^= r;
}
__attribute__((noinline)) void in_memory(void) {
  volatile long *place = &spun;
  __asm__ volatile("1: addq $1, (%0)\n cmpq %1, (%0)\n jb 1b" : : "r"(place), "r"(most) : "memory", "cc");
}
__attribute__((noinline)) void called(void) { calls++; }
__attribute__((noinline)) void by_calls(void) {
  for (long r = 0; r < most; r++) {
    if (r % 1000000 == 0) called();
    spun ^= r;
  }
}
int main(int argc, char **argv) {
  void (*kinds[])(void) = {in_register, in_memory, by_calls};
  puts("begin");
  fflush(stdout);
  kinds[argc > 1 ? atol(argv[1]) : 0]();
  printf("%ld %ld\n", spun, calls);
  return 0;
}
