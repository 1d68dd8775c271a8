/* bare_code.c - CPUID in assembler code that no unwind table describes: code, or a table that looks so. */
#include <stdio.h>
__asm__(".text\n.balign 64\nbare:\n push %rbx\n mov %edi, %eax\n xor %ecx, %ecx\n cpuid\n mov %ecx, %eax\n pop %rbx\n ret\n.balign 64\n");
unsigned bare(unsigned leaf) __asm__("bare");
int main(void) {
  unsigned sum = 0;
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; leaf++) sum = sum * 31 + bare(leaf);
  printf("%x\n", sum ? 1 : 0);
  return 0;
}
