/* file_facts.c - stat, statx, access, chmod, utimens, rename, link, symlink, xattr, truncate, getdents, openat2, name_to_handle. */
#include "show.h"
#include <dirent.h>
#include <linux/openat2.h>
#include <sys/xattr.h>
int main(void) {
  struct stat s;
  struct statx x;
  char text[512];
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0640);
  umask(022);
  write(fd, "contents", 8);
  SHOW(fstat(fd, &s));
  printf("%o %ld\n", s.st_mode, (long)s.st_size);
  SHOW(statx(AT_FDCWD, "file", 0, STATX_ALL, &x));
  printf("%llu\n", (unsigned long long)x.stx_size);
  SHOW(chmod("file", 0600));
  struct timespec times[2] = {{1, 2}, {3, 4}};
  SHOW(futimens(fd, times));
  SHOW(symlink("file", "link"));
  SHOW(lstat("link", &s));
  SHOW(readlink("link", text, 2));
  printf("%.2s\n", text);
  SHOW(link("file", "hard"));
  SHOW(rename("hard", "renamed"));
  SHOW(syscall(SYS_renameat2, AT_FDCWD, "renamed", AT_FDCWD, "file", 1));
  SHOW(setxattr("file", "user.test", "value", 5, 0) == 0 || errno == EOPNOTSUPP);
  SHOW(getxattr("file", "user.none", text, sizeof text));
  SHOW(listxattr("file", text, sizeof text) >= 0 || errno == EOPNOTSUPP);
  SHOW(access("missing", F_OK));
  SHOW(mkdir("folder", 0700));
  for (int i = 0; i < 300; i++) {
    snprintf(text, sizeof text, "folder/a file with a long name, number %03d", i);
    close(open(text, O_CREAT | O_WRONLY, 0600));
  }
  DIR *d = opendir("folder");
  int n = 0;
  while (readdir(d)) n++;
  printf("%d entries\n", n);
  closedir(d);
  struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
  SHOW(syscall(SYS_openat2, AT_FDCWD, "../x", &how, sizeof how));
  SHOW(syscall(SYS_openat2, AT_FDCWD, "file", &how, sizeof how) > 0);
  struct { struct file_handle h; char rest[128]; } h = {.h.handle_bytes = 128};
  int mount;
  SHOW(name_to_handle_at(AT_FDCWD, "file", &h.h, &mount, 0) == 0 || errno == EOPNOTSUPP || errno == EOVERFLOW);
  SHOW(rmdir("folder"));
  SHOW(unlink("link"));
  SHOW(getcwd(text, 3) == NULL ? -1 : 0);
  SHOW(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
  SHOW(lseek(fd, -1, SEEK_SET));
  SHOW(syscall(SYS_faccessat2, AT_FDCWD, "file", R_OK, 0));
  return 0;
}
