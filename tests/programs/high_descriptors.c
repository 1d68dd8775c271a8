/* high_descriptors.c - dup2, dup3 and F_DUPFD to every high number; the numbers the core hides cannot be touched. */
#include "show.h"
int main(void) {
  int worked = 0, usable = 0, fd = open("/dev/null", O_WRONLY);
  for (int to = 3; to < 1024; to++)
    if (to != fd && dup2(fd, to) == to) worked++;
  for (int to = 3; to < 1024; to++)
    if (write(to, "x", 1) == 1) usable++;
  printf("%d\n", worked >= 1012 && usable == worked + 1);
  for (int to = 4; to < 1024; to++) close(to);
  SHOW(dup3(fd, fd, 0));
  SHOW(dup2(fd, fd) == fd);
  SHOW(dup2(99, 98));
  SHOW(dup2(fd, -1));
  SHOW(fcntl(fd, F_DUPFD, 500));
  SHOW(fcntl(fd, F_DUPFD_CLOEXEC, 500));
  SHOW(fcntl(501, F_GETFD));
  SHOW(fcntl(fd, F_DUPFD, 1 << 24));
  pid_t child = fork();
  if (!child) return printf("child prints\n") < 0;
  wait(NULL);
  return 0;
}
