/* own_descriptors.c - /proc/self/fd, fdinfo and /dev/fd show the program's own descriptors only. */
#include "show.h"
#include <dirent.h>
static void list(const char *path, const char *name) {
  DIR *d = opendir(path);
  int n = 0, high = 0;
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') {
      n++;
      if (atoi(e->d_name) > 900) high++;
    }
  printf("%s: %d entries, %d high\n", name, n, high);
  closedir(d);
}
int main(void) {
  char path[64], target[64] = "";
  list("/proc/self/fd", "/proc/self/fd");
  list("/proc/self/fdinfo", "/proc/self/fdinfo");
  list("/dev/fd", "/dev/fd");
  dup2(0, 950);
  list("/proc/self/fd", "/proc/self/fd");
  snprintf(path, sizeof path, "/proc/%d/fd", getpid());
  list(path, "by number");
  int visible = 0;
  for (int fd = 3; fd < 1024; fd++) {
    struct stat s;
    if (fd != 950 && fstat(fd, &s) == 0) visible++;
  }
  printf("%d visible\n", visible);
  int self = (int)syscall(SYS_pidfd_open, getpid(), 0), taken = 0;
  for (int fd = 3; fd < 1100; fd++) {
    int got = (int)syscall(SYS_pidfd_getfd, self, fd, 0);
    if (got >= 0) taken++, close(got);
  }
  printf("%d to be taken\n", taken);
  return 0;
}
