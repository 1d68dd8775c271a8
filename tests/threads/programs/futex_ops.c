/* Futex operations called directly: wake, wake_op, requeue, bitset waits, lock_pi and its failures, timeouts, waitv. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdint.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>
static uint32_t a, b, c, pi;
static long fut(uint32_t *u, int op, uint32_t v, void *t, uint32_t *u2, uint32_t v3) {
  long r = syscall(SYS_futex, u, op, v, t, u2, v3);
  return r < 0 ? -errno : r;
}
static volatile int waiting, woken;
static void *wait_a(void *x) { __atomic_fetch_add(&waiting, 1, 5); while (fut(&a, FUTEX_WAIT, 0, NULL, NULL, 0) == -EINTR) {} __atomic_fetch_add(&woken, 1, 5); return x; }
static void *wait_bits(void *x) { __atomic_fetch_add(&waiting, 1, 5); fut(&b, FUTEX_WAIT_BITSET, 0, NULL, NULL, (uint32_t)(long)x); __atomic_fetch_add(&woken, 1, 5); return x; }
static void *take_pi(void *x) {
  long r = fut(&pi, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
  uint32_t mine = (pi & FUTEX_TID_MASK) == (uint32_t)syscall(SYS_gettid);
  usleep(3000);
  long u = fut(&pi, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
  printf("pi %ld %u %ld\n", r, mine, u);
  return x;
}
static void settle(int n) { while (__atomic_load_n(&waiting, 5) < n) usleep(1000); usleep(30000); }
int main(void) {
  pthread_t t[6];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, wait_a, NULL);
  settle(4);
  printf("wake %ld\n", fut(&a, FUTEX_WAKE, 1, NULL, NULL, 0));
  printf("requeue %ld\n", fut(&a, FUTEX_CMP_REQUEUE, 1, (void *)2L, &c, 0));
  printf("again %ld\n", fut(&a, FUTEX_CMP_REQUEUE, 1, (void *)2L, &c, 9));
  printf("op %ld\n", fut(&a, FUTEX_WAKE_OP, 1, (void *)2L, &c, FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0)));
  printf("c %u\n", c);
  fut(&a, FUTEX_WAKE, 9, NULL, NULL, 0);
  fut(&c, FUTEX_WAKE, 9, NULL, NULL, 0);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  waiting = 0;
  for (long i = 0; i < 3; i++) pthread_create(&t[i], NULL, wait_bits, (void *)(1L << i));
  settle(3);
  printf("bits %ld\n", fut(&b, FUTEX_WAKE_BITSET, 9, NULL, NULL, 5));
  printf("bits %ld\n", fut(&b, FUTEX_WAKE_BITSET, 9, NULL, NULL, 2));
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  struct timespec soon = {0, 2000000};
  printf("timeout %d\n", fut(&a, FUTEX_WAIT, 0, &soon, NULL, 0) == -ETIMEDOUT);
  printf("value %d\n", fut(&a, FUTEX_WAIT, 1, NULL, NULL, 0) == -EAGAIN);
  pi = (uint32_t)syscall(SYS_gettid);
  printf("deadlock %ld try %ld\n", fut(&pi, FUTEX_LOCK_PI, 0, NULL, NULL, 0), fut(&pi, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
  for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, take_pi, NULL);
  usleep(30000);
  printf("held %d waiters %d\n", (pi & FUTEX_TID_MASK) == (uint32_t)syscall(SYS_gettid), pi >> 31);
  printf("unlock %ld\n", fut(&pi, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
  for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
  printf("free %u perm %ld\n", pi, fut(&pi, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
  pi = 0;
  printf("try %ld\n", fut(&pi, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
  printf("woken %d\n", woken);
}
