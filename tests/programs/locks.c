/* locks.c - flock, fcntl record locks, open-file-description locks, contended between two processes. */
#include "show.h"
#include <sys/file.h>
int main(void) {
  int fd = open("file", O_CREAT | O_RDWR, 0600), other = open("file", O_RDWR), p[2];
  char c;
  NEED(!pipe(p));
  SHOW(flock(fd, LOCK_EX));
  SHOW(flock(other, LOCK_EX | LOCK_NB));
  SHOW(flock(fd, LOCK_UN));
  struct flock l = {F_WRLCK, SEEK_SET, 10, 20};
  SHOW(fcntl(fd, F_SETLK, &l));
  pid_t child = fork();
  if (!child) {
    struct flock mine = {F_WRLCK, SEEK_SET, 0, 0};
    printf("%d %s\n", fcntl(fd, F_SETLK, &mine), strerrorname_np(errno));
    fcntl(fd, F_GETLK, &mine);
    printf("type %d start %ld length %ld parent %d\n", mine.l_type, (long)mine.l_start, (long)mine.l_len, mine.l_pid == getppid());
    fflush(stdout);
    mine = (struct flock){F_WRLCK, SEEK_SET, 0, 0};
    write(p[1], "x", 1);
    printf("waited %d\n", fcntl(fd, F_SETLKW, &mine));
    fflush(stdout);
    _exit(0);
  }
  read(p[0], &c, 1);
  await_sleep(child);
  l.l_type = F_UNLCK;
  int unlocked = fcntl(fd, F_SETLK, &l);
  wait(NULL);
  printf("unlocked %d\n", unlocked);
  struct flock o = {F_WRLCK, SEEK_SET, 0, 0};
  SHOW(fcntl(fd, F_OFD_SETLK, &o));
  SHOW(fcntl(other, F_OFD_SETLK, &o));
  SHOW(lockf(fd, F_TEST, 0));
  return 0;
}
