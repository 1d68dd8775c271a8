/* A child that shares memory is killed: while it computes (it has the baton), while it waits for its turn, while it sleeps. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  volatile long *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 4; i++) {
    m[0] = 0;
    pid_t p = fork();
    if (!p) {
      m[0] = 1;
      if (i == 0) for (;;) m[1]++;
      if (i == 1) for (;;) getppid(), m[2]++;
      if (i == 2) for (;;) usleep(100), m[3]++;
      for (;;) pause();
    }
    while (!m[0]) usleep(1000);
    usleep(20000);
    kill(p, SIGKILL);
    int st;
    waitpid(p, &st, 0);
    printf("%d %d %d\n", i, WIFSIGNALED(st), WTERMSIG(st));
  }
  printf("%d %d %d\n", m[1] > 0, m[2] > 0, m[3] > 0);
}
