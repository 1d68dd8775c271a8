/* Children that inherit shared anonymous memory race on it with their parent: one log, one order. */
#include <stdio.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>
struct shared { volatile long n; volatile unsigned at; volatile unsigned char who[4096]; };
int main(void) {
  struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 4; i++)
    if (!fork()) {
      for (int k = 0; k < 200; k++) {
        long was = s->n;
        if (k % 9 == 0) usleep(1);
        s->n = was + 1;
        s->who[s->at++ % 4096] = (unsigned char)i;
        getppid();
      }
      _exit(i);
    }
  int st, sum = 0;
  while (wait(&st) > 0) sum += WEXITSTATUS(st);
  unsigned long h = 0;
  for (unsigned i = 0; i < s->at; i++) h = h * 31 + s->who[i];
  printf("%d %ld %lx\n", sum, s->n, h);
}
