/* cashiers.c - two cashiers pay out of one account; now and then it is overdrawn.
 *
 * Each cashier is a process. The balance is a number in a file. A payment looks whether the account covers it,
 * writes an audit line to the disk, and only then takes the money: between the look and the taking, the other
 * cashier may have taken it. Most days the customers come far enough apart.
 *
 * Prints what happened. Exit status: 0 all payments were covered, 1 the account is overdrawn.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPENING_BALANCE = 100, CUSTOMERS = 4, LONGEST_PAUSE_US = 8000 };

static int account, audit;

static long balance(void) {
  char text[32] = "";
  if (pread(account, text, sizeof text - 1, 0) < 0)
    perror("account");
  return atol(text);
}

static void set_balance(long amount) {
  char text[32];
  int length = snprintf(text, sizeof text, "%-20ld\n", amount);
  if (pwrite(account, text, length, 0) != length)
    perror("account");
}

static void write_audit(char cashier, long amount, long seen) {
  char text[80];
  int length = snprintf(text, sizeof text, "cashier %c pays %ld of %ld\n", cashier, amount, seen);
  if (write(audit, text, length) != length || write(STDOUT_FILENO, text, length) != length)
    perror("audit");
  fdatasync(audit);
}

static void pay(char cashier, long amount) {
  long seen = balance();
  if (seen < amount)
    return;
  write_audit(cashier, amount, seen);
  set_balance(balance() - amount);
}

static void serve(char cashier) {
  unsigned random[CUSTOMERS];
  if (getrandom(random, sizeof random, 0) != sizeof random)
    perror("getrandom");
  for (int i = 0; i < CUSTOMERS; i++) {
    usleep(random[i] % LONGEST_PAUSE_US);
    pay(cashier, 20 + random[i] / 65536 % 30);
  }
}

int main(void) {
  char account_name[] = "/tmp/account-XXXXXX", audit_name[] = "/tmp/audit-XXXXXX";
  account = mkstemp(account_name);
  audit = mkstemp(audit_name);
  if (account < 0 || audit < 0) {
    perror("mkstemp");
    return 2;
  }
  unlink(account_name);
  unlink(audit_name);
  set_balance(OPENING_BALANCE);
  for (char cashier = 'A'; cashier <= 'B'; cashier++)
    if (fork() == 0) {
      serve(cashier);
      _exit(0);
    }
  while (wait(NULL) > 0) {
  }
  long left = balance();
  printf(left < 0 ? "OVERDRAWN: %ld\n" : "closing balance %ld\n", left);
  return left < 0;
}
