/* small_limits.c - tight limits on file size, memory, stack and data, set by the program for itself and its children. */
#include "show.h"
#include <sys/resource.h>
static volatile int big;
static void handler(int sig, siginfo_t *info, void *context) { big++; }
int main(int argc, char **argv) {
  int status;
  if (argc > 1) return printf("executed under %s\n", argv[1]) < 0;
  int kinds[] = {RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_MEMLOCK, RLIMIT_CORE};
  char *names[] = {"file size", "address space", "data", "stack", "locked", "core"};
  long values[] = {100, 400 << 20, 64 << 20, 1 << 20, 0, 0};
  for (int i = 0; i < 6; i++) {
    struct rlimit limit;
    pid_t child = fork();
    if (!child) {
      getrlimit(kinds[i], &limit);
      limit.rlim_cur = values[i];
      setrlimit(kinds[i], &limit);
      pid_t grandchild = fork();
      if (!grandchild) execl("/proc/self/exe", "x", names[i], NULL), _exit(1);
      waitpid(grandchild, &status, 0);
      _exit(status ? 1 : i + 10);
    }
    waitpid(child, &status, 0);
    show_status(names[i], status);
  }
  handle(SIGXFSZ, handler, 0);
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, RLIM_INFINITY});
  int fd = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600);
  char text[200] = "";
  SHOW(write(fd, text, 200));
  SHOW(write(fd, text, 200));
  printf("%d\n", big);
  return 0;
}
