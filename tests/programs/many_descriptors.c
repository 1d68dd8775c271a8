/* many_descriptors.c - five thousand open descriptors, polled together; then a fork and an exec with all of them open. */
#include "show.h"
#include <sys/eventfd.h>
#include <sys/resource.h>
int main(int argc, char **argv) {
  if (argc > 1) return printf("executed\n") < 0;
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max < 6000 ? limit.rlim_max : 6000;
  setrlimit(RLIMIT_NOFILE, &limit);
  static struct pollfd p[5000];
  int n = 0, status;
  for (; n < 5000; n++) {
    int fd = eventfd(n % 7 == 0, 0);
    if (fd < 0) break;
    p[n] = (struct pollfd){fd, POLLIN, 0};
  }
  printf("%d ready of %d\n", poll(p, n, 0), n);
  uint64_t value = 0;
  for (int i = 0; i < n; i += 7) read(p[i].fd, &value, 8);
  printf("%d ready\n", poll(p, n, 0));
  fflush(stdout);
  pid_t child = fork();
  if (!child) _exit(poll(p, n, 0) + 3);
  waitpid(child, &status, 0);
  show_status("child", status);
  child = fork();
  if (!child) execl("/proc/self/exe", "x", "y", NULL), _exit(1);
  waitpid(child, &status, 0);
  show_status("exec", status);
  return 0;
}
