/* personalities.c - personality: read, randomisation switched by the program and inherited by what it executes. */
#include "show.h"
#include <sys/personality.h>
int main(int argc, char **argv) {
  if (argc > 1) {
    printf("after exec %x\n", personality(0xffffffff));
    return 0;
  }
  printf("%x\n", personality(0xffffffff));
  SHOW(personality(READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE));
  printf("%x\n", personality(0xffffffff));
  SHOW(personality(0));
  printf("%x\n", personality(0xffffffff));
  if (!fork()) { /* as programs do that need fixed addresses */
    personality(ADDR_NO_RANDOMIZE);
    execl("/proc/self/exe", "x", "y", NULL);
  }
  wait(NULL);
  fflush(stdout);
  execl("/proc/self/exe", "x", "y", NULL);
  return 1;
}
