/* A server of 64 processes that share a scoreboard and a listening socket; its client is the parent. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#define N 64
int main(void) {
  volatile int *score = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int s = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof a;
  bind(s, (struct sockaddr *)&a, sizeof a);
  listen(s, 128);
  getsockname(s, (struct sockaddr *)&a, &len);
  pid_t pids[N];
  for (int i = 0; i < N; i++)
    if (!(pids[i] = fork())) {
      for (;;) {
        int c = accept(s, NULL, NULL);
        if (c < 0) continue;
        char b[64];
        long n = read(c, b, sizeof b);
        __atomic_fetch_add(&score[i], 1, __ATOMIC_SEQ_CST);
        if (n > 0) write(c, b, (size_t)n);
        close(c);
      }
    }
  unsigned long h = 0;
  for (int i = 0; i < 200; i++) {
    int c = socket(AF_INET, SOCK_STREAM, 0);
    char b[64], r[64] = {0};
    snprintf(b, sizeof b, "request %d", i);
    connect(c, (struct sockaddr *)&a, sizeof a);
    write(c, b, strlen(b));
    while (read(c, r, sizeof r) > 0) {}
    for (char *p = r; *p; p++) h = h * 31 + (unsigned char)*p;
    close(c);
  }
  int served = 0, who = 0;
  for (int i = 0; i < N; i++) served += score[i], who = who * 3 + score[i];
  for (int i = 0; i < N; i++) kill(pids[i], SIGTERM);
  int ended = 0, st;
  while (wait(&st) > 0) ended += WIFSIGNALED(st) && WTERMSIG(st) == SIGTERM;
  printf("%lx %d %d %x\n", h, served, ended, (unsigned)who);
}
