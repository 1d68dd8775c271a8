/* Counts with a call each time, as far as its argument says or for ever. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile long count;
__attribute__((noinline)) void tick(long n) {
  count += n == count; /* line: ticks */
  getppid();
}
int main(int argc, char **argv) {
  long most = argc > 1 ? atol(argv[1]) : -1;
  for (long n = 0; n != most; n++) {
    tick(n);
    if (n == 30000) {
      puts("far enough");
      fflush(stdout);
    }
  }
  return 0;
}
