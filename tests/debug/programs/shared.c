/* Memory shared with a file and with a child, changed on the way. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long *anonymous, *file;
__attribute__((noinline)) void change(long n) {
  *anonymous += n; /* line: anonymous */
  *file = *anonymous * 2;
}
int main(void) {
  char name[] = "/tmp/rr-py-shared-XXXXXX";
  int descriptor = mkstemp(name);
  unlink(name);
  if (ftruncate(descriptor, 8192)) return 1;
  file = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  anonymous = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (long n = 1; n <= 10; n++) {
    change(n);
    write(1, ".", 1);
  }
  printf("%ld %ld\n", *anonymous, *file);
  fflush(stdout);
  if (!fork()) {
    change(100);
    _exit(0);
  }
  wait(NULL);
  printf("%ld %ld\n", *anonymous, *file);
  return 0;
}
