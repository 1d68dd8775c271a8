/* memwrite.c - memory that is written by its name in another interface: /proc/PID/mem and process_vm_writev.
 *
 * Guarantees: what the program so writes to its own memory is in the event; what it would write to the memory of another
 * process, whose log would know nothing of it, is refused and reported.
 */
#include "core.h"

#define PROC_MAGIC 0x9fa0

static const char *last_part(const char *path, u32 *length, u32 parts) {
  u32 end = 0, at;
  while (path[end]) end++;
  for (at = end; parts; parts--) {
    end = at;
    while (at && path[at - 1] != '/') at--;
    if (parts > 1 && at) at--;
  }
  *length = end - at;
  return path + at;
}

static int is_own(const struct thread *th, u32 id) { return id == th->pid || thread_by_tid(th, id) != NULL; }

/* FD_MEMORY or FD_FOREIGN_MEMORY where a descriptor is of /proc/PID/mem, else FD_OTHER. */
u32 memory_class(struct thread *th, u64 fd, const struct stat_k *s) {
  u64 statfs[15] = {0};
  char name[32] = "/proc/self/fd/", path[128], digits[12];
  u32 length, at = 14, n = 0;
  if ((s->mode & S_IFMT) != S_IFREG || (s->mode & 0777) != 0600 || s->size) return FD_OTHER;
  if (SYS2(RR_NR_fstatfs, fd, statfs) < 0 || statfs[0] != PROC_MAGIC) return FD_OTHER;
  for (u64 value = (u32)fd; n == 0 || value; value /= 10) digits[n++] = (char)('0' + value % 10);
  while (n) name[at++] = digits[--n];
  name[at] = 0;
  s64 got = SYS3(RR_NR_readlink, name, path, sizeof path - 1);
  if (got < 0) return FD_OTHER;
  path[got] = 0;
  const char *last = last_part(path, &length, 1);
  if (length != 3 || last[0] != 'm' || last[1] != 'e' || last[2] != 'm') return FD_OTHER;
  return is_own(th, (u32)parse_number(last_part(path, &length, 2))) ? FD_MEMORY : FD_FOREIGN_MEMORY;
}

/* Whether this call would write into the memory of another process. */
int writes_foreign_memory(struct thread *th, u64 nr, const u64 *args, u32 class) {
  if (class == FD_FOREIGN_MEMORY) return 1;
  return nr == RR_NR_process_vm_writev && !is_own(th, (u32)args[0]);
}

/* The pages that a successful call of these kinds has written. */
void log_memory_writes(struct thread *th, u64 nr, const u64 *args, s64 result, u32 class) {
  u64 left = (u64)result;
  if (result <= 0) return;
  if (nr == RR_NR_process_vm_writev) {
    for (u64 i = 0; i < args[4] && left; i++) {
      struct iovec v;
      if (rr_copy(&v, (void *)(args[3] + i * sizeof v), sizeof v)) return;
      u64 bytes = v.len < left ? v.len : left;
      log_region(th, RR_R_OUT, 255, v.base, bytes);
      left -= bytes;
    }
  } else if (class == FD_MEMORY) {
    int placed = nr == RR_NR_pwrite64 || nr == RR_NR_pwritev || (nr == RR_NR_pwritev2 && args[3] != ~0ul);
    log_region(th, RR_R_OUT, 255, placed ? args[3] : (u64)SYS3(RR_NR_lseek, args[0], 0, 1) - left, left);
  }
}

/* Replay: bytes go to private memory of whatever protection. 0: they could not be written. */
int write_anyhow(u64 address, const void *data, u64 bytes) {
  s64 fd = SYS3(RR_NR_open, "/proc/self/mem", 1 | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  s64 written = SYS4(RR_NR_pwrite64, fd, data, bytes, address);
  SYS1(RR_NR_close, fd);
  return written == (s64)bytes;
}
