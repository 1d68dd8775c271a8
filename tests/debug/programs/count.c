/* A counter, a wrong value on the way, and computing without calls in between. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile long total, wrong;
volatile char letters[16];
__attribute__((noinline)) long inner(long i) {
  total += i * 3; /* line: adds */
  if (i == 70) wrong = 42; /* line: wrong */
  return total; /* line: returns */
}
int main(void) {
  puts("begin");
  fflush(stdout);
  for (long i = 0; i < 100; i++) inner(i); /* line: loop */
  printf("%ld\n", total); /* line: prints */
  fflush(stdout);
  for (long r = 0; r < 3000000; r++) total ^= r;
  int ends[2];
  if (pipe(ends)) return 1;
  write(ends[1], "hello", 5);
  read(ends[0], (char *)letters, 5); /* line: reads */
  printf("%ld\n", total);
  return 0;
}
