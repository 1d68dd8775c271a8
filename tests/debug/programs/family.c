/* A parent and a child that do the same work. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long done;
__attribute__((noinline)) void work(int who, int n) {
  done += who + n;
  if (n == 2) printf("%d %ld\n", who, done);
}
int main(void) {
  if (!fork()) {
    for (int n = 0; n < 4; n++) work(1, n);
    fflush(stdout);
    _exit(0);
  }
  for (int n = 0; n < 4; n++) work(2, n);
  wait(NULL);
  return 0;
}
