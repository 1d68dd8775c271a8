/* late_code.c - CPUID in code that is made executable after threads exist, by mprotect and by a shared mapping. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned (*made)(void);

/* push %rbx; mov $leaf,%eax; xor %ecx,%ecx; cpuid; mov %edx,%eax; pop %rbx; ret */
static void write_code(unsigned char *at, unsigned leaf) {
  static const unsigned char head[] = {0x53, 0xb8}, tail[] = {0x31, 0xc9, 0x0f, 0xa2, 0x89, 0xd0, 0x5b, 0xc3};
  memcpy(at, head, 2);
  memcpy(at + 2, &leaf, 4);
  memcpy(at + 6, tail, sizeof tail);
}

static pthread_barrier_t ready;
static unsigned char *code;
static unsigned found;

static void *other(void *unused) {
  pthread_barrier_wait(&ready);
  pthread_barrier_wait(&ready);
  found = ((made)(code + 64))();
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_barrier_init(&ready, NULL, 2);
  code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  write_code(code, 0x80000002);
  write_code(code + 64, 0x80000003);
  write_code(code + 128, 0x80000004);
  pthread_create(&thread, NULL, other, NULL);
  pthread_barrier_wait(&ready);
  mprotect(code, 4096, PROT_READ | PROT_EXEC);
  unsigned mine = ((made)code)();
  pthread_barrier_wait(&ready);
  pthread_join(thread, NULL);
  printf("%x %x\n", mine, found);
  fflush(stdout);
  if (!fork()) {
    printf("%x\n", ((made)(code + 128))());
    return 0;
  }
  wait(NULL);
  int fd = memfd_create("code", 0);
  ftruncate(fd, 4096);
  unsigned char *writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  write_code(writable, 0x80000005);
  made shared = (made)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
  printf("%x\n", shared());
  return 0;
}
