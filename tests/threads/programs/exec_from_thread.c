/* A thread that is not the leader execs while others block and spin: the image starts as the leader. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
static void *blocks(void *arg) { char b; read(0, &b, 0); pause(); return arg; }
static void *spins(void *arg) { for (;;) getppid(); return arg; }
static void *execs(void *arg) {
  usleep(20000);
  char *argv[] = {"prog", "again", NULL};
  execv(arg, argv);
  perror("exec");
  return NULL;
}
int main(int argc, char **argv) {
  if (argc > 1) {
    printf("%s %d\n", argv[1], getpid() == syscall(SYS_gettid));
    return 7;
  }
  pthread_t t;
  printf("before\n");
  fflush(stdout);
  pthread_create(&t, NULL, blocks, NULL);
  pthread_create(&t, NULL, spins, NULL);
  pthread_create(&t, NULL, execs, "/proc/self/exe");
  pause();
}
