/* faults.c - handled faults: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP with their codes and addresses; the handler repairs and goes on. */
#include "show.h"
#include <sys/ucontext.h>
static sigjmp_buf out;
static char *page;
static void handler(int sig, siginfo_t *info, void *context) {
  greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
  long offset = (char *)info->si_addr - page;
  printf("signal %d code %d at page+%ld trap %lld error %lld\n", sig, info->si_code,
         sig == SIGSEGV && info->si_code > 0 && offset >= 0 && offset < 8192 ? offset : -1, info->si_code > 0 ? regs[REG_TRAPNO] : 0,
         info->si_code > 0 ? regs[REG_ERR] : 0);
  if (sig == SIGSEGV && offset >= 0 && offset < 4096 && !(regs[REG_ERR] & 16))
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
  else if (sig == SIGILL)
    regs[REG_RIP] += 2;
  else if (sig != SIGTRAP)
    siglongjmp(out, sig);
}
int main(void) {
  volatile int zero = 0;
  page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + 4096, 4096);
  int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  for (int i = 0; i < 5; i++) handle(signals[i], handler, 0);
  page[7] = 1;
  printf("written %d\n", page[7]);
  int value = 1;
  if (!sigsetjmp(out, 1)) value = 5 / zero;
  if (!sigsetjmp(out, 1)) value = *(volatile int *)8;
  if (!sigsetjmp(out, 1)) value = *(volatile int *)0x8000000000000000ul;
  if (!sigsetjmp(out, 1)) value = page[4096 + 3];
  int fd = open("short", O_CREAT | O_RDWR | O_TRUNC, 0600);
  ftruncate(fd, 10);
  char *file = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
  if (!sigsetjmp(out, 1)) value = file[4096];
  value = file[0];
  ftruncate(fd, 0);
  if (!sigsetjmp(out, 1)) value = file[0];
  __asm__ volatile("ud2");
  __asm__ volatile("int3");
  if (!sigsetjmp(out, 1)) ((void (*)(void))page)();
  if (!sigsetjmp(out, 1)) __asm__ volatile("hlt");
  __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; nop; pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
  printf("end %d\n", value);
  if (!sigsetjmp(out, 1)) kill(getpid(), SIGSEGV);
  return 4;
}
