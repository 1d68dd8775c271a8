/* orphan_last.c - the first program ends while its child still runs and prints. */
#include "show.h"
int main(void) {
  int gone[2];
  setbuf(stdout, NULL);
  NEED(!pipe(gone));
  if (!fork()) {
    char c;
    close(gone[1]);
    read(gone[0], &c, 1);
    puts("child: the parent is gone");
    _exit(4);
  }
  puts("parent: ends");
  return 6;
}
