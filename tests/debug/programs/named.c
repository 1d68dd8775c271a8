/* A thread that names itself. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
__attribute__((noinline)) void before(void) { getppid(); }
static void *work(void *unused) {
  before();
  pthread_setname_np(pthread_self(), "worker");
  pause();
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  usleep(50000);
  return 0;
}
