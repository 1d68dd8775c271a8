/* exec_scripts.c - exec of scripts: an interpreter with an argument, nested, without a first line, a missing interpreter. */
#include "show.h"
static void script(const char *name, const char *text) {
  int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0755);
  NEED(fd >= 0 && write(fd, text, strlen(text)) > 0);
  close(fd);
}
static void run(const char *name) {
  int status;
  pid_t child = fork();
  if (!child) {
    char *argv[] = {(char *)name, "one", "two words", NULL};
    execv(name, argv);
    printf("%s: %s\n", name, strerrorname_np(errno));
    fflush(stdout);
    _exit(1);
  }
  waitpid(child, &status, 0);
  show_status(name, status);
}
int main(void) {
  char path[4200], text[4300];
  script("plain", "#!/bin/sh\necho \"$0|$1|$2\"; exit 4\n");
  script("option", "#!/bin/sh -u\necho \"$undefined\"; exit 5\n");
  NEED(getcwd(path, 4000));
  snprintf(text, sizeof text, "#!%s/plain x\n", path);
  script("nested", text);
  script("bare", "echo bare\n");
  script("missing", "#!/no/such/interpreter\n");
  script("empty", "#!\n");
  run("./plain");
  run("./option");
  run("./bare");
  run("./missing");
  run("./empty");
  chmod("plain", 0644);
  if (geteuid()) run("./plain");
  if (!fork()) execlp("./bare", "./bare", NULL), _exit(1);
  wait(NULL);
  return 0;
}
