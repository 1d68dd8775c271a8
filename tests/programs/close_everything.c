/* close_everything.c - all descriptors closed one by one and by range; files, children and execs work afterwards. */
#include "show.h"
#include <sys/resource.h>
int main(int argc, char **argv) {
  int closed = 0, out, status;
  if (argc > 1) return dprintf(1, "executed\n") == 9 ? 0 : 1;
  out = dup2(1, 900);
  for (int fd = 0; fd < 65536; fd++)
    if (fd != out && close(fd) == 0) closed++;
  dprintf(out, "%d closed\n", closed);
  dprintf(out, "open gives %d\n", open("/dev/null", O_RDWR));
  dup2(out, 1);
  SHOW(syscall(SYS_close_range, 2, 899, 0));
  SHOW(syscall(SYS_close_range, 901, ~0u, 0));
  SHOW(syscall(SYS_close_range, 5, 2, 0));
  SHOW(syscall(SYS_close_range, 900, ~0u, 4));
  SHOW(syscall(SYS_close_range, 900, ~0u, 2));
  closefrom(3);
  SHOW(fcntl(900, F_GETFD));
  SHOW(fork() ? wait(&status) > 0 : (_exit(3), 0));
  show_status("child", status);
  int pid = fork();
  if (!pid) execl("/proc/self/exe", "x", "y", NULL), _exit(1);
  waitpid(pid, &status, 0);
  show_status("exec", status);
  return 0;
}
