/* Threads and processes that wait for each other at a message queue: full for the one, empty for the other. */
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define MESSAGES 100
static char name[64];
static volatile int *shared;
static void *sender(void *arg) {
  mqd_t q = mq_open(name, O_WRONLY);
  for (int i = 0; i < MESSAGES; i++) mq_send(q, (char *)&i, sizeof i, 0);
  mq_close(q);
  return arg;
}
static long receive(mqd_t q) {
  long sum = 0;
  for (int i = 0, got; i < MESSAGES; i++)
    if (mq_receive(q, (char *)&got, sizeof got, NULL) == sizeof got) sum = sum * 3 + got;
  return sum;
}
int main(void) {
  struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = sizeof(int)};
  snprintf(name, sizeof name, "/rr-py-test-%d", (int)getpid());
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  mqd_t q = mq_open(name, O_RDONLY | O_CREAT, 0600, &a);
  pthread_t t;
  pthread_create(&t, NULL, sender, NULL);
  printf("%lx\n", receive(q));
  pthread_join(t, NULL);
  if (!fork()) {
    sender(NULL);
    _exit(0);
  }
  printf("%lx\n", receive(q));
  wait(NULL);
  mq_unlink(name);
}
