/* sockets.c - unix and inet sockets: names, options, accept, half close, datagrams, out-of-band, errors. */
#include "show.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
int main(void) {
  struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "socket"};
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, name;
  socklen_t size = sizeof name;
  char text[128];
  int server = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  SHOW(setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  SHOW(bind(server, (void *)&in, sizeof in));
  SHOW(listen(server, 5));
  SHOW(getsockname(server, (void *)&name, &size));
  pid_t child = fork();
  if (!child) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    connect(fd, (void *)&name, sizeof name);
    send(fd, "hello from the client", 21, 0);
    shutdown(fd, SHUT_WR);
    ssize_t n = recv(fd, text, sizeof text, MSG_WAITALL);
    printf("client got %.*s\n", (int)n, text);
    fflush(stdout);
    _exit(0);
  }
  struct sockaddr_in peer;
  size = sizeof peer;
  int fd = accept4(server, (void *)&peer, &size, SOCK_CLOEXEC);
  printf("%d %d %x\n", size, peer.sin_family, ntohl(peer.sin_addr.s_addr));
  size_t have = 0;
  for (ssize_t n; (n = recv(fd, text + have, sizeof text - have, 0)) > 0;) have += n;
  printf("server got %.*s\n", (int)have, text);
  SHOW(send(fd, "answer", 6, MSG_NOSIGNAL));
  struct linger l;
  struct tcp_info info;
  socklen_t length = sizeof l;
  SHOW(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &length));
  length = sizeof info;
  SHOW(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
  length = 2;
  SHOW(getsockopt(fd, SOL_SOCKET, SO_TYPE, &on, &length));
  close(fd);
  wait(NULL);
  SHOW(connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&(struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, sizeof name));
  int d = socket(AF_UNIX, SOCK_DGRAM, 0), e = socket(AF_UNIX, SOCK_DGRAM, 0);
  SHOW(bind(d, (void *)&u, sizeof u));
  SHOW(bind(e, (void *)&u, sizeof u));
  strcpy(u.sun_path, "other");
  bind(e, (void *)&u, sizeof u);
  strcpy(u.sun_path, "socket");
  SHOW(sendto(e, "datagram", 8, 0, (void *)&u, sizeof u));
  struct sockaddr_un from;
  size = sizeof from;
  SHOW(recvfrom(d, text, 4, MSG_TRUNC, (void *)&from, &size));
  printf("%.4s %d %s\n", text, size, from.sun_path);
  SHOW(recvfrom(d, text, 4, MSG_DONTWAIT, NULL, NULL));
  int x = socket(AF_INET, SOCK_DGRAM, 0);
  in.sin_port = 0;
  bind(x, (void *)&in, sizeof in);
  size = sizeof name;
  getsockname(x, (void *)&name, &size);
  SHOW(sendto(x, "to myself", 9, 0, (void *)&name, size));
  size = 4;
  SHOW(recvfrom(x, text, sizeof text, 0, (void *)&peer, &size));
  printf("%d\n", size);
  SHOW(socket(12345, SOCK_STREAM, 0));
  SHOW(send(99, "x", 1, 0));
  return 0;
}
