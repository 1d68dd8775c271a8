/* show.h - what the small programs share: print a call with its result, and fail loudly when the set-up fails. */
#ifndef SHOW_H
#define SHOW_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Prints the text of a call, its result, and errno's name when it is negative. */
#define SHOW(call)                                                                                  \
  do {                                                                                              \
    errno = 0;                                                                                      \
    long result_ = (long)(call);                                                                    \
    int error_ = errno;                                                                             \
    if (result_ < 0)                                                                                \
      printf("%s = %ld %s\n", #call, result_, error_ ? strerrorname_np(error_) : "");               \
    else                                                                                            \
      printf("%s = %ld\n", #call, result_);                                                         \
    fflush(stdout);                                                                                 \
  } while (0)

/* The same for results that differ from run to run: only whether it worked. */
#define WORKS(call)                                                                                 \
  do {                                                                                              \
    errno = 0;                                                                                      \
    long result_ = (long)(call);                                                                    \
    int error_ = errno;                                                                             \
    printf("%s: %s\n", #call, result_ >= 0 ? "ok" : strerrorname_np(error_));                       \
    fflush(stdout);                                                                                 \
  } while (0)

#define NEED(call)                                                                                  \
  do {                                                                                              \
    if (!(call)) {                                                                                  \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno));               \
      exit(99);                                                                                     \
    }                                                                                               \
  } while (0)

static inline void show_status(const char *what, int status) {
  if (WIFEXITED(status))
    printf("%s exited %d\n", what, WEXITSTATUS(status));
  else if (WIFSIGNALED(status))
    printf("%s killed by %d%s\n", what, WTERMSIG(status), "");
  else if (WIFSTOPPED(status))
    printf("%s stopped by %d\n", what, WSTOPSIG(status));
  else if (WIFCONTINUED(status))
    printf("%s continued\n", what);
  fflush(stdout);
}

static inline void handle(int sig, void (*handler)(int, siginfo_t *, void *), int flags) {
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  NEED(sigaction(sig, &action, NULL) == 0);
}

/* Waits until a task sleeps in the kernel (state S in /proc): a handshake without a sleep. */
static inline void await_sleep(pid_t pid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  for (;;) {
    int fd = open(path, O_RDONLY);
    if (fd < 0) return;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return;
    text[n] = 0;
    char *at = strrchr(text, ')');
    if (at && (at[2] == 'S' || at[2] == 'Z' || at[2] == 'T')) return;
    sched_yield();
  }
}
#endif
