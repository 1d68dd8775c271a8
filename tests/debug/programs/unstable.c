/* Writes what no recording can keep: the processor's random numbers. */
#include <stdio.h>
#include <unistd.h>
volatile long steps;
__attribute__((noinline)) void tell(unsigned long number) { /* line: tells */
  steps++;
  write(1, &number, sizeof number);
}
int main(void) {
  unsigned long number = 0;
  for (int i = 0; i < 3; i++) tell(i);
  __asm__ volatile("rdrand %0" : "=r"(number));
  tell(number);
  tell(1);
  return 0;
}
