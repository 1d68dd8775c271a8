/* time_stamps.c - the time stamp counter only goes forward, past the time when it is computed, and in a child as in its parent. */
#include "show.h"
#include <x86intrin.h>
static unsigned long long raw(void) {
  struct timespec t;
  NEED(clock_gettime(CLOCK_MONOTONIC_RAW, &t) == 0);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}
int main(void) {
  unsigned long long last = __rdtsc(), end = raw() + 400000000, from_child = 0;
  int back = 0, same = 0, fds[2];
  unsigned where;
  while (raw() < end) {
    unsigned long long now = __rdtscp(&where);
    back += now < last;
    same += now == last;
    last = now;
  }
  printf("%d back, %d the same, processor %d\n", back, same, (where & 0xfff) < 4096 && where >> 12 < 64);
  NEED(!pipe(fds));
  fflush(stdout);
  if (!fork()) {
    from_child = __rdtsc();
    write(fds[1], &from_child, sizeof from_child);
    return 0;
  }
  NEED(read(fds[0], &from_child, sizeof from_child) == sizeof from_child);
  printf("%d %d\n", from_child > last, __rdtsc() > from_child);
  return 0;
}
