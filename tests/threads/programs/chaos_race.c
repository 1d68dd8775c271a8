/* A check-then-act window of a few instructions between two calls: hardly ever hit, unless the schedule is shaken. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int *volatile slot;
static volatile int failed;
static void *user(void *arg) {
  for (int i = 0; i < 800; i++) {
    if (slot) {
      getppid();
      if (!slot) failed = 1;
    }
    getppid();
  }
  return arg;
}
static void *changer(void *arg) {
  static int value;
  for (int i = 0; i < 800; i++) {
    slot = &value;
    getppid();
    if (i % 50 == 25) slot = NULL;
    getppid();
  }
  return arg;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, NULL, user, NULL);
  pthread_create(&b, NULL, changer, NULL);
  pthread_join(a, NULL);
  pthread_join(b, NULL);
  if (failed) puts("the race was hit");
  return failed;
}
