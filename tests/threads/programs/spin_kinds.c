/* Threads that spin for another in every way that makes no call: what they counted meanwhile replays. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static atomic_int flag, lock;
static volatile int plain;
static volatile unsigned long counts[16];
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static int nested(int depth) { return depth ? nested(depth - 1) + 1 : plain; }
static void *setter(void *arg) {
  (void)arg;
  usleep(30000);
  plain = 1;
  flag = 1;
  lock = 0;
  return NULL;
}
static void *unlocker(void *arg) { (void)arg; pthread_mutex_lock(&m); usleep(60000); pthread_mutex_unlock(&m); return NULL; }
static void *spinlocker(void *arg) { (void)arg; pthread_spin_lock(&spin); usleep(60000); pthread_spin_unlock(&spin); return NULL; }
static double floating(void) {
  double x = 1.0;
  float v[8] __attribute__((aligned(32))) = {1, 2, 3, 4, 5, 6, 7, 8};
  while (!plain) {
    x = x * 1.0000001 + 0.5;
    for (int i = 0; i < 8; i++) v[i] = v[i] * 1.01f + 0.25f;
    if (x > 1e9) x = 1.0;
    for (int i = 0; i < 8; i++) if (v[i] > 1e6f) v[i] = 1;
    counts[8]++;
  }
  double sum = x;
  for (int i = 0; i < 8; i++) sum += v[i];
  return sum;
}
__attribute__((target("avx"))) static double avx(void) {
  __m256d v = _mm256_set_pd(1, 2, 3, 4), step = _mm256_set1_pd(0.125);
  double out[4];
  while (!plain) { v = _mm256_add_pd(v, step); counts[9]++; }
  _mm256_storeu_pd(out, v);
  return out[0] + out[1] + out[2] + out[3];
}
int main(void) {
  pthread_spin_init(&spin, 0);
  double value = 0;
  for (int kind = 0; kind < 10; kind++) {
    pthread_t t;
    plain = flag = 0;
    lock = 1;
    pthread_create(&t, NULL, kind == 5 ? unlocker : kind == 6 ? spinlocker : setter, NULL);
    if (kind == 5 || kind == 6) usleep(20000);
    switch (kind) {
      case 0: while (!plain) {} break;
      case 1: while (!flag) _mm_pause(), counts[1]++; break;
      case 2: while (!plain) sched_yield(), counts[2]++; break;
      case 3: while (!plain) { counts[3]++; counts[10] += counts[3] ^ counts[10] << 3; } break;
      case 4: while (atomic_exchange(&lock, 1)) counts[4]++; break;
      case 5: while (pthread_mutex_trylock(&m)) counts[5]++; pthread_mutex_unlock(&m); break;
      case 6: pthread_spin_lock(&spin); pthread_spin_unlock(&spin); break;
      case 7: while (!nested(20 + (int)(counts[7] % 5)) || !plain) { counts[7]++; if (plain) break; } break;
      case 8: value += floating(); break;
      case 9: if (__builtin_cpu_supports("avx")) value += avx(); break;
    }
    pthread_join(t, NULL);
    printf("%d %lu %lu\n", kind, counts[kind], counts[10]);
  }
  printf("%.17g\n", value);
}
