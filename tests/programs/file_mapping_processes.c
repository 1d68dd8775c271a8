/* file_mapping_processes.c - two related processes map the same file shared; each sees what the other writes. */
#include "show.h"
int main(void) {
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600), a[2], b[2];
  char c;
  ftruncate(fd, 4096);
  volatile int *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  NEED(!pipe(a) && !pipe(b));
  if (!fork()) {
    for (int i = 0; i < 50; i++) {
      read(a[0], &c, 1);
      m[0] += 3;
      pwrite(fd, &i, sizeof i, 8);
      write(b[1], &c, 1);
    }
    _exit(0);
  }
  int sum = 0;
  for (int i = 0; i < 50; i++) {
    write(a[1], "x", 1);
    read(b[0], &c, 1);
    sum += m[2];
    m[0] *= 2;
    m[0] %= 1000003;
  }
  wait(NULL);
  printf("%d %d\n", m[0], sum);
  return 0;
}
