/* A spin of a program with a lot of resident memory: stopping it is dear, and must not be done all the time. argv[1]: MB. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int flag;
static volatile unsigned long n;
static void *work(void *arg) {
  for (int i = 0; i < 5; i++) usleep(2000);
  flag = 1;
  return arg;
}
int main(int argc, char **argv) {
  size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 0) : 64) << 20;
  unsigned long *memory = malloc(bytes), sum = 0;
  for (size_t i = 0; i < bytes / 8; i++) memory[i] = i * 0x9e3779b97f4a7c15ul;
  pthread_t t;
  pthread_create(&t, NULL, work, NULL);
  while (!flag) n++;
  pthread_join(t, NULL);
  for (size_t i = 0; i < bytes / 8; i += 512) sum += memory[i];
  printf("%lu %lx\n", n, sum);
}
