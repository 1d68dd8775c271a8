/* change_root.c - chroot into an empty folder without /proc, then fork, map and exec a copied static program. */
#include "show.h"
int main(int argc, char **argv) {
  if (argc > 1) {
    printf("inside: /proc %d\n", access("/proc", F_OK));
    return 5;
  }
  int status;
  char link[4096] = "", part[65536];
  ssize_t n = readlink("/proc/self/exe", link, sizeof link - 1);
  mkdir("root", 0755);
  int from = open(link, O_RDONLY), to = open("root/program", O_CREAT | O_WRONLY, 0755);
  while ((n = read(from, part, sizeof part)) > 0) write(to, part, n);
  close(to);
  if (chroot("root")) {
    puts("not permitted");
    return 0;
  }
  chdir("/");
  SHOW(open("/etc/passwd", O_RDONLY));
  int fd = open("data", O_CREAT | O_RDWR, 0600);
  ftruncate(fd, 4096);
  char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  m[0] = 4;
  pid_t child = fork();
  if (!child) _exit(m[0]);
  waitpid(child, &status, 0);
  show_status("child", status);
  child = fork();
  if (!child) execl("/program", "program", "x", NULL), _exit(1);
  waitpid(child, &status, 0);
  show_status("exec", status);
  return 0;
}
