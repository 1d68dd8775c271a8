/* exec_descriptor.c - exec of a descriptor: fexecve, an O_PATH descriptor, a memfd. */
#include "show.h"
extern char **environ;
static void run(const char *what, int fd) {
  int status;
  pid_t child = fork();
  if (!child) {
    char *argv[] = {"x", (char *)what, NULL};
    fexecve(fd, argv, environ);
    _exit(1);
  }
  waitpid(child, &status, 0);
  show_status(what, status);
}
int main(int argc, char **argv) {
  if (argc > 1) {
    printf("running from %s\n", argv[1]);
    return 3;
  }
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), memory = memfd_create("copy", MFD_CLOEXEC);
  run("file", fd);
  run("path", open("/proc/self/exe", O_PATH | O_CLOEXEC));
  char part[4096];
  for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;) NEED(write(memory, part, n) == n);
  run("memfd", memory);
  run("closed", 77);
  return 0;
}
