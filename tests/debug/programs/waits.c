/* One of each: a pipe between processes, a lock between threads, a child, a socket, errors, a signal. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready[2];
static void *holds(void *unused) {
  pthread_mutex_lock(&lock);
  write(ready[1], "r", 1);
  usleep(100000);
  pthread_mutex_unlock(&lock);
  return unused;
}
static void nothing(int sig) { (void)sig; }
int main(void) {
  int ends[2];
  char text[64];
  pipe(ends);
  if (!fork()) {
    close(ends[0]);
    usleep(100000);
    write(ends[1], "hello", 5);
    usleep(100000);
    _exit(3);
  }
  close(ends[1]);
  read(ends[0], text, 2);
  read(ends[0], text, sizeof text);
  read(ends[0], text, sizeof text);
  wait(NULL);
  close(ends[0]);
  read(ends[0], text, 1);

  pthread_t thread;
  pipe(ready);
  pthread_create(&thread, NULL, holds, NULL);
  read(ready[0], text, 1);
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);

  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0rr-py-why"};
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  bind(listener, (void *)&address, sizeof address);
  listen(listener, 1);
  if (!fork()) {
    int out = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(out, (void *)&address, sizeof address);
    write(out, "net", 3);
    _exit(0);
  }
  int in = accept(listener, NULL, NULL);
  struct pollfd one = {in, POLLIN, 0};
  poll(&one, 1, -1);
  read(in, text, sizeof text);
  wait(NULL);

  int file = open("gone", O_CREAT | O_RDWR, 0600);
  unlink("gone");
  open("gone", O_RDONLY);

  signal(SIGUSR1, nothing);
  struct sigaction action = {.sa_handler = nothing};
  sigaction(SIGUSR1, &action, NULL);
  pid_t parent = getpid();
  if (!fork()) {
    usleep(100000);
    kill(parent, SIGUSR1);
    _exit(0);
  }
  pause();
  wait(NULL);
  return file < 0;
}
