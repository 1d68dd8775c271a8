/* Threads that read what others write through pipes, socket pairs, eventfd and epoll, with buffers of every kind. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
static int p[2], s[2], e;
static void *writes(void *arg) {
  for (int i = 0; i < 50; i++) {
    char b[100];
    memset(b, 'a' + i % 26, sizeof b);
    write(p[1], b, 100);
    struct iovec v[2] = {{b, 10}, {b + 10, 20}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    sendmsg(s[1], &m, 0);
    unsigned long one = 1;
    write(e, &one, 8);
    if (i % 10 == 0) usleep(1);
  }
  close(p[1]);
  shutdown(s[1], SHUT_WR);
  return arg;
}
int main(void) {
  pthread_t t;
  pipe(p);
  socketpair(AF_UNIX, SOCK_STREAM, 0, s);
  e = eventfd(0, EFD_NONBLOCK);
  int ep = epoll_create1(0), open = 2;
  int fds[] = {p[0], s[0], e};
  for (int i = 0; i < 3; i++) {
    struct epoll_event ev = {EPOLLIN, {.u64 = (unsigned long)i}};
    epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev);
  }
  pthread_create(&t, NULL, writes, NULL);
  unsigned long h = 0, total = 0;
  while (open) {
    struct epoll_event ev[4];
    int n = epoll_wait(ep, ev, 4, -1);
    for (int i = 0; i < n; i++) {
      char a[33], b[64];
      long got;
      if (ev[i].data.u64 == 2) {
        unsigned long v;
        if (read(e, &v, 8) == 8) h = h * 31 + v;
        continue;
      }
      struct iovec v[2] = {{a, sizeof a}, {b, sizeof b}};
      if (ev[i].data.u64 == 0) {
        got = readv(p[0], v, 2);
      } else {
        struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
        got = recvmsg(s[0], &m, 0);
      }
      if (got <= 0) {
        epoll_ctl(ep, EPOLL_CTL_DEL, fds[ev[i].data.u64], NULL);
        open--;
        continue;
      }
      total += (unsigned long)got;
      for (long k = 0; k < got && k < 33; k++) h = h * 31 + (unsigned char)a[k];
    }
  }
  pthread_join(t, NULL);
  printf("%lu %lx\n", total, h);
}
