/* Makes argv[1] calls of getppid: what one recorded call costs. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  for (long left = argc > 1 ? atol(argv[1]) : 1000; left > 0; left--) getppid();
  return 0;
}
