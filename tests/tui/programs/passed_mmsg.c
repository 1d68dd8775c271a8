/* A parent passes three files to its child by one sendmmsg of two messages; the child reads each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
union control { struct cmsghdr header; char space[CMSG_SPACE(2 * sizeof(int))]; };
static void fill(struct mmsghdr *m, struct iovec *v, union control *c, char *data) {
  v->iov_base = data; v->iov_len = 1;
  m->msg_hdr = (struct msghdr){.msg_iov = v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof *c};
}
int main(void) {
  int pair[2];
  char data[2] = {'a', 'b'}, got[2];
  struct mmsghdr m[2];
  struct iovec v[2];
  union control c[2];
  memset(c, 0, sizeof c);
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) return 1;
  if (!fork()) {
    for (int i = 0; i < 2; i++) fill(&m[i], &v[i], &c[i], &got[i]);
    int have = 0;
    while (have < 2) { int n = recvmmsg(pair[1], m + have, 2 - have, 0, NULL); if (n <= 0) _exit(1); have += n; }
    for (int i = 0; i < 2; i++) {
      struct cmsghdr *h = CMSG_FIRSTHDR(&m[i].msg_hdr);
      int count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (int k = 0; k < count; k++) { int fd; char text[8]; memcpy(&fd, CMSG_DATA(h) + 4 * k, 4); if (read(fd, text, 8) < 0) _exit(2); close(fd); }
    }
    _exit(0);
  }
  const char *names[] = {"/etc/hostname", "/etc/hosts", "/etc/passwd"};
  int fds[3];
  for (int i = 0; i < 3; i++) fds[i] = open(names[i], O_RDONLY);
  for (int i = 0; i < 2; i++) {
    fill(&m[i], &v[i], &c[i], &data[i]);
    int count = i ? 1 : 2;
    m[i].msg_hdr.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *h = CMSG_FIRSTHDR(&m[i].msg_hdr);
    h->cmsg_level = SOL_SOCKET; h->cmsg_type = SCM_RIGHTS; h->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(h), fds + 2 * i, count * sizeof(int));
  }
  if (sendmmsg(pair[0], m, 2, 0) != 2) return 2;
  int status; wait(&status);
  return WEXITSTATUS(status);
}
