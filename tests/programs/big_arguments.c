/* big_arguments.c - an exec with a megabyte of arguments and a megabyte of environment. */
#include "show.h"
int main(int argc, char **argv, char **envp) {
  unsigned sum = 0;
  size_t n = 0;
  for (char **list = argv; *list; list++) n += strlen(*list);
  for (int i = 0; envp[i]; i++)
    for (char *c = envp[i]; *c; c++) sum = sum * 31 + *c;
  if (argc > 9000) {
    printf("%d arguments, %zu bytes, %u\n", argc, n, sum);
    return 0;
  }
  static char *args[10001], *environment[10001];
  for (int i = 0; i < 10000; i++) {
    asprintf(&args[i], "%0100d", i);
    asprintf(&environment[i], "V%d=%0100d", i, i);
  }
  execve("/proc/self/exe", args, environment);
  perror("execve");
  return 1;
}
