/* shares.c - takes a memfd from the socket argv[1] names, maps it shared, and says what the other side writes there. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  int s = socket(AF_UNIX, SOCK_STREAM, 0), fd = -1;
  char byte, control[CMSG_SPACE(sizeof fd)];
  struct iovec v = {&byte, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  strcpy(name.sun_path, argv[1]);
  if (connect(s, (struct sockaddr *)&name, sizeof name) || recvmsg(s, &m, 0) != 1) return 1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  char *shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (shared == MAP_FAILED) return 2;
  printf("first: %s\n", shared);
  if (write(s, "x", 1) != 1 || read(s, &byte, 1) != 1) return 3; /* the other side writes in between */
  printf("mapped\n");
  return 0;
}
