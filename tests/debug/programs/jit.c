/* Writes machine code into a page, more than once, and runs it; more code than a step can go through. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
volatile long result, rounds = 30000;
long (*made)(long); /* long made(long n) { long sum = 0; do sum += step; while (--n); return sum; } */
__attribute__((noinline)) static void make(unsigned char step) {
  unsigned char code[] = {0x31, 0xc0,                  /*     xor %eax, %eax */
                          0x48, 0x83, 0xc0, step,      /* 1:  add $step, %rax */
                          0x48, 0xff, 0xcf,            /*     dec %rdi */
                          0x75, 0xf7,                  /*     jnz 1b */
                          0xc3};                       /*     ret */
  memcpy((void *)made, code, sizeof code);
}
__attribute__((noinline)) void use(long n) {
  result = made(n); /* line: uses */
  getppid();        /* line: used */
}
int main(void) {
  made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (unsigned char step = 1; step <= 3; step++) {
    make(step); /* line: makes */
    getppid();
    use(rounds);
    use(3);
  }
  printf("%ld\n", result);
  return 0;
}
