/* A thread that names itself. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
static int told[2];
__attribute__((noinline)) void before(void) { getppid(); }
static void *work(void *unused) {
  before();
  pthread_setname_np(pthread_self(), "worker");
  write(told[1], "", 1);
  pause();
  return unused;
}
int main(void) {
  pthread_t thread;
  char c;
  pipe(told);
  pthread_create(&thread, NULL, work, NULL);
  read(told[0], &c, 1);
  return 0;
}
