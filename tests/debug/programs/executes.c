/* Executes itself once more, and ends with status 7. */
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  if (argc < 2) execl("/proc/self/exe", argv[0], "again", NULL);
  exit(7);
}
