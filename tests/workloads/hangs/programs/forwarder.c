/* forwarder.c - a loop that asks a function of its own for the next event writes to a reader that is slow; what it does
 * before the loop and after it may take as long as it wants. FIXED: the pipe does not wait, what is left goes later. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int input[2], output[2];
static char block[70000];
static size_t left;

__attribute__((noinline)) static int next_event(void) {
  struct pollfd ready = {input[0], POLLIN, 0};
  char event;
  if (poll(&ready, 1, -1) != 1 || read(input[0], &event, 1) != 1) return 0;
  return event;
}

__attribute__((noinline)) static void forward(void) {
  ssize_t done = left ? write(output[1], block, left) : 0;
  if (done > 0) left -= (size_t)done;
}

__attribute__((noinline)) static void on_event(int event) {
  if (event == 'c' || event == 'f') left = sizeof block;
  forward();
}

__attribute__((noinline)) static void prepare(void) { usleep(150000); }
__attribute__((noinline)) static void put_away(void) { usleep(150000); }

static void reader(void) {
  close(input[1]);
  static char part[4096];
  close(output[1]);
  while (read(output[0], part, sizeof part) > 0) usleep(15000);
  _exit(0);
}

static void source(void) {
  for (char event = 'a'; event < 'k'; event++) {
    usleep(20000);
    if (write(input[1], &event, 1) != 1) _exit(1);
  }
  _exit(0);
}

int main(void) {
  prepare();
  if (pipe(input) || pipe(output)) return 1;
  if (!fork()) reader();
  if (!fork()) source();
  close(input[1]);
#ifdef FIXED
  fcntl(output[1], F_SETFL, O_NONBLOCK);
#endif
  for (int event; (event = next_event());) on_event(event);
  close(output[1]);
  put_away();
  while (wait(NULL) > 0) {}
  return 0;
}
