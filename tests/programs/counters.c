/* counters.c - rdtsc, rdtscp, cpuid: the same values in every replay; what cannot be trapped is hidden. */
#include "show.h"
#include <cpuid.h>
#include <x86intrin.h>
int main(void) {
  unsigned a, b, c, d;
  unsigned long long first = __rdtsc(), second = __rdtscp(&a);
  printf("%llu %llu %d\n", first, second, second >= first);
  for (unsigned leaf = 0; leaf < 8; leaf++) {
    __cpuid_count(leaf, 0, a, b, c, d);
    printf("%x: %x %x %x %x\n", leaf, a, b, c, d);
  }
  __cpuid(1, a, b, c, d);
  printf("rdrand %d\n", c >> 30 & 1);
  __cpuid_count(7, 0, a, b, c, d);
  printf("rdseed %d rtm %d\n", b >> 18 & 1, b >> 11 & 1);
  return 0;
}
