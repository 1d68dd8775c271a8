/* file_mapping.c - a shared file mapping sees write, pwrite, writev, ftruncate, fallocate, splice and copy_file_range on the file. */
#include "show.h"
#include <sys/uio.h>
int main(void) {
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600), other, fds[2];
  ftruncate(fd, 8192);
  char *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char *view = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
  write(fd, "hello", 5);
  pwrite(fd, "pwrite", 6, 5000);
  printf("%.5s %.6s\n", m, view + 5000);
  struct iovec v[2] = {{"vec", 3}, {"tor", 3}};
  writev(fd, v, 2);
  pwritev(fd, v, 2, 6000);
  printf("%.6s %.6s\n", m + 5, view + 6000);
  m[100] = '!';
  char c;
  pread(fd, &c, 1, 100);
  printf("%c\n", c);
  ftruncate(fd, 20000);
  m[19999] = 'e';
  pwrite(fd, "grown", 5, 30000);
  printf("%d %c %.5s\n", m[15000], m[19999], m + 30000);
  ftruncate(fd, 4);
  ftruncate(fd, 8192);
  printf("%.4s %d %d\n", m, m[4], view[5000]);
  SHOW(fallocate(fd, 0, 100000, 4096) == 0 || errno == EOPNOTSUPP);
  other = open("other", O_CREAT | O_RDWR | O_TRUNC, 0600);
  write(other, "0123456789", 10);
  lseek(other, 0, SEEK_SET);
  loff_t to = 200;
  SHOW(copy_file_range(other, NULL, fd, &to, 10, 0));
  printf("%.10s\n", m + 200);
  NEED(!pipe(fds));
  write(fds[1], "spliced", 7);
  to = 300;
  SHOW(splice(fds[0], NULL, fd, &to, 7, 0));
  printf("%.7s\n", m + 300);
  int again = open("file", O_RDWR | O_APPEND);
  write(again, "appended", 8);
  struct stat s;
  fstat(fd, &s);
  printf("%ld %.8s\n", (long)s.st_size, m + s.st_size - 8);
  lseek(fd, 0, SEEK_SET);
  pread(other, m + 400, 10, 0);
  printf("%.10s\n", view + 400);
  msync(m, 8192, MS_SYNC);
  munmap(m + 4096, 4096);
  pwrite(fd, "after", 5, 4090);
  printf("%.5s %.5s\n", m + 4090 - 4090, view + 4090);
  truncate("file", 4096);
  close(open("file", O_WRONLY | O_TRUNC));
  ftruncate(fd, 4096);
  printf("%d\n", view[0]);
  return 0;
}
