/* refuse.c - run a program under a seccomp filter that refuses some calls, as a container's profile does.
 *
 * refuse NUMBER[:FIRST_ARGUMENT]=ERRNO ... -- PROGRAM ARGS
 */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct sock_filter code[256] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  int n = 3, i;
  for (i = 1; i < argc && strcmp(argv[i], "--") && n < 240; i++) {
    char *rest;
    unsigned long number = strtoul(argv[i], &rest, 0);
    int has_argument = *rest == ':';
    unsigned long argument = has_argument ? strtoul(rest + 1, &rest, 0) : 0;
    if (*rest != '=') {
      fprintf(stderr, "refuse: %s is not NUMBER[:ARGUMENT]=ERRNO\n", argv[i]);
      return 125;
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, has_argument ? 3 : 1);
    if (has_argument) {
      code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
      code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | strtoul(rest + 1, NULL, 0));
  }
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {n, code};
  if (i + 1 >= argc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    perror("refuse");
    return 125;
  }
  execvp(argv[i + 1], argv + i + 1);
  perror(argv[i + 1]);
  return 127;
}
