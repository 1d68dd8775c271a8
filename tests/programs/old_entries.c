/* old_entries.c - the vsyscall page and int $0x80: both are answered (or refused) and never escape the recording. */
#include "show.h"
static sigjmp_buf out;
static void handler(int sig, siginfo_t *info, void *context) { siglongjmp(out, sig); }
int main(void) {
  handle(SIGSEGV, handler, 0);
  long now = 0;
  if (!sigsetjmp(out, 1)) {
    now = ((long (*)(long *))0xffffffffff600400ul)(NULL);
    printf("vsyscall time %d\n", now > 1000000000);
  } else {
    puts("no vsyscall page");
  }
  long result = 0;
  if (!sigsetjmp(out, 1)) {
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
    printf("int 0x80: %d\n", result > 0 || result == -38);
  } else {
    puts("int 0x80: 1");
  }
  return 0;
}
