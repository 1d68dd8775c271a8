/* Memory shared before a fork through shm_open, memfd, System V and a file: spinning on it, too. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
static void turns(const char *name, volatile long *m) {
  m[0] = m[1] = 0;
  pid_t p = fork();
  for (int i = 0; i < 50; i++) {
    while (m[0] != (p ? 0 : 1)) usleep(1);
    m[1] = m[1] * 3 + (p ? 1 : 2);
    m[0] = p ? 1 : 0;
  }
  if (!p) _exit(0);
  waitpid(p, NULL, 0);
  printf("%s %lx\n", name, (unsigned long)m[1]);
}
int main(void) {
  char path[] = "shared.XXXXXX", name[64];
  snprintf(name, sizeof name, "/rrpy-%d", getpid());
  int shm = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600), mem = memfd_create("m", 0), file = mkstemp(path);
  ftruncate(shm, 8192);
  ftruncate(mem, 8192);
  ftruncate(file, 8192);
  void *a = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, shm, 0);
  turns("shm", a);
  munmap(a, 8192);
  shm_unlink(name);
  void *b = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
  turns("memfd", b);
  munmap(b, 8192);
  void *c = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  turns("file", c);
  munmap(c, 8192);
  unlink(path);
  int id = shmget(IPC_PRIVATE, 8192, 0600 | IPC_CREAT);
  void *d = shmat(id, NULL, 0);
  shmctl(id, IPC_RMID, NULL);
  turns("sysv", d);
  shmdt(d);
}
