/* own_memory.c - memory written through /proc/self/mem and process_vm_writev, read-only pages too; of others it is refused. */
#include "show.h"
#include <sys/uio.h>
static char text[32] = "before";
static const char fixed[] = "read only";
static int foreign(long result) { return result > 0 || (result < 0 && errno == EPERM); }
int main(void) {
  int fd = open("/proc/self/mem", O_RDWR);
  setbuf(stdout, NULL);
  SHOW(pwrite(fd, "after!", 6, (off_t)text));
  puts(text);
  SHOW(pwrite(fd, "WRITTEN!!", 9, (off_t)fixed));
  puts(*(const char *volatile *)&(const char *){fixed});
  struct iovec piece[2] = {{"seek", 4}, {"ed", 3}};
  NEED(lseek(fd, (off_t)text, SEEK_SET) == (off_t)text);
  SHOW(writev(fd, piece, 2));
  puts(text);
  struct iovec from = {"vectors", 8}, to[2] = {{text, 3}, {text + 3, 10}};
  SHOW(process_vm_writev(getpid(), &from, 1, to, 2, 0));
  puts(text);
  int (*code)(void) = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SHOW(pwrite(fd, "\xb8\x2a\x00\x00\x00\xc3", 6, (off_t)code));
  printf("%d\n", code());
  pid_t child = fork();
  if (!child) pause();
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", child);
  int other = open(path, O_RDWR);
  SHOW(foreign(pwrite(other, "x", 1, (off_t)text)));
  SHOW(foreign(process_vm_writev(child, &from, 1, to, 2, 0)));
  kill(child, SIGKILL);
  int status;
  waitpid(child, &status, 0);
  show_status("child", status);
  return 0;
}
