/* A second of computing behind 900 calls of a function, then 100 MB in use and events to seek. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
volatile long spun;
__attribute__((noinline)) void rare(long n) { spun += n; }
int main(void) {
  for (long n = 0; n < 900; n++) {
    rare(n);
    for (long r = 0; r < 1500000; r++) spun ^= r;
    if (n % 9 == 0) getppid();
  }
  char *memory = malloc(100 << 20);
  for (long at = 0; at < 100 << 20; at += 8) *(long *)(memory + at) = at * 2654435761;
  for (long n = 0; n < 200000; n++) getppid();
  printf("%ld %d\n", spun, memory[12345]);
  return 0;
}
