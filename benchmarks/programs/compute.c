/* argv[1] million rounds of arithmetic and no call: what being recorded costs between calls. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  unsigned long word = 88172645463325252ul;
  for (long left = (argc > 1 ? atol(argv[1]) : 1) * 1000000; left > 0; left--) {
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
  }
  printf("%lx\n", word);
  return 0;
}
