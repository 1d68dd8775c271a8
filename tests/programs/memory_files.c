/* memory_files.c - memfd: seals, shared mappings of it, growth, holes, execution protection. */
#include "show.h"
int main(void) {
  int fd = memfd_create("name", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  SHOW(ftruncate(fd, 10000));
  char *m = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  strcpy(m + 5000, "in memory");
  char text[16];
  SHOW(pread(fd, text, 10, 5000));
  puts(text);
  char *n = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
  m[1] = 'q';
  printf("%c\n", n[1]);
  SHOW(lseek(fd, 0, SEEK_HOLE) >= 0);
  SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
  SHOW(fcntl(fd, F_GET_SEALS));
  SHOW(ftruncate(fd, 20000));
  SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  char path[64], link[100] = {0};
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  SHOW(readlink(path, link, sizeof link));
  puts(link);
  pid_t child = fork();
  if (!child) {
    m[2] = 'c';
    _exit(0);
  }
  wait(NULL);
  printf("%c\n", n[2]);
  return 0;
}
