/* filled.c - reads of 1 byte to 3 MB that give one byte, or eight, again and again: stored as that, replayed as the memory.
 * Prints a sum of all that was read, and writes each length back. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
static uint64_t sum = 14695981039346656037ul;
static void add(const unsigned char *at, size_t n) { for (size_t i = 0; i < n; i++) sum = (sum ^ at[i]) * 1099511628211ul; }
int main(void) {
  static const size_t lengths[] = {1, 7, 8, 63, 64, 65, 71, 72, 500, 511, 512, 513, 4095, 4096, 65535, 65536, 65537, 1 << 20, 3 << 20};
  int zero = open("/dev/zero", O_RDONLY), file = memfd_create("words", 0);
  unsigned char *buffer = malloc(4 << 20), *other = malloc(4 << 20);
  for (size_t i = 0; i < 4 << 20; i++) other[i] = "eightest"[i % 8];
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    size_t n = lengths[i];
    memset(buffer, 0x5a, 4 << 20);
    if (read(zero, buffer + i, n) != (ssize_t)n) return 1;
    add(buffer, n + 64);
    if (pwrite(file, other, n, 0) != (ssize_t)n || pread(file, buffer + i, n, 0) != (ssize_t)n) return 2;
    add(buffer, n + 64);
    other[n - 1] ^= 1; /* the last byte differs */
    if (pwrite(file, other, n, 0) != (ssize_t)n || pread(file, buffer + i, n, 0) != (ssize_t)n) return 3;
    add(buffer, n + 64);
    other[n - 1] ^= 1;
    struct iovec two[2] = {{buffer, n}, {buffer + n + 1, n / 2}};
    memset(buffer, 0x77, 4 << 20);
    if (n < 2 << 20 && readv(zero, two, 2) != (ssize_t)(n + n / 2)) return 4;
    add(buffer, n * 2 < 4 << 20 ? n * 2 : n);
  }
  printf("%016lx\n", sum);
  return 0;
}
