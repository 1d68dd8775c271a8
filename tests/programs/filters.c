/* filters.c - seccomp: strict mode and filters are accepted; filters are not applied to the recorded program. */
#include "show.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
int main(void) {
  struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {1, code};
  SHOW(prctl(PR_GET_SECCOMP));
  SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
  SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
  SHOW(fork() ? wait(NULL) > 0 : (_exit(0), 0));
  return 0;
}
