/* sysv.c - System V IPC: shared memory between processes, semaphores with undo, message queues. */
#include "show.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
int main(void) {
  int id = shmget(IPC_PRIVATE, 10000, IPC_CREAT | 0600), status;
  char *m = shmat(id, NULL, 0);
  struct shmid_ds ds;
  SHOW(shmctl(id, IPC_STAT, &ds));
  printf("%zu %d\n", (size_t)ds.shm_segsz, (int)ds.shm_nattch);
  SHOW(shmctl(id, IPC_RMID, NULL));
  int sem = semget(IPC_PRIVATE, 2, IPC_CREAT | 0600);
  union { int v; unsigned short *a; } arg;
  arg.v = 0;
  semctl(sem, 0, SETVAL, arg);
  semctl(sem, 1, SETVAL, arg);
  pid_t child = fork();
  if (!child) {
    strcpy(m + 5000, "from the child");
    struct sembuf up = {0, 1, 0};
    semop(sem, &up, 1);
    struct sembuf undo = {1, 3, SEM_UNDO};
    semop(sem, &undo, 1);
    _exit(0);
  }
  struct sembuf down = {0, -1, 0};
  SHOW(semop(sem, &down, 1));
  printf("%s\n", m + 5000);
  wait(&status);
  unsigned short values[2];
  arg.a = values;
  SHOW(semctl(sem, 0, GETALL, arg));
  printf("%d %d\n", values[0], values[1]);
  down.sem_flg = IPC_NOWAIT;
  SHOW(semop(sem, &down, 1));
  struct timespec little = {0, 1000};
  down.sem_flg = 0;
  SHOW(semtimedop(sem, &down, 1, &little));
  semctl(sem, 0, IPC_RMID);
  int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  struct { long type; char text[32]; } message = {5, "a message"}, got = {0};
  SHOW(msgsnd(queue, &message, 10, 0));
  SHOW(msgrcv(queue, &got, sizeof got.text, -9, 0));
  printf("%ld %s\n", got.type, got.text);
  SHOW(msgrcv(queue, &got, sizeof got.text, 0, IPC_NOWAIT));
  msgctl(queue, IPC_RMID, NULL);
  SHOW(shmdt(m));
  SHOW(shmdt(m));
  return 0;
}
