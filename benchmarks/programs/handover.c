/* Two threads hand a word to each other argv[1] times with a mutex and a condition variable. */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long turn, end;

static void *player(void *own) {
  long side = (long)own;
  pthread_mutex_lock(&lock);
  while (turn < end) {
    if (turn % 2 == side) {
      turn++;
      pthread_cond_signal(&changed);
    } else {
      pthread_cond_wait(&changed, &lock);
    }
  }
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t other;
  end = argc > 1 ? atol(argv[1]) : 1000;
  pthread_create(&other, NULL, player, (void *)1);
  player((void *)0);
  pthread_join(other, NULL);
  return 0;
}
