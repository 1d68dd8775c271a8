/* many_messages.c - sendmmsg and recvmmsg, with names, short buffers, timeouts and MSG_PEEK. */
#include "show.h"
#include <sys/socket.h>
int main(void) {
  int pair[2];
  NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
  struct iovec v[4];
  struct mmsghdr m[4] = {0};
  char *text[] = {"first", "second message", "", "the fourth one"};
  for (int i = 0; i < 4; i++) {
    v[i] = (struct iovec){text[i], strlen(text[i])};
    m[i].msg_hdr.msg_iov = &v[i];
    m[i].msg_hdr.msg_iovlen = 1;
  }
  SHOW(sendmmsg(pair[0], m, 4, 0));
  for (int i = 0; i < 4; i++) printf("%u ", m[i].msg_len);
  char in[4][2][5];
  struct iovec w[4][2];
  memset(m, 0, sizeof m);
  memset(in, '.', sizeof in);
  for (int i = 0; i < 4; i++) {
    w[i][0] = (struct iovec){in[i][0], 5};
    w[i][1] = (struct iovec){in[i][1], 5};
    m[i].msg_hdr.msg_iov = w[i];
    m[i].msg_hdr.msg_iovlen = 2;
  }
  SHOW(recvmmsg(pair[1], m, 1, MSG_PEEK, NULL));
  SHOW(recvmmsg(pair[1], m, 4, MSG_WAITFORONE, NULL));
  for (int i = 0; i < 4; i++) printf("%u %x %.10s\n", m[i].msg_len, m[i].msg_hdr.msg_flags, in[i][0]);
  SHOW(recvmmsg(pair[1], m, 4, MSG_DONTWAIT, NULL));
  return 0;
}
