/* places.c - how many system-call instructions are left in the C library's read after it has been used much, with two threads.
 * Says a sum of what was read, too. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int p[2];
static void *waits(void *nothing) {
  char byte;
  read(p[0], &byte, 1);
  return nothing;
}
int main(int argc, char **argv) {
  unsigned char bytes[64], code[96];
  unsigned long sum = 0;
  int file = open("/proc/self/exe", O_RDONLY), left = 0;
  pthread_t other;
  if (pipe(p) || pthread_create(&other, NULL, waits, NULL)) return 1;
  for (int i = 0; i < 200; i++) {
    lseek(file, i, SEEK_SET);
    if (read(file, bytes, sizeof bytes) != sizeof bytes) return 2;
    for (unsigned k = 0; k < sizeof bytes; k++) sum += bytes[k];
  }
  write(p[1], "x", 1);
  pthread_join(other, NULL);
  memcpy(code, (void *)read, sizeof code);
  for (unsigned i = 0; i + 1 < sizeof code; i++) left += code[i] == 0x0f && code[i + 1] == 0x05;
  if (argc > 1) printf("%d\n", left);
  printf("%lu\n", sum);
  return argv[0] == NULL;
}
