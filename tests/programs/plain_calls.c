/* plain_calls.c - read, write, pread, pwrite and lseek so often that their places are patched, with every kind of buffer: of 0
 * to 20000 bytes, at odd addresses, up to and across the end of memory, none, read-only; of files that end, are mapped, closed,
 * never were, of pipes and of the output. Prints a sum of results, errors and all bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define PAGE 4096
#define SIZE (8 * PAGE)
static uint64_t sum = 14695981039346656037ul;
static void add(uint64_t value) { sum = (sum ^ value) * 1099511628211ul; }
static void note(ssize_t result) { add((uint64_t)result), add(result < 0 ? (uint64_t)errno : 0); }
static void look(const unsigned char *at, size_t n) { for (size_t i = 0; i < n; i++) add(at[i]); }
int main(void) {
  static const size_t lengths[] = {0, 1, 7, 8, 9, 63, 64, 65, 120, 127, 128, 129, 136, 500, 4096, 8191, 8192, 8193, 20000};
  unsigned char *memory = mmap(NULL, SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end = memory + SIZE;
  const char *constant = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int file = memfd_create("plain", 0), shown = memfd_create("mapped", 0), zero = open("/dev/zero", O_RDWR), p[2];
  if (munmap(end, PAGE) || pipe(p) || ftruncate(shown, 2 * PAGE)) return 1;
  for (unsigned round = 0; round < 60; round++) {
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
      size_t n = lengths[i];
      unsigned char *at = round % 3 == 0 ? memory + round : round % 3 == 1 ? end - n : end - n + round % 17;
      for (size_t k = 0; k < n && at + k < end; k++) at[k] = (unsigned char)(round * 31 + k * (k & 64 ? 7 : 0));
      note(lseek(file, (off_t)(round * 10), SEEK_SET));
      note(write(file, at, n));
      note(pwrite(file, at, n / 2, (off_t)(i * 100)));
      memset(memory, 0xee, SIZE);
      note(pread(file, at, n, 5));
      look(memory, SIZE);
      note(lseek(file, -(off_t)(n / 3), SEEK_END));
      note(read(file, at, n));
      note(read(zero, at, n));
      look(memory, SIZE);
    }
    if (round == 30) {
      unsigned char *view = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, shown, 0);
      note(view != MAP_FAILED);
      memory = memory ? memory : view;
    }
    note(pwrite(shown, end - 300, 300, (off_t)(round * 7)));
    note(write(p[1], end - 100, 100));
    note(read(p[0], memory, 60));
    note(read(p[0], memory + 60, 4000));
    look(memory, 100);
    note(read(file, NULL, 8)), note(write(file, NULL, 8)), note(read(file, (void *)constant, 8)), note(write(file, constant, 8));
    note(read(999, memory, 8)), note(write(77777, memory, 8)), note(read(-1, memory, 8)), note(lseek(p[0], 0, SEEK_CUR));
    note(lseek(zero, 0, 99)), note(read(1022, memory, 1)), note(write(1023, memory, 1));
    if (round % 20 == 0) note(close(file)), file = memfd_create("again", 0);
    if (round % 10 == 0) printf("%u %016lx\n", round, sum), fflush(stdout);
    if (write(1, "line\n", 5) != 5 || write(2, "error\n", 6) != 6) return 2;
  }
  printf("%016lx\n", sum);
  return 0;
}
