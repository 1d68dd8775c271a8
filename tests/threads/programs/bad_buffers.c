/* bad_buffers.c - what a call that waits cannot store stays where it is: in the pipe, in the socket, in the queue. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int never[2];
static void *other(void *unused) { /* its being there makes calls that may wait give up the turn */
  char c;
  read(never[0], &c, 1);
  return NULL;
}

static void show(const char *what, long result) { printf("%s %ld %d\n", what, result, result < 0 ? errno : 0); }

int main(void) {
  char good[16] = "", *bad[] = {(char *)8, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                                mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
  int pipes[2], pair[2];
  pthread_t thread;
  pipe(never);
  pipe(pipes);
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  pthread_create(&thread, NULL, other, NULL);
  for (int i = 0; i < 3; i++) {
    struct iovec to = {bad[i], 4}, ok = {good, 4};
    write(pipes[1], "pipe", 4);
    show("read", read(pipes[0], bad[i], 4));
    show("readv", readv(pipes[0], &to, 1));
    show("vmsplice", vmsplice(pipes[0], &to, 1, 0) < 0 ? -1 : 0);
    write(pipes[1], "more", 4); /* whether the kernel's vmsplice takes what it cannot store is the kernel's affair */
    show("again", readv(pipes[0], &ok, 1));
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    while (read(pipes[0], good, sizeof good) > 0) {}
    fcntl(pipes[0], F_SETFL, 0);
    write(pair[1], "sock", 4);
    struct msghdr message = {.msg_iov = &to, .msg_iovlen = 1};
    show("recv", recv(pair[0], bad[i], 4, 0));
    show("recvmsg", recvmsg(pair[0], &message, 0));
    show("again", recv(pair[0], good, 4, 0));
    printf("%.4s\n", good);
  }
  write(never[1], "x", 1);
  pthread_join(thread, NULL);
  return 0;
}
