/* events.c - epoll (level, edge, one-shot, nested), eventfd, select and poll on many descriptors. */
#include "show.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
int main(void) {
  int ep = epoll_create1(0), outer = epoll_create1(0), fd = eventfd(0, EFD_NONBLOCK), sem = eventfd(3, EFD_SEMAPHORE), p[2];
  struct epoll_event e = {EPOLLIN, {.u64 = 0x1234567890}}, got[8];
  uint64_t value = 5;
  NEED(!pipe(p));
  SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
  SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
  SHOW(epoll_wait(ep, got, 8, 0));
  write(fd, &value, 8);
  SHOW(epoll_wait(ep, got, 8, -1));
  printf("%x %llx\n", got[0].events, (unsigned long long)got[0].data.u64);
  SHOW(read(fd, &value, 8));
  SHOW(read(fd, &value, 8));
  SHOW(read(sem, &value, 8));
  printf("%d\n", (int)value);
  e = (struct epoll_event){EPOLLIN | EPOLLET | EPOLLONESHOT, {.fd = p[0]}};
  epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &e);
  e = (struct epoll_event){EPOLLIN, {.fd = ep}};
  epoll_ctl(outer, EPOLL_CTL_ADD, ep, &e);
  write(p[1], "x", 1);
  SHOW(epoll_wait(outer, got, 8, 1000));
  SHOW(epoll_wait(ep, got, 8, 0));
  write(p[1], "x", 1);
  SHOW(epoll_wait(ep, got, 8, 0));
  struct timespec none = {0, 0};
  SHOW(syscall(SYS_epoll_pwait2, ep, got, 8, &none, NULL, 0));
  fd_set set, wset;
  FD_ZERO(&set);
  FD_ZERO(&wset);
  dup2(p[0], 600);
  FD_SET(600, &set);
  FD_SET(p[0], &set);
  FD_SET(p[1], &wset);
  FD_SET(sem, &set);
  struct timeval tv = {5, 0};
  SHOW(select(601, &set, &wset, NULL, &tv));
  printf("%d %d %d %d\n", FD_ISSET(600, &set), FD_ISSET(p[0], &set), FD_ISSET(p[1], &wset), FD_ISSET(sem, &set));
  struct pollfd many[4] = {{p[0], POLLIN}, {p[1], POLLOUT | POLLIN}, {-1, POLLIN, 7}, {999, POLLIN}};
  SHOW(poll(many, 4, 0));
  for (int i = 0; i < 4; i++) printf("%x ", many[i].revents);
  SHOW(poll(NULL, 0, 1));
  tv = (struct timeval){0, 1000};
  SHOW(select(0, NULL, NULL, NULL, &tv));
  printf("%ld %ld\n", tv.tv_sec, tv.tv_usec);
  SHOW(epoll_wait(ep, (void *)8, 8, 0) <= 0);
  SHOW(epoll_wait(fd, got, 8, 0));
  return 0;
}
