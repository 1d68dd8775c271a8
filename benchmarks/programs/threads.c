/* argv[1] threads make argv[2] calls of getppid together: how the cost grows with threads. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static long calls;

static void *caller(void *unused) {
  for (long left = calls; left > 0; left--) getppid();
  return unused;
}

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 1;
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  calls = (argc > 2 ? atol(argv[2]) : 1000) / count;
  for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, caller, NULL);
  for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
  free(threads);
  return 0;
}
