/* lookalikes.c - bytes that look like CPUID in constants next to code, in symbol-like data and inside instructions are left alone. */
#include "show.h"
__asm__(".text\n.balign 16\ntable: .rept 300\n .byte 0x0f, 0xa2, 0x90, 0x31, 0xc0, 0x0f, 0xa2, 0xc3\n.endr\n"
        ".section .rodata\nconstants: .rept 300\n .byte 0x31, 0xc0, 0x0f, 0xa2, 0x90\n.endr\n.text\n");
extern const unsigned char table[], constants[];
int main(void) {
  unsigned sum = 0, inside;
  for (int i = 0; i < 2400; i++) sum = sum * 31 + table[i];
  for (int i = 0; i < 1500; i++) sum = sum * 31 + constants[i];
  __asm__ volatile("movl $0xc0a20f31, %0" : "=r"(inside));
  printf("%08x %08x\n", sum, inside);
  return 0;
}
