/* One thread writes past the end of a name; another one crashes over it two seconds later.
 *
 * The accounts lie one behind the other, each a name of eight bytes and a pointer to its balance. A name that does not
 * fit changes the pointer behind it. Nobody notices until the pointer is used. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct account {
  char name[8];
  long *balance;
};

static struct account accounts[4];

static void rename_account(struct account *account, const char *name) {
  for (size_t i = 0; i <= strlen(name); i++)
    account->name[i] = name[i]; /* the guilty line */
}

static void *clerk(void *unused) {
  static const char *names[] = {"Ada", "Grace", "Margarethe", "Joan"};
  for (int i = 0; i < 4; i++) {
    rename_account(&accounts[i], names[i]);
    usleep(1000);
  }
  return unused;
}

static void pay_in(struct account *account, long amount) {
  *account->balance += amount; /* the line that crashes */
}

static void *teller(void *unused) {
  for (int round = 0; round < 20; round++) {
    usleep(100000);
    pay_in(&accounts[round % 2], 10);
  }
  pay_in(&accounts[2], 10);
  return unused;
}

int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 4; i++)
    accounts[i].balance = calloc(1, sizeof(long));
  pthread_create(&threads[0], NULL, clerk, NULL);
  pthread_create(&threads[1], NULL, teller, NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  puts("all is well");
  return 0;
}
