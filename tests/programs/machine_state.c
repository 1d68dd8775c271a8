/* machine_state.c - registers, flags, x87, SSE, AVX, MXCSR and the red zone survive system calls and signals unchanged. */
#include "show.h"
#include <immintrin.h>
static void handler(int sig, siginfo_t *info, void *context) {
  __asm__ volatile("fninit; fld1; vzeroall" ::: "memory", "xmm0", "xmm1", "xmm8", "xmm15");
}
/* 1 if all registers a call must preserve are preserved, RCX is the return address and R11 the flags. */
static int check(long number, long first, long second) {
  long ok = 0;
  __asm__ volatile(
      "movq %[nr], %%rax\n movq %[a], %%rdi\n movq %[b], %%rsi\n"
      "movq $0x1111, %%rbx\n movq $0x2222, %%r12\n movq $0x3333, %%r13\n movq $0x4444, %%r14\n movq $0x5555, %%r15\n"
      "movq $0x6666, %%r8\n movq $0x7777, %%r9\n movq $0x8888, %%r10\n movq $0x9999, %%rdx\n"
      "movq $0xabcd, -8(%%rsp)\n movq $0xdcba, -120(%%rsp)\n"
      "stc\n std\n syscall\n"
      "1: pushfq\n popq %%rax\n cld\n"
      "testq $0x401, %%rax\n jz 2f\n"
      "leaq 1b(%%rip), %%rax\n cmpq %%rax, %%rcx\n jne 2f\n"
      "testq $0x401, %%r11\n jz 2f\n"
      "cmpq $0x1111, %%rbx\n jne 2f\n cmpq $0x2222, %%r12\n jne 2f\n cmpq $0x3333, %%r13\n jne 2f\n"
      "cmpq $0x4444, %%r14\n jne 2f\n cmpq $0x5555, %%r15\n jne 2f\n cmpq $0x6666, %%r8\n jne 2f\n"
      "cmpq $0x7777, %%r9\n jne 2f\n cmpq $0x8888, %%r10\n jne 2f\n cmpq $0x9999, %%rdx\n jne 2f\n"
      "cmpq $0xdcba, -120(%%rsp)\n jne 2f\n"
      "movq $1, %[ok]\n 2:\n"
      : [ok] "+m"(ok)
      : [nr] "m"(number), [a] "m"(first), [b] "m"(second)
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
  return (int)ok;
}
int main(void) {
  handle(SIGUSR1, handler, 0);
  for (int i = 0; i < 3; i++) SHOW(check(SYS_getppid, 0, 0));
  SHOW(check(SYS_kill, getpid(), 0));
  SHOW(check(SYS_kill, getpid(), SIGUSR1));
  long double x = 1.0L / 3;
  double s[2];
  unsigned mxcsr = _mm_getcsr() | _MM_ROUND_DOWN, after;
  _mm_setcsr(mxcsr);
  __m128d v = _mm_set_pd(1.25, -7.5), w;
  long result;
  __asm__ volatile("movapd %2, %%xmm9\n syscall\n movapd %%xmm9, %1\n"
                   : "=a"(result), "=x"(w)
                   : "x"(v), "a"(SYS_kill), "D"(getpid()), "S"(SIGUSR1)
                   : "rcx", "r11", "xmm9", "memory");
  _mm_storeu_pd(s, w);
  after = _mm_getcsr();
  printf("%g %g %d %.18Lf\n", s[0], s[1], after == mxcsr, x * 3);
  if (__builtin_cpu_supports("avx")) {
    unsigned char in[32], out[32];
    for (int i = 0; i < 32; i++) in[i] = i * 7;
    __asm__ volatile("vmovdqu %1, %%ymm3\n syscall\n vmovdqu %%ymm3, %0\n vzeroupper"
                     : "=m"(out)
                     : "m"(in), "a"(SYS_kill), "D"(getpid()), "S"(SIGUSR1)
                     : "rcx", "r11", "xmm3", "memory");
    printf("avx %d\n", !memcmp(in, out, 32));
  } else {
    puts("avx 1");
  }
  return 0;
}
