/* advice.c - madvise: DONTNEED and FREE give zeros, DONTNEED of a file gives the file, WIPEONFORK, DONTFORK, POPULATE. */
#include "show.h"
#include <sys/uio.h>
int main(void) {
  char *a = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(a, 5, 65536);
  SHOW(madvise(a, 8192, MADV_DONTNEED));
  printf("%d %d\n", a[0], a[8192]);
  SHOW(madvise(a + 8192, 4096, MADV_FREE));
  a[8192] = 6;
  printf("%d\n", a[8192]);
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600);
  for (int i = 0; i < 4096; i++) write(fd, "abcd", 4);
  char *f = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  f[4096] = 'X';
  SHOW(madvise(f, 16384, MADV_DONTNEED));
  printf("%c\n", f[4096]);
  SHOW(madvise(a + 16384, 4096, MADV_WIPEONFORK));
  SHOW(madvise(a + 32768, 4096, MADV_DONTFORK));
  a[16384] = 9;
  pid_t child = fork();
  if (!child) {
    unsigned char in;
    _exit(a[16384] * 10 + (mincore(a + 32768, 4096, &in) < 0));
  }
  int status;
  wait(&status);
  show_status("child", status);
  printf("%d\n", a[16384]);
  SHOW(madvise(a, 4096, 22));
  SHOW(madvise(a, 65536, MADV_HUGEPAGE) == 0 || errno == EINVAL);
  SHOW(madvise(a + 1, 4096, MADV_DONTNEED));
  SHOW(madvise(a, 4096, 12345));
  int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  page[0] = 'p';
  long discarded = syscall(SYS_process_madvise, self, &(struct iovec){page, 4096}, 1, MADV_DONTNEED, 0);
  printf("%d\n", discarded == 4096 ? !page[0] : page[0] == 'p');
  return 0;
}
