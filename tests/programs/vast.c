/* vast.c - terabytes of reserved addresses, as browsers and their like reserve them: what is mapped, moved, attached and
 * started afterwards lies where there is room, and nothing lies on anything else. */
#include "show.h"
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#define SMALL 40
static struct { char *at; size_t bytes; } reserved[96 + 256 + 256];
static int pieces;
static int reserve(int count, size_t bytes) {
  int all = 1;
  for (int i = 0; i < count; i++, pieces++) {
    reserved[pieces].at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    reserved[pieces].bytes = bytes;
    all &= reserved[pieces].at != MAP_FAILED;
  }
  return all;
}
static char *small[SMALL];
static void *thread(void *at) {
  char on_stack[5000];
  memset(on_stack, (int)(long)at, sizeof on_stack);
  return (void *)(long)(on_stack[4999] == (char)(long)at);
}
static int intact(void) {
  for (int i = 0; i < SMALL; i++)
    if (small[i][0] != i || small[i][4095] != i) return 0;
  return 1;
}
int main(void) {
  char *huge = mmap(NULL, 0x15900000000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  SHOW(huge != MAP_FAILED);
  SHOW(munmap(huge, 0x10806000));
  SHOW(mprotect(huge + 0x10806000, 65536, PROT_READ | PROT_WRITE));
  huge[0x10806000] = 1;
  char *hinted = mmap((void *)0x7ea800000000, 1ul << 33, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  SHOW(hinted != MAP_FAILED);
  hinted[0] = hinted[(1ul << 33) - 1] = 1;
  SHOW(munmap(hinted, 1ul << 33));
  SHOW(reserve(96, 1ul << 35)); /* three terabytes, then what is left between them and the libraries */
  SHOW(reserve(256, 1ul << 28));
  SHOW(reserve(256, 1ul << 22));
  for (int i = 0; i < SMALL; i++) {
    small[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(small[i] != MAP_FAILED);
    memset(small[i], i, 4096);
  }
  for (int i = 0; i < SMALL; i += 2) NEED((small[i] = mremap(small[i], 4096, 1 << 20, MREMAP_MAYMOVE)) != MAP_FAILED);
  SHOW(intact());
  int id = shmget(IPC_PRIVATE, 100000, IPC_CREAT | 0600);
  char *segment = shmat(id, NULL, 0);
  SHOW(segment != (char *)-1);
  strcpy(segment, "attached");
  pthread_t threads[20];
  long right = 0;
  for (long i = 0; i < 20; i++) NEED(!pthread_create(&threads[i], NULL, thread, (void *)i));
  for (int i = 0; i < 20; i++) {
    void *one;
    pthread_join(threads[i], &one);
    right += (long)one;
  }
  SHOW(right);
  char *copy = malloc(5 << 20); /* through a call that reads into much memory while another thread could run */
  int zero = open("/dev/zero", O_RDONLY);
  SHOW(read(zero, copy, 5 << 20));
  puts(segment);
  SHOW(intact());
  SHOW(shmdt(segment));
  shmctl(id, IPC_RMID, NULL);
  int all = 1;
  for (int i = 0; i < pieces; i++) all &= !munmap(reserved[i].at, reserved[i].bytes);
  SHOW(all);
  return 0;
}
