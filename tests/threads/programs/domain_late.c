/* Two programs, each executed by itself, that come to share memory by name: a file, POSIX and System V memory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
static void *idle(void *arg) { pause(); return arg; }
static void take_turns(volatile long *m, int me) {
  for (int i = 0; i < 100; i++) {
    while (m[0] != me) usleep(1);
    m[1] = m[1] * 3 + me + 1;
    m[2]++;
    m[0] = !me;
  }
  for (int i = 0; i < 300; i++) {
    long was = m[3];
    if (i % 10 == me) usleep(1);
    m[3] = was + 1;
  }
}
static volatile long *attach(char **argv) {
  if (!strcmp(argv[2], "sysv")) return shmat(atoi(argv[3]), NULL, 0);
  int fd = open(argv[3], O_RDWR);
  volatile long *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return m;
}
int main(int argc, char **argv) {
  if (argc > 1) {
    pthread_t t;
    if (atoi(argv[1])) pthread_create(&t, NULL, idle, NULL);
    volatile long *m = attach(argv);
    take_turns(m, atoi(argv[1]));
    return 0;
  }
  char path[] = "late.XXXXXX", id[20], shm[64];
  snprintf(shm, sizeof shm, "/dev/shm/rrpy-late-%d", getpid());
  int file = mkstemp(path), posix = open(shm, O_RDWR | O_CREAT | O_EXCL, 0600), segment = shmget(IPC_PRIVATE, 8192, 0600 | IPC_CREAT);
  snprintf(id, sizeof id, "%d", segment);
  ftruncate(file, 4096);
  ftruncate(posix, 4096);
  char *names[] = {"file", "posix", "sysv"}, *places[] = {path, shm, id};
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < 2; i++)
      if (!fork()) {
        char me[2] = {(char)('0' + i), 0};
        execl("/proc/self/exe", "late", me, names[k], places[k], (char *)NULL);
        _exit(9);
      }
    int st, sum = 0;
    while (wait(&st) > 0) sum += WEXITSTATUS(st);
    char *argv2[] = {"", "", names[k], places[k]};
    volatile long *m = attach(argv2);
    printf("%s %d %lx %ld %ld\n", names[k], sum, (unsigned long)m[1], m[2], m[3]);
  }
  unlink(path);
  unlink(shm);
  shmctl(segment, IPC_RMID, NULL);
}
