/* A list changed by several threads without a lock: the same nodes are lost in every replay. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct node { struct node *next; long value; };
static struct node *volatile head;
static void *work(void *arg) {
  for (long i = 0; i < 300; i++) {
    struct node *n = malloc(sizeof *n);
    n->value = (long)arg * 1000 + i;
    n->next = head;
    if (i % 5 == 0) usleep(1);
    head = n;
    if (i % 11 == 0 && head) {
      struct node *gone = head;
      sched_yield();
      head = gone->next;
    }
  }
  return NULL;
}
int main(void) {
  pthread_t t[4];
  for (long i = 0; i < 4; i++) pthread_create(&t[i], NULL, work, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  unsigned long sum = 0;
  int length = 0;
  for (struct node *n = head; n && length < 100000; n = n->next, length++) sum = sum * 33 + (unsigned long)n->value;
  printf("%d %lx %p\n", length, sum, (void *)head);
}
