/* segment.c - writes the GS register, which is the core's: not to be recorded. */
#include "show.h"
int main(void) {
  puts("before");
  fflush(stdout);
  __asm__ volatile("movl $0x2b, %%eax\n mov %%eax, %%gs" : : : "eax");
  puts("after");
  return 0;
}
