/* generated.c - CPUID in code that the program makes while it runs: in memory that is writable and executable at once. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned (*made)(unsigned *out);

/* mov $leaf,%eax; xor %ecx,%ecx; cpuid; mov %eax,(%rdi); mov %edx,4(%rdi); pop %rbx; ret. Behind it, a constant that looks so. */
static made make(unsigned char *at, unsigned leaf) {
  static const unsigned char head[] = {0x53, 0xb8}, tail[] = {0x31, 0xc9, 0x0f, 0xa2, 0x89, 0x07, 0x89, 0x57, 4, 0x5b, 0xb8, 0x11, 0x22, 0x0f, 0xa2, 0xc3};
  memcpy(at, head, 2);
  memcpy(at + 2, &leaf, 4);
  memcpy(at + 6, tail, sizeof tail);
  return (made)at;
}

int main(void) {
  size_t size = 64 * 4096;
  unsigned out[2] = {0, 0};
  unsigned char *code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned constant = make(code + 100, 0x8000001f)(out);
  printf("%x %x\n", constant, out[0] | out[1] ? 1 : 0);
  make(code + 5 * 4096 + 4090, 0x80000007)(out); /* across two pages */
  munmap(code + 32 * 4096, 4096);
  mprotect(code + 40 * 4096, 4096, PROT_READ | PROT_WRITE);
  mprotect(code + 40 * 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
  printf("%x\n", make(code + 40 * 4096, 0x80000008)(out));
  printf("%x\n", make(code + 48 * 4096, 0x80000006)(out));
  code = mremap(code + 48 * 4096, 16 * 4096, 32 * 4096, MREMAP_MAYMOVE);
  printf("%x\n", make(code + 20 * 4096, 0x80000006)(out));
  fflush(stdout);
  if (!fork()) {
    made one = make(code + 30 * 4096, 0x80000006);
    printf("%x\n", one(out));
    return 0;
  }
  wait(NULL);
  return 0;
}
