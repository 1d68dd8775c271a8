/* all_descriptors.c - every descriptor the limit allows is open, and limits are lowered, while it forks and executes. */
#include "show.h"
#include <sys/mman.h>
#include <sys/resource.h>
int main(int argc, char **argv) {
  int status, n = 0;
  if (argc > 1) return printf("executed with limit %s\n", argv[1]) < 0;
  while (open("/dev/null", O_RDONLY) >= 0) n++;
  printf("%d %s\n", n > 100, strerrorname_np(errno));
  fflush(stdout);
  int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!fork()) {
    *shared = open("/dev/null", O_RDONLY);
    _exit(7);
  }
  wait(&status);
  show_status("sharing child", status);
  printf("%d\n", *shared);
  fflush(stdout);
  munmap(shared, 4096);
  for (int limit = 2000; limit >= 16; limit /= 5) {
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit, 4096});
    pid_t child = fork();
    if (!child) {
      for (int fd = 3; fd < 1024; fd++) close(fd);
      char text[20];
      snprintf(text, sizeof text, "%d", limit);
      if (fork() == 0) execl("/proc/self/exe", "x", text, NULL), _exit(1);
      wait(&status);
      _exit(WEXITSTATUS(status) + 5);
    }
    waitpid(child, &status, 0);
    show_status("child", status);
  }
  return 0;
}
