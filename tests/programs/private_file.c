/* private_file.c - a private mapping of a file shows what is written to the file, in the pages it has not written itself. */
#include "show.h"
int main(void) {
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600);
  ftruncate(fd, 16384);
  char *m = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  const char *view = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
  pwrite(fd, "one", 4, 0);
  puts(m);
  pwrite(fd, "two", 4, 0);
  puts(m);
  m[4096] = 'm';
  pwrite(fd, "file's", 7, 4096);
  printf("%s %s\n", m + 4096, view);
  char *moved = mremap(m + 8192, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pwrite(fd, "third", 6, 8192);
  pwrite(fd, "three", 6, 12288);
  printf("%s %s\n", moved, moved + 4096);
  munmap(m, 8192);
  pwrite(fd, "gone", 5, 0);
  pid_t child = fork();
  if (!child) {
    pwrite(fd, "child", 6, 12288);
    printf("%s\n", moved + 4096);
    return 0;
  }
  int status;
  waitpid(child, &status, 0);
  show_status("child", status);
  return 0;
}
