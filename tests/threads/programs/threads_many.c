/* Thousands of threads one after the other: what a thread needs of the core is used again. argv[1]: how many. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static long sum;
static void *work(void *arg) { __atomic_fetch_add(&sum, (long)arg, __ATOMIC_SEQ_CST); return NULL; }
int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 2000, most = 0;
  pthread_t t[4];
  for (long i = 0; i < n; i += 4) {
    for (long k = 0; k < 4; k++)
      if (pthread_create(&t[k], NULL, work, (void *)(i + k))) return 1;
    for (long k = 0; k < 4; k++) pthread_join(t[k], NULL);
  }
  FILE *f = fopen("/proc/self/statm", "r");
  long size;
  if (fscanf(f, "%ld %ld", &size, &most) != 2) return 2;
  printf("%ld bounded %d\n", sum, most < 30000);
}
