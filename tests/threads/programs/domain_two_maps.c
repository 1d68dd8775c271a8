/* One object mapped twice in one process, and again by its child: what goes in at one address shows at the other. */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  int fd = memfd_create("m", 0);
  ftruncate(fd, 8192);
  volatile int *a = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  volatile int *b = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
  a[1024] = 7;
  b[1] = a[1024] + b[0];
  pid_t p = fork();
  if (!p) {
    volatile int *c = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    c[1025] += 100;
    a[0] = c[1025];
    _exit(0);
  }
  waitpid(p, NULL, 0);
  printf("%d %d %d\n", a[0], b[1], b[0]);
  int x = 55;
  pwrite(fd, &x, 4, 4);
  printf("%d\n", a[1]);
}
