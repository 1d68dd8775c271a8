/* game.c - a game sleeps between two pictures and waits for nothing else; a new level is read by a program it starts.
 * FIXED: a thread does it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void load_level(void) {
  if (system("sleep 0.25")) abort();
}

static void *loader(void *unused) {
  load_level();
  return unused;
}

__attribute__((noinline)) static void update(int picture) {
  if (picture != 20) return;
#ifdef FIXED
  pthread_t thread;
  if (pthread_create(&thread, NULL, loader, NULL)) abort();
  pthread_detach(thread);
#else
  (void)loader;
  load_level();
#endif
}

int main(void) {
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (int picture = 0; picture < 50; picture++) {
    update(picture);
    next.tv_nsec += 16000000;
    if (next.tv_nsec >= 1000000000) {
      next.tv_nsec -= 1000000000;
      next.tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
  return 0;
}
