/* exec_closed.c - exec with the standard descriptors closed, then opened again. */
#include "show.h"
int main(int argc, char **argv) {
  if (argc > 1) {
    int saved = atoi(argv[1]), status = 0;
    for (int fd = 0; fd < 3; fd++) status |= (fcntl(fd, F_GETFD) < 0 && errno == EBADF) << fd;
    int a = open("/dev/null", O_RDWR), b = open("/dev/zero", O_RDONLY);
    dup2(saved, 1);
    setbuf(stdout, NULL);
    printf("closed %d, opened %d %d\n", status, a, b);
    return 0;
  }
  char number[12];
  snprintf(number, sizeof number, "%d", dup(1));
  close(0), close(1), close(2);
  execl("/proc/self/exe", "x", number, NULL);
  return 1;
}
