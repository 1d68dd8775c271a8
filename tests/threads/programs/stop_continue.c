/* A child with threads is stopped and continued; the parent sees it; the threads go on. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
static void *work(void *arg) { for (int i = 0; i < 200; i++) usleep(100); return arg; }
int main(void) {
  pid_t p = fork();
  if (!p) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    _exit(4);
  }
  int st;
  usleep(5000);
  kill(p, SIGSTOP);
  waitpid(p, &st, WUNTRACED);
  printf("stopped %d\n", WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP);
  kill(p, SIGCONT);
  waitpid(p, &st, WCONTINUED);
  printf("continued %d\n", WIFCONTINUED(st));
  waitpid(p, &st, 0);
  printf("ended %d\n", WEXITSTATUS(st));
}
