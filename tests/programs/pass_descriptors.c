/* pass_descriptors.c - SCM_RIGHTS and SCM_CREDENTIALS over a socket pair, between processes and within one. */
#include "show.h"
#include <sys/socket.h>
static void send_fd(int socket, int fd) {
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec v = {"fd", 2};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  SHOW(sendmsg(socket, &m, 0));
}
static int receive(int socket, size_t room) {
  char control[256] = {0}, text[8];
  int fd = -1;
  struct iovec v = {text, sizeof text};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};
  SHOW(recvmsg(socket, &m, MSG_CMSG_CLOEXEC));
  printf("flags %x control %zu\n", m.msg_flags, (size_t)m.msg_controllen);
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    printf("type %d\n", c->cmsg_type);
    if (c->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(c), sizeof fd);
    if (c->cmsg_type == SCM_CREDENTIALS) {
      struct ucred who;
      memcpy(&who, CMSG_DATA(c), sizeof who);
      printf("me %d uid %d\n", who.pid == getpid(), who.uid == getuid());
    }
  }
  return fd;
}
int main(void) {
  int pair[2], go[2], on = 1;
  char c;
  NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  NEED(!pipe(go));
  pid_t child = fork();
  if (!child) {
    read(go[0], &c, 1);
    int fd = receive(pair[1], 256);
    write(fd, "written by the child\n", 21);
    _exit(0);
  }
  int file = open("file", O_CREAT | O_RDWR | O_TRUNC, 0600);
  fflush(stdout);
  send_fd(pair[0], file);
  write(go[1], "x", 1);
  wait(NULL);
  char text[64];
  ssize_t n = pread(file, text, sizeof text, 0);
  printf("%.*s", (int)n, text);
  setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  send_fd(pair[0], 1);
  close(receive(pair[1], 256));
  send_fd(pair[0], 1);
  receive(pair[1], 16);
  send_fd(pair[0], 77);
  return 0;
}
