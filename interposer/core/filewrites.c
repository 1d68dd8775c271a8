/* filewrites.c - what calls on a file do to mappings of it, in this process and in the others of the recording.
 *
 * Guarantees: what a recorded process writes to a file is in the log of every process that maps it, at the latest behind
 * the first call that process makes afterwards: whoever has been told of the write has made one. A recording without mapped
 * files pays nothing.
 */
#include "core.h"

/* ---- which files are mapped by anybody: never taken back; one too many costs time only ---- */

static u32 *version_of(u64 dev, u64 ino) {
  return (u32 *)RR_FILE_VERSIONS + (((dev * 0x9e3779b97f4a7c15ul ^ ino) * 0x9fb21c651e98df25ul) >> 40) % RR_FILE_HASHES;
}

void watch_file(const struct stat_k *s) {
  u32 *version = version_of(s->dev, s->ino), unmapped = 0;
  if (__atomic_compare_exchange_n(version, &unmapped, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    __atomic_fetch_add((u32 *)&GLOBAL->mapped_generation, 1, __ATOMIC_ACQ_REL);
}

u32 file_version(const struct stat_k *s) { return __atomic_load_n(version_of(s->dev, s->ino), __ATOMIC_ACQUIRE); }

/* ---- writes are told to all, in a short list ---- */

static void list_lock(struct thread *th) { shared_lock(th, &GLOBAL->writes_lock); }
static void list_unlock(struct thread *th) { shared_unlock(th, &GLOBAL->writes_lock); }

static void tell(struct thread *th, const struct rr_file_write *write) {
  list_lock(th);
  u64 number = GLOBAL->writes;
  u32 *version = version_of(write->dev, write->ino);
  copy_bytes((void *)&GLOBAL->file_writes[number % RR_FILE_WRITES], write, sizeof *write);
  *version = *version + 1 ? *version + 1 : 1;
  __atomic_store_n(&GLOBAL->writes, number + 1, __ATOMIC_RELEASE);
  if (space.writes_seen == number) space.writes_seen = number + 1;
  list_unlock(th);
}

/* ---- the mappings of this process ---- */

static int is_mapped(u64 dev, u64 ino) {
  for (u32 i = 0; i < space.nshared; i++)
    if (space.shared[i].ino == ino && space.shared[i].dev == dev) return 1;
  return 0;
}

/* Pages behind a file's end cannot be touched, and come into being when it grows. */
static void log_length(struct thread *th, const struct rr_file_write *w) {
  struct rr_length length = {.bytes = page_up(w->size)};
  for (u32 i = 0; i < space.nshared; i++) {
    struct shared_map *m = &space.shared[i];
    if (!m->ino || m->private || m->ino != w->ino || m->dev != w->dev || m->size == length.bytes) continue;
    m->size = length.bytes;
    if (!length.file && m->file) {
      length.file = m->file;
      log_bytes(th, RR_R_LENGTH, 255, 0, &length, sizeof length);
    }
  }
}

static void log_range(struct thread *th, const struct rr_file_write *w) {
  for (u32 i = 0; i < space.nshared; i++) {
    struct shared_map *m = &space.shared[i];
    if (!m->ino || m->ino != w->ino || m->dev != w->dev) continue;
    u64 low = w->from > m->off ? w->from : m->off, high = w->to < m->off + m->len ? w->to : m->off + m->len;
    u64 end = page_up(w->size);
    if (m->private && end > m->size) end = m->size; /* what the file has gained has no place in a replay's copy */
    if (high > end) high = end;
    if (low < high) log_region(th, RR_R_OUT, 255, m->addr + (low - m->off), high - low);
  }
}

/* ---- a call of this process ---- */

/* Which file it has written. -1: none; `*path`: it is named by its first argument. */
static s32 written_file(u64 nr, const u64 *args, s64 result, int *path) {
  *path = nr == RR_NR_truncate;
  switch (nr) {
    case RR_NR_write: case RR_NR_writev: case RR_NR_sendfile: case RR_NR_pwrite64: case RR_NR_pwritev: case RR_NR_pwritev2:
    case RR_NR_ftruncate: case RR_NR_fallocate: case RR_NR_truncate: return (s32)args[0];
    case RR_NR_copy_file_range: case RR_NR_splice: return (s32)args[2];
    case RR_NR_open: return args[1] & O_TRUNC ? (s32)result : -1;
    case RR_NR_openat: return args[2] & O_TRUNC ? (s32)result : -1;
    case RR_NR_creat: return (s32)result;
    default: return -1;
  }
}

/* 0: which part is not known. */
static int written_range(u64 nr, const u64 *args, s64 result, s32 fd, struct rr_file_write *w) {
  s64 at;
  switch (nr) {
    case RR_NR_open: case RR_NR_creat: case RR_NR_openat: w->from = w->to = 0; return 1;
    case RR_NR_pwrite64: case RR_NR_pwritev: case RR_NR_pwritev2:
      if (args[3] == ~0ul) break;
      w->from = args[3], w->to = w->from + (u64)result;
      return 1;
    case RR_NR_truncate: case RR_NR_ftruncate: w->from = args[1], w->to = page_up(args[1]); return 1;
    case RR_NR_fallocate: w->from = args[2], w->to = w->from + args[3]; return 1;
    case RR_NR_copy_file_range: case RR_NR_splice:
      if (args[3] && !rr_load64(&w->to, (void *)args[3])) {
        w->from = w->to - (u64)result;
        return 1;
      }
      break;
    default: break;
  }
  at = SYS3(RR_NR_lseek, fd, 0, 1);
  if (at < 0) return 0;
  w->to = (u64)at, w->from = w->to - (u64)result;
  return 1;
}

void log_file_writes(struct thread *th, u64 nr, const u64 *args, s64 result) {
  struct rr_file_write w;
  struct stat_k s;
  int path;
  s32 fd = written_file(nr, args, result, &path);
  if (fd < 0 && !path) return;
  u32 *unmapped = !path && (u32)fd < FD_CACHE ? &th->process->unmapped[fd] : NULL;
  u32 generation = __atomic_load_n(&GLOBAL->mapped_generation, __ATOMIC_ACQUIRE);
  if (unmapped && *unmapped == generation) return;
  if (path ? SYS2(RR_NR_stat, args[0], &s) < 0 : SYS2(RR_NR_fstat, fd, &s) < 0) return;
  if (!file_version(&s)) {
    if (unmapped) *unmapped = generation;
    return;
  }
  w.dev = s.dev;
  w.ino = s.ino;
  w.size = (u64)s.size;
  if (is_mapped(s.dev, s.ino)) log_length(th, &w);
  if (!written_range(nr, args, result, fd, &w)) return;
  if (is_mapped(s.dev, s.ino)) log_range(th, &w);
  tell(th, &w);
}

/* ---- calls of others, behind a call of this process ---- */

static void log_write(struct thread *th, const struct rr_file_write *w) {
  if (!is_mapped(w->dev, w->ino)) return;
  log_length(th, w);
  log_range(th, w);
}

void log_writes_of_others(struct thread *th, u64 nr, u64 ip) {
  struct rr_file_write fresh[RR_FILE_WRITES];
  list_lock(th);
  u64 last = GLOBAL->writes, first = space.writes_seen, count;
  int missed = last - first > RR_FILE_WRITES;
  count = missed ? 0 : last - first;
  for (u64 i = 0; i < count; i++) copy_bytes(&fresh[i], (void *)&GLOBAL->file_writes[(first + i) % RR_FILE_WRITES], sizeof fresh[0]);
  for (u32 i = 0; i < space.nshared; i++) {
    struct shared_map *m = &space.shared[i];
    u32 version = *version_of(m->dev, m->ino);
    m->changed = version != m->version;
    m->version = version;
  }
  list_unlock(th);
  space.writes_seen = last;
  if (!space.nshared || !logging()) return;
  log_begin(th, RR_K_DATA, (u32)nr, ip, NULL);
  for (u64 i = 0; i < count; i++) log_write(th, &fresh[i]);
  if (missed)
    for (u32 i = 0; i < space.nshared; i++) {
      const struct shared_map *m = &space.shared[i];
      struct rr_file_write all = {m->dev, m->ino, 0, ~0ul, m->size};
      if (m->ino && m->changed) log_range(th, &all);
    }
  if (th->event.payload_len)
    log_commit(th, RR_K_PREEMPT);
  else
    log_abandon(th);
}
