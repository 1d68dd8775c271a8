/* A lock-free ring of several producers and consumers: who gets what differs from run to run, not from replay to replay. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sched.h>
#include <time.h>
#define SIZE 64
struct cell { atomic_ulong turn; unsigned long value; };
static struct cell cells[SIZE];
static atomic_ulong in, out, taken;
static unsigned long sums[3], counts[3];
static void put(unsigned long value) {
  for (;;) {
    unsigned long p = atomic_load(&in);
    struct cell *c = &cells[p % SIZE];
    long d = (long)(atomic_load(&c->turn) - p);
    if (d == 0 && atomic_compare_exchange_weak(&in, &p, p + 1)) {
      c->value = value;
      atomic_store(&c->turn, p + 1);
      return;
    }
    if (d < 0) sched_yield();
  }
}
static int get(unsigned long *value) {
  for (;;) {
    unsigned long p = atomic_load(&out);
    struct cell *c = &cells[p % SIZE];
    long d = (long)(atomic_load(&c->turn) - (p + 1));
    if (d == 0 && atomic_compare_exchange_weak(&out, &p, p + 1)) {
      *value = c->value;
      atomic_store(&c->turn, p + SIZE);
      return 1;
    }
    if (d < 0) return 0;
  }
}
static void *produce(void *arg) {
  struct timespec t = {0, 1000};
  for (unsigned long i = 0; i < 500; i++) {
    put((unsigned long)arg * 100000 + i);
    if (i % 17 == 0) nanosleep(&t, NULL);
  }
  return NULL;
}
static void *consume(void *arg) {
  long me = (long)arg;
  while (atomic_load(&taken) < 1500) {
    unsigned long v;
    if (!get(&v)) {
      sched_yield();
      continue;
    }
    sums[me] = sums[me] * 31 + v;
    counts[me]++;
    atomic_fetch_add(&taken, 1);
  }
  return NULL;
}
int main(void) {
  pthread_t t[6];
  for (unsigned long i = 0; i < SIZE; i++) cells[i].turn = i;
  for (long i = 0; i < 3; i++) pthread_create(&t[i], NULL, produce, (void *)i), pthread_create(&t[i + 3], NULL, consume, (void *)i);
  for (int i = 0; i < 6; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < 3; i++) printf("%lu %lx\n", counts[i], sums[i]);
}
