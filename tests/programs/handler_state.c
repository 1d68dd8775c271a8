/* handler_state.c - a handler begins with fresh floating-point state, whatever was set, and leaves the program's alone. */
#include "show.h"
#include <xmmintrin.h>
static unsigned control(void) {
  unsigned short word;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  return word;
}
static void handler(int sig, siginfo_t *info, void *context) {
  printf("%d: mxcsr %#x, control %#x\n", sig, _mm_getcsr() & 0xffc0, control());
  __asm__ volatile("fldpi; fldl2e; pxor %%xmm7, %%xmm7" : : : "xmm7");
  _mm_setcsr(0x3f80);
}
int main(void) {
  double one, pi, seven = 7, kept;
  setbuf(stdout, NULL);
  handle(SIGUSR1, handler, 0);
  handle(SIGTRAP, handler, 0);
  unsigned short up = 0xb7f;
  __asm__ volatile("fldcw %0" : : "m"(up));
  _mm_setcsr(_mm_getcsr() | 0xc040);
  for (int i = 0; i < 10; i++) {
    __asm__ volatile("fld1; fldpi; movsd %0, %%xmm7" : : "m"(seven) : "xmm7");
    if (i % 2)
      __asm__ volatile("int3");
    else
      syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
    __asm__ volatile("fstpl %0; fstpl %1; movsd %%xmm7, %2" : "=m"(pi), "=m"(one), "=m"(kept));
    printf("%.17g %.17g %g mxcsr %#x, control %#x\n", pi, one, kept, _mm_getcsr() & 0xffc0, control());
  }
  return 0;
}
