/* personalities.c - personality: read, randomisation switched by the program and inherited by what it executes. */
#include "show.h"
#include <sys/personality.h>
int main(int argc, char **argv) {
  if (argc > 1) {
    printf("after exec %x\n", personality(0xffffffff) & ~0x40000u);
    return 0;
  }
  printf("%x\n", personality(0xffffffff) & ~0x40000u);
  SHOW(personality(READ_IMPLIES_EXEC) & ~0x40000);
  printf("%x\n", personality(0xffffffff) & ~0x40000u);
  fflush(stdout);
  execl("/proc/self/exe", "x", "y", NULL);
  return 1;
}
