/* fds.c - descriptors: the core's own are hidden, and which ones show the recording's output is known.
 *
 * Guarantees: no call of the program can name, close, replace or list a hidden descriptor; the class of a
 * descriptor is asked of the kernel once and forgotten when the program changes it.
 */
#include "core.h"

int hidden_fd(u64 fd) {
  u32 n = (u32)fd;
  return (n >= space.fd_base && n < space.fd_base + RR_FD_COUNT) || n == space.control_fd;
}

static int same_file(const struct stat_k *s, u64 dev, u64 ino, u64 rdev) {
  return ino && s->dev == dev && s->ino == ino && s->rdev == rdev;
}

u32 fd_class(struct thread *th, u64 fd) {
  if (fd < FD_CACHE && th->process->fd_class[fd]) return th->process->fd_class[fd];
  struct stat_k s;
  u32 class = FD_OTHER;
  if (SYS2(RR_NR_fstat, fd, &s) >= 0) {
    if (same_file(&s, GLOBAL->out_dev, GLOBAL->out_ino, GLOBAL->out_rdev))
      class = FD_OUT;
    else if (same_file(&s, GLOBAL->err_dev, GLOBAL->err_ino, GLOBAL->err_rdev))
      class = FD_ERR;
    else
      class = memory_class(th, fd, &s);
  }
  if (fd < FD_CACHE) th->process->fd_class[fd] = (u8)class;
  return class;
}

void fd_changed(struct thread *th, u64 fd) {
  if (fd < FD_CACHE) th->process->fd_class[fd] = th->process->unmapped[fd] = th->process->fd_waits[fd] = 0;
}

/* O_NONBLOCK of some open file was changed: through which descriptors it is open is not known. */
void fd_modes_changed(struct thread *th) { clear_bytes(th->process->fd_waits, FD_CACHE); }

/* Whether reading or writing it may wait for somebody else: not a regular file, not a socket or an event that is in
 * non-blocking mode. Pipes and terminals are often shared with processes that may change the mode: they may wait. */
int fd_waits(struct thread *th, u64 fd) {
  if (fd < FD_CACHE && th->process->fd_waits[fd]) return th->process->fd_waits[fd] == 1;
  struct stat_k s;
  int waits = 1;
  if (SYS2(RR_NR_fstat, fd, &s) >= 0) {
    u32 type = s.mode & S_IFMT;
    s64 mode = SYS2(RR_NR_fcntl, fd, F_GETFL);
    if (type == S_IFREG || type == S_IFDIR) waits = 0;
    if ((type == S_IFSOCK || type == 0) && mode > 0 && mode & O_NONBLOCK) waits = 0;
  }
  if (fd < FD_CACHE) th->process->fd_waits[fd] = waits ? 1 : 2;
  return waits;
}

/* close_range skips the hidden ones. */
s64 do_close_range(struct thread *th, u64 *args) {
  u32 first = (u32)args[0], last = (u32)args[1], base = space.fd_base;
  s64 result = 0;
  for (u32 fd = first; fd <= last && fd < FD_CACHE; fd++) fd_changed(th, fd);
  if (last < base || first >= base + RR_FD_COUNT) return SYS3(RR_NR_close_range, first, last, args[2]);
  if (first < base) result = SYS3(RR_NR_close_range, first, base - 1, args[2]);
  if (result >= 0 && last >= base + RR_FD_COUNT) result = SYS3(RR_NR_close_range, base + RR_FD_COUNT, last, args[2]);
  return result;
}

struct dirent_k { u64 ino; s64 off; u16 len; u8 type; char name[]; };

static int names_hidden(const char *name) {
  u64 value = 0;
  if (*name < '0' || *name > '9') return 0;
  while (*name >= '0' && *name <= '9') value = value * 10 + (u64)(*name++ - '0');
  return !*name && hidden_fd(value);
}

/* Takes the hidden descriptors out of a listing of /proc/PID/fd or fdinfo. Returns the bytes that are left. */
s64 hide_in_directory(u64 fd, u8 *entries, s64 bytes) {
  int found = 0;
  for (s64 at = 0; at < bytes;) {
    struct dirent_k *entry = (struct dirent_k *)(entries + at);
    if (names_hidden(entry->name)) found = 1;
    if (!entry->len) return bytes;
    at += entry->len;
  }
  if (!found) return bytes;
  u64 statfs[15] = {0};
  if (SYS2(RR_NR_fstatfs, fd, statfs) < 0 || statfs[0] != 0x9fa0) return bytes;
  s64 to = 0;
  for (s64 at = 0; at < bytes;) {
    struct dirent_k *entry = (struct dirent_k *)(entries + at);
    u16 len = entry->len;
    if (!names_hidden(entry->name)) {
      if (to != at)
        for (u16 i = 0; i < len; i++) entries[to + i] = entries[at + i];
      to += len;
    }
    at += len;
  }
  return to;
}
