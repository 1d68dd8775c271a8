/* watches.c - inotify: events with names, overlapping reads, removal; fanotify where it is permitted. */
#include "show.h"
#include <sys/fanotify.h>
#include <sys/inotify.h>
static void drain(int fd) {
  char text[4096] __attribute__((aligned(8)));
  ssize_t n = read(fd, text, sizeof text);
  for (char *at = text; n > 0 && at < text + n;) {
    struct inotify_event *e = (void *)at;
    printf("%x %s\n", e->mask, e->len ? e->name : "-");
    at += sizeof *e + e->len;
  }
}
int main(void) {
  int fd = inotify_init1(IN_NONBLOCK), watch;
  mkdir("folder", 0700);
  watch = inotify_add_watch(fd, "folder", IN_CREATE | IN_DELETE | IN_MODIFY | IN_MOVED_TO | IN_DELETE_SELF);
  SHOW(watch);
  close(open("folder/a", O_CREAT | O_WRONLY, 0600));
  int file = open("folder/with a long name", O_CREAT | O_WRONLY, 0600);
  write(file, "x", 1);
  drain(fd);
  rename("folder/a", "folder/b");
  unlink("folder/b");
  drain(fd);
  SHOW(inotify_rm_watch(fd, watch));
  drain(fd);
  SHOW(inotify_rm_watch(fd, 77));
  SHOW(inotify_add_watch(fd, "missing", IN_CREATE));
  int fan = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY);
  if (fan >= 0 && fanotify_mark(fan, FAN_MARK_ADD, FAN_CLOSE_WRITE, AT_FDCWD, "folder/with a long name") == 0) {
    close(file);
    struct fanotify_event_metadata e;
    if (read(fan, &e, sizeof e) != sizeof e || !(e.mask & FAN_CLOSE_WRITE)) puts("unexpected");
    close(e.fd);
  }
  return 0;
}
