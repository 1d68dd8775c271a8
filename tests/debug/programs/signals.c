/* Signals that are handled: raised, a fault that the handler repairs, one while it computes; and then a fatal one. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
volatile long handled, alarms;
volatile char *page;
static void on_usr1(int number) { handled += number; } /* line: handles */
static void on_segv(int number, siginfo_t *info, void *context) {
  (void)context;
  handled += number; /* line: repairs */
  mprotect((void *)((long)info->si_addr & ~4095l), 4096, PROT_READ | PROT_WRITE);
}
static void on_alarm(int number) { alarms += number; } /* line: rings */
__attribute__((noinline)) void work(long n) {
  raise(SIGUSR1); /* line: raises */
  page[n] = 1;    /* line: faults */
}
int main(void) {
  struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  signal(SIGUSR1, on_usr1);
  signal(SIGALRM, on_alarm);
  page = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (long n = 0; n < 3; n++) work(n * 4096);
  struct itimerval timer = {.it_value = {.tv_usec = 20000}};
  setitimer(ITIMER_REAL, &timer, NULL);
  while (!alarms) handled += 0; /* line: waits */
  printf("%ld\n", handled);
  fflush(stdout);
  abort();
}
