/* Lines written by threads and by children at the same time come out in the recorded order. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static void say(const char *who, int i) {
  char b[64];
  int n = snprintf(b, sizeof b, "%s %d\n", who, i);
  write(1, b, (size_t)n);
  usleep(i % 3);
}
static void *work(void *arg) { for (int i = 0; i < 30; i++) say(arg, i); return NULL; }
int main(void) {
  pthread_t t[2];
  char *names[] = {"one", "two"};
  for (int i = 0; i < 2; i++) {
    if (!fork()) { for (int k = 0; k < 30; k++) say(i ? "child b" : "child a", k); _exit(0); }
    pthread_create(&t[i], NULL, work, names[i]);
  }
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  while (wait(NULL) > 0) {}
}
