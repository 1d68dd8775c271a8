/* signalfd.c - blocked signals read from a descriptor, with their values and senders. */
#include "show.h"
#include <sys/signalfd.h>
int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGRTMIN + 3);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  struct signalfd_siginfo info[4];
  SHOW(read(fd, info, sizeof info));
  kill(getpid(), SIGUSR1);
  for (int i = 0; i < 3; i++) sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 100 + i});
  ssize_t n = read(fd, info, sizeof info);
  for (int i = 0; i < n / (int)sizeof info[0]; i++)
    printf("signal %d value %d mine %d\n", info[i].ssi_signo, info[i].ssi_int, info[i].ssi_pid == (unsigned)getpid());
  pid_t child = fork();
  if (!child) _exit(9);
  struct pollfd p = {fd, POLLIN, 0};
  SHOW(poll(&p, 1, -1));
  n = read(fd, info, sizeof info);
  printf("%d: child's status %d\n", info[0].ssi_signo == SIGCHLD, info[0].ssi_status);
  wait(NULL);
  SHOW(signalfd(99, &set, 0));
  return 0;
}
