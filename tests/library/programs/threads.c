#include <pthread.h>
#include <stdio.h>
#include <zlib.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; unsigned long h = 1; int n;
void *run(void *a) {
  for (int i = 0; i < 100; i++) {
    unsigned long x = crc32(0, (void *)&i, 4);
    pthread_mutex_lock(&m); h = h * 31 + x + (long)a; if (++n == 150) pthread_cond_signal(&c); pthread_mutex_unlock(&m);
  }
  return a;
}
int main() {
  pthread_t t[2];
  for (long i = 0; i < 2; i++) pthread_create(t + i, 0, run, (void *)(i + 1));
  pthread_mutex_lock(&m); while (n < 150) pthread_cond_wait(&c, &m); printf("%lu\n", h); pthread_mutex_unlock(&m);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  printf("%lu\n", h);
}
