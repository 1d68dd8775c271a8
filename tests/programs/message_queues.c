/* message_queues.c - POSIX message queues: priorities, attributes, timeouts, notification by a signal. */
#include "show.h"
#include <mqueue.h>
static volatile int told;
static void handler(int sig, siginfo_t *info, void *context) { told = info->si_value.sival_int; }
int main(void) {
  char name[64], text[128];
  unsigned priority;
  struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = 64};
  snprintf(name, sizeof name, "/rr-py-test-%d", getpid());
  mqd_t q = mq_open(name, O_CREAT | O_RDWR, 0600, &a);
  if (q < 0) {
    puts("no message queues");
    return 0;
  }
  mq_unlink(name);
  handle(SIGUSR1, handler, 0);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 55};
  SHOW(mq_notify(q, &event));
  SHOW(mq_send(q, "low", 3, 1));
  printf("told %d\n", told);
  SHOW(mq_send(q, "high", 4, 9));
  SHOW(mq_getattr(q, &a));
  printf("%ld\n", a.mq_curmsgs);
  SHOW(mq_receive(q, text, sizeof text, &priority));
  printf("%.4s %u\n", text, priority);
  SHOW(mq_receive(q, text, 3, &priority));
  SHOW(mq_receive(q, text, sizeof text, NULL));
  SHOW(mq_timedreceive(q, text, sizeof text, NULL, &(struct timespec){1, 0}));
  return 0;
}
