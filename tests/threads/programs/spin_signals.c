/* Loops without calls that wait for a handler: SIGALRM, SIGPROF, SIGVTALRM, a signal from a child; longjmp out of one. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/time.h>
#include <sys/wait.h>
static volatile sig_atomic_t got;
static volatile unsigned long n;
static sigjmp_buf out;
static void handler(int s) { got = s; }
static void jumps(int s) { siglongjmp(out, s); }
int main(void) {
  int kinds[] = {ITIMER_REAL, ITIMER_PROF, ITIMER_VIRTUAL}, signals[] = {SIGALRM, SIGPROF, SIGVTALRM};
  for (int i = 0; i < 3; i++) {
    struct itimerval v = {{0, 0}, {0, 20000}};
    signal(signals[i], handler);
    got = 0;
    setitimer(kinds[i], &v, NULL);
    while (!got) n++;
    printf("%d %lu\n", got, n);
  }
  signal(SIGUSR1, handler);
  got = 0;
  pid_t p = fork();
  if (!p) {
    usleep(20000);
    kill(getppid(), SIGUSR1);
    _exit(0);
  }
  while (!got) n += 3;
  waitpid(p, NULL, 0);
  printf("%d %lu\n", got, n);
  signal(SIGALRM, jumps);
  struct itimerval v = {{0, 0}, {0, 20000}};
  setitimer(ITIMER_REAL, &v, NULL);
  if (!sigsetjmp(out, 1))
    for (;;) n++;
  printf("out %lu\n", n);
  struct itimerval every = {{0, 3000}, {0, 3000}};
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &every, NULL);
  unsigned long hits = 0;
  for (int i = 0; i < 10; i++) {
    got = 0;
    while (!got) hits++;
  }
  printf("%lu\n", hits);
}
