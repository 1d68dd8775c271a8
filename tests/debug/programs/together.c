/* Two processes add to memory they share, in turns. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
struct shared {
  volatile long total, last;
} *shared;
static int to_child[2], to_parent[2];
__attribute__((noinline)) long twice(long n) { return 2 * n; }
__attribute__((noinline)) void add(long who, long n) {
  shared->total += n;  /* line: adds */
  shared->last = who;  /* line: notes */
}
static void turns(long who, int from, int to) {
  char c = 'x';
  for (long n = 1; n <= 6; n++) {
    if (read(from, &c, 1) != 1) exit(1);
    add(who, n); /* line: works */
    if (write(to, &c, 1) != 1) exit(1);
  }
}
int main(void) {
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pipe(to_child) || pipe(to_parent)) return 1;
  puts("begin");
  fflush(stdout);
  if (!fork()) {
    turns(1, to_child[0], to_parent[1]);
    _exit(0);
  }
  if (write(to_parent[1], "x", 1) != 1) return 1;
  turns(2, to_parent[0], to_child[1]);
  wait(NULL);
  printf("%ld\n", shared->total); /* line: prints */
  return 0;
}
