/* Threads that hand a token round by spinning only, with a count of the rounds and without: not one call between the
 * first hand-over and the last. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#define THREADS 3
#define ROUNDS 40
static atomic_int turn;
static volatile unsigned long spun[THREADS * 16];
static unsigned long seen[THREADS];
static void *player(void *arg) {
  int me = (int)(long)arg;
  for (int i = 0; i < ROUNDS; i++) {
    if (i % 2)
      while (atomic_load_explicit(&turn, memory_order_acquire) != me) spun[me * 16]++;
    else
      while (atomic_load_explicit(&turn, memory_order_acquire) != me) __builtin_ia32_pause();
    seen[me] = seen[me] * 31 + spun[me * 16];
    atomic_store_explicit(&turn, (me + 1) % THREADS, memory_order_release);
  }
  return NULL;
}
int main(void) {
  pthread_t t[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, player, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < THREADS; i++) printf("%d: %lu %lx\n", i, spun[i * 16], seen[i]);
}
