/* flags.c - calls made with the direction flag or the alignment check set, often enough to be made the short way. */
#include "show.h"
static long call(long set, long clear, long number, long a, long b, long c, long *after) {
  long result, flags;
  __asm__ volatile("pushfq\n orq %[set], (%%rsp)\n popfq\n syscall\n pushfq\n movq (%%rsp), %[flags]\n andq %[clear], (%%rsp)\n popfq"
                   : "=a"(result), [flags] "=&r"(flags)
                   : "a"(number), "D"(a), "S"(b), "d"(c), [set] "r"(set), [clear] "r"(clear)
                   : "rcx", "r11", "memory", "cc");
  *after = flags & set;
  return result;
}
int main(void) {
  static const long bits[] = {0x400, 0x40000};
  static char buffer[4096];
  int fd = open("/proc/self/exe", O_RDONLY);
  for (int k = 0; k < 2; k++) {
    long kept = 0, flags;
    int same = 1;
    struct timespec t;
    char first[100], second[100];
    for (int i = 0; i < 20; i++) {
      same &= call(bits[k], ~bits[k], SYS_pread64, fd, (long)first, 99, &flags) == 99;
      kept += flags == bits[k];
      same &= call(bits[k], ~bits[k], SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, &flags) == 0;
      kept += flags == bits[k];
      same &= call(bits[k], ~bits[k], SYS_uname, (long)buffer + 3, 0, 0, &flags) == 0;
      kept += flags == bits[k];
    }
    pread(fd, second, 99, 0);
    printf("%#lx: %s, kept %ld times, %s\n", bits[k], same ? "right" : "wrong", kept, memcmp(first, second, 99) ? "differs" : "equal");
  }
  return 0;
}
