/* memory.c - the address space: mappings made for real in both modes, at the recorded addresses when replaying.
 *
 * Guarantees: whatever a mapping of a file shows is in the trace (by reference or by content); writes that reach a
 * shared mapping through the file are logged as writes to memory; the core's own range is never given away.
 */
#include "core.h"

int is_memory(u64 nr) {
  switch (nr) {
    case RR_NR_mmap: case RR_NR_munmap: case RR_NR_mremap: case RR_NR_mprotect: case RR_NR_brk: case RR_NR_madvise:
    case RR_NR_shmat: case RR_NR_shmdt: case RR_NR_remap_file_pages: case RR_NR_pkey_mprotect: case RR_NR_pkey_alloc: return 1;
    default: return 0;
  }
}

#define HUGE_PAGE 0x200000ul
#define BELOW_STEP 0x1000000000ul
#define BELOW_LEAST 0x100000000ul

static int overlaps_core(u64 address, u64 len) {
  u64 end = address + page_up(len);
  return len && ((address < RR_END && end > RR_BASE) || (address < RR_SLOT_TABLE + RR_SLOT_TABLE_SIZE && end > RR_SLOT_TABLE));
}

/* ---- shared mappings of this address space ---- */

static void count_shared(void) {
  u32 writable = 0;
  for (u32 i = 0; i < space.nshared; i++) writable += space.shared[i].writable;
  if (space.nshared == MAX_SHARED_MAPS) writable = 1;
  space.writable_shared = writable;
}

static void remember_shared(u64 address, u64 len, const struct stat_k *s, u64 offset, int writable, u32 file) {
  if (space.nshared < MAX_SHARED_MAPS) {
    struct shared_map *m = &space.shared[space.nshared++];
    m->addr = address;
    m->len = page_up(len);
    m->dev = s ? s->dev : 0;
    m->ino = s ? s->ino : 0;
    m->off = offset;
    m->size = s ? page_up((u64)s->size) : 0;
    m->writable = (u32)writable;
    m->private = 0;
    m->file = file;
    m->version = s ? file_version(s) : 0;
  }
  count_shared();
}

/* A page of a private mapping that the program has not written shows what is written to the file. */
static void remember_private(u64 address, u64 len, const struct stat_k *s, u64 offset) {
  if (space.nshared >= MAX_SHARED_MAPS / 2) return;
  watch_file(s);
  remember_shared(address, len, s, offset, 0, 0);
  space.shared[space.nshared - 1].private = 1;
}

static void forget_shared(u64 address, u64 len) {
  u64 end = address + page_up(len);
  for (u32 i = 0; i < space.nshared; i++) {
    struct shared_map *m = &space.shared[i], rest = *m;
    u64 m_end = m->addr + m->len;
    if (address >= m_end || end <= m->addr) continue;
    if (address > m->addr) {
      m->len = address - m->addr;
      if (end >= m_end || space.nshared == MAX_SHARED_MAPS) continue;
      m = &space.shared[space.nshared++];
    } else if (end >= m_end) {
      *m = space.shared[--space.nshared];
      i--;
      continue;
    }
    *m = rest;
    m->off += end - m->addr;
    m->addr = end;
    m->len = m_end - end;
  }
  count_shared();
}

/* After an mremap: of any part of a mapping, as a second view of it (an old length of 0), or leaving the old one. */
static void move_shared(const u64 *args, u64 to) {
  struct shared_map moved = {0};
  for (u32 i = 0; i < space.nshared && !moved.addr; i++)
    if (args[0] - space.shared[i].addr < space.shared[i].len) moved = space.shared[i];
  if (to != args[0]) forget_shared(to, args[2]);
  if (!moved.addr) return;
  if (args[1] && !(args[3] & MREMAP_DONTUNMAP)) forget_shared(args[0], args[1]);
  if (space.nshared == MAX_SHARED_MAPS) return;
  moved.off += args[0] - moved.addr;
  moved.addr = to;
  moved.len = page_up(args[2]);
  space.shared[space.nshared++] = moved;
  count_shared();
}

/* ---- what a mapping shows ---- */

#define KNOWN ((const volatile struct rr_known_files *)RR_FILES)

/* The recorder's earlier answer about this file, or NULL. `shared`: RR_KF_SHARED, or 0 for a private mapping. */
static const struct rr_known_file *known_file(const struct stat_k *s, u64 prot, u32 shared) {
  u32 count = __atomic_load_n(&((struct rr_known_files *)RR_FILES)->count, __ATOMIC_ACQUIRE);
  for (u32 i = 0; i < count && i < RR_FILES_MAX; i++) {
    const struct rr_known_file *file = (const struct rr_known_file *)&KNOWN->files[i];
    if (file->ino == s->ino && file->dev == s->dev && file->size == (u64)s->size && file->mtime == s->times[2] &&
        file->mtime_nsec == s->times[3] && file->ctime == s->times[4] && file->ctime_nsec == s->times[5] &&
        file->first_site + file->nsites <= RR_FILE_SITES_MAX && (file->flags & RR_KF_SHARED) == shared)
      return file->flags & RR_KF_CODE || !(prot & PROT_EXEC) ? file : NULL;
  }
  return NULL;
}

/* Replaces the CPUID instructions at these offsets, ascending: those of one page at a time. */
static void patch_all(u64 base, const u32 *offsets, u32 count, u64 prot) {
  for (u32 i = 0; i < count;) {
    u64 page = (base + offsets[i]) & ~(PAGE - 1);
    int open = prot & PROT_WRITE || SYS3(RR_NR_mprotect, page, PAGE, prot | PROT_WRITE) >= 0 ||
               SYS3(RR_NR_mprotect, page, PAGE, PROT_READ | PROT_WRITE) >= 0;
    for (; i < count && ((base + offsets[i]) & ~(PAGE - 1)) == page; i++) {
      u8 *at = (u8 *)base + offsets[i];
      if (open && *at == 0x0f && at[1] == 0xa2) *at = RR_CPUID_BYTE;
    }
    if (open && !(prot & PROT_WRITE)) SYS3(RR_NR_mprotect, page, PAGE, prot);
  }
}

/* Finds out, from the recorder if need be, what this file is; adds RR_R_FILE to the event; patches CPUID instructions. Returns its number.
 * `file`: the answer if it is known; `own`: it is no file of the system's, and may change. */
static u32 log_mapped(struct thread *th, const u64 *args, u64 address, const struct rr_known_file *file, int *own) {
  static u32 answer[2 + 2048];
  static u32 offsets[2048];
  u32 number, npatches;
  const u32 *patches;
  if (file) {
    number = file->file;
    *own = (file->flags & RR_KF_OWN) != 0;
    npatches = file->nsites;
    patches = (const u32 *)&KNOWN->sites[file->first_site];
  } else {
    s32 fd = (s32)args[4];
    struct rr_msg msg = {.type = RR_M_MAP_FILE, .a = address, .b = args[1], .c = args[5], .d = args[2] | args[3] << 32};
    if (!logging() || ask(&msg, &fd, 1, offsets, sizeof offsets) < 0) return 0;
    number = (u32)msg.a;
    *own = msg.d != 0;
    npatches = msg.b < 2048 ? (u32)msg.b : 2048;
    patches = offsets;
  }
  u32 n = 0, traps = 0;
  if (!(args[2] & PROT_EXEC) || !space.no_cpuid_fault) npatches = 0;
  for (u32 i = 0; i < npatches && n < 2047; i++) {
    if (patches[i] == RR_CPUID_TRAPS)
      traps = 1;
    else if (patches[i] >= args[5] && patches[i] + 2ul <= args[5] + args[1])
      answer[2 + n++] = (u32)(patches[i] - args[5]);
  }
  patch_all(address, answer + 2, n, args[2]);
  if (traps) {
    answer[2 + n++] = RR_TRAPS_MARK;
    late_fault(th);
  }
  answer[0] = number;
  answer[1] = n;
  log_bytes(th, RR_R_FILE, 255, address, answer, 8 + 4ul * n);
  return number;
}

/* Rings of perf events, BPF maps, packets and the like: the kernel writes there whenever it likes. */
static int kernel_writes(s32 fd) {
  struct stat_k s;
  return SYS2(RR_NR_fstat, fd, &s) >= 0 && (!(s.mode & S_IFMT) || (s.mode & S_IFMT) == S_IFSOCK);
}

/* A shared mapping that nobody can write through, of a file that the recorder says nobody writes through another. */
static const struct rr_known_file *known_shared(const u64 *args, int writable) {
  struct stat_k s;
  if (writable || args[2] & PROT_WRITE || SYS2(RR_NR_fstat, (s32)args[4], &s) < 0) return NULL;
  return known_file(&s, args[2], RR_KF_SHARED);
}

/* Programs that reserve a terabyte or more fill what lies above the core's range, and the kernel then takes the gaps in
 * that for free. What it put there goes below: a place for `len` bytes, mapped without rights, or 0. */
static u64 place_below(u64 len) {
  u64 top = space.below ? space.below : RR_BASE;
  len = page_up(len);
  for (u32 i = 0; i < 512 && len + BELOW_LEAST < top; i++) {
    u64 at = (top - len) & ~(HUGE_PAGE - 1);
    s64 got = SYS6(RR_NR_mmap, at, len, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == (s64)at) return space.below = at;
    if (got >= 0 || got < -4095) SYS2(RR_NR_munmap, got, len);
    top = at < top - BELOW_STEP || top < BELOW_STEP ? at : top - BELOW_STEP;
  }
  return 0;
}

static int is_error(s64 result) { return result < 0 && result >= -4095; }

static s64 mapped_apart(s64 result, u64 nr, const u64 *args, u64 prot) {
  if (is_error(result) || args[3] & MAP_FIXED || !overlaps_core((u64)result, args[1])) return result;
  SYS2(RR_NR_munmap, result, args[1]);
  u64 at = place_below(args[1]);
  if (!at) return -ENOMEM;
  result = sys6((s64)nr, at, args[1], prot, (args[3] & ~MAP_FIXED_NOREPLACE) | MAP_FIXED, args[4], args[5]);
  if (is_error(result)) SYS2(RR_NR_munmap, at, args[1]);
  return result;
}

static s64 moved_apart(s64 result, const u64 *args) {
  if (is_error(result) || args[3] & MREMAP_FIXED || !overlaps_core((u64)result, args[2])) return result;
  u64 at = place_below(args[2]);
  if (!at) return result;
  return SYS5(RR_NR_mremap, result, args[2], args[2], MREMAP_MAYMOVE | MREMAP_FIXED, at);
}

static s64 attached_apart(s64 result, const u64 *args, u64 size) {
  if (is_error(result) || args[1] || !overlaps_core((u64)result, size)) return result;
  SYS1(RR_NR_shmdt, result);
  u64 at = place_below(size);
  if (!at) return -ENOMEM;
  result = SYS3(RR_NR_shmat, args[0], at, args[2] | SHM_REMAP);
  if (is_error(result)) SYS2(RR_NR_munmap, at, page_up(size));
  return result;
}

static s64 record_mmap(struct thread *th, u64 nr, u64 *args, u64 ip) {
  u64 flags = args[3], len = args[1];
  int shared = (flags & MAP_TYPE) != MAP_PRIVATE, anonymous = (flags & MAP_ANONYMOUS) != 0, writable = 0;
  const struct rr_known_file *known = NULL;
  struct stat_k s;
  if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) && overlaps_core(args[0], len)) return record_made(th, nr, args, ip, -ENOMEM);
  if (!anonymous && hidden_fd(args[4])) return record_made(th, nr, args, ip, -EBADF);
  if (shared && !anonymous && kernel_writes((s32)args[4])) {
    report(RR_REP_SHARED_OUTSIDE, nr, 0, 0);
    return record_made(th, nr, args, ip, -ENODEV);
  }
  if (shared && !anonymous) {
    writable = (SYS2(RR_NR_fcntl, (s32)args[4], F_GETFL) & 3) != 0;
    known = known_shared(args, writable);
    if (!known) record_join(th, ip, RR_SHARE_FILE, (s32)args[4], 0, args[2] & PROT_WRITE || writable);
  }
  s64 result = sys6((s64)nr, args[0], len, jit_protection(args), flags, args[4], args[5]);
  result = mapped_apart(result, nr, args, jit_protection(args));
  log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
  if (result >= 0 || result < -4095) {
    jit_mapped((u64)result, args);
    if (flags & MAP_FIXED && space.nshared) forget_shared((u64)result, len);
    if (anonymous) {
      if (shared) remember_shared((u64)result, len, NULL, 0, 1, 0);
    } else if (SYS2(RR_NR_fstat, (s32)args[4], &s) >= 0) {
      int own = 0;
      if (shared) watch_file(&s);
      u32 file = log_mapped(th, args, (u64)result, shared ? known : known_file(&s, args[2], 0), &own);
      if (!file && args[2] & PROT_EXEC) late_fault(th);
      if (shared)
        remember_shared((u64)result, len, &s, args[5], writable, file);
      else if (own)
        remember_private((u64)result, len, &s, args[5]);
    }
  }
  log_commit(th, result);
  return result;
}

/* What a segment holds when it is attached: its pages that are not zero, as an event of their own behind shmat's. */
static void log_segment(struct thread *th, u64 nr, u64 ip, u64 address, u64 size) {
  log_begin(th, RR_K_DATA, (u32)nr, ip, NULL);
  for (u64 at = address; at < address + size; at += PAGE) {
    const u64 *words = (const u64 *)at;
    u64 any = 0;
    for (u32 i = 0; i < PAGE / 8; i++) any |= words[i];
    if (any) log_region(th, RR_R_OUT, 1, at, PAGE);
  }
  if (th->event.payload_len)
    log_commit(th, RR_K_PREEMPT);
  else
    log_abandon(th);
}

static s64 record_shmat(struct thread *th, u64 nr, u64 *args, u64 ip) {
  u64 status[16] = {0}, size = 0;
  u32 number = 0;
  if (SYS3(RR_NR_shmctl, args[0], 2, status) >= 0)
    number = record_join(th, ip, RR_SHARE_SYSV, -1, args[0], (u64)!(args[2] & SHM_RDONLY) | (page_up(status[6]) << 1));
  s64 result = attached_apart(SYS3(nr, args[0], args[1], args[2]), args, status[6]);
  log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
  if ((result >= 0 || result < -4095) && SYS3(RR_NR_shmctl, args[0], 2, status) >= 0) {
    size = page_up(status[6]);
    log_bytes(th, RR_R_SIZE, 255, (u64)result, &size, 8);
    if (number) log_bytes(th, RR_R_FILE, 255, (u64)result, (u32[2]){number, 0}, 8);
    remember_shared((u64)result, size, NULL, 0, 1, 0);
  }
  log_commit(th, result);
  if (size) log_segment(th, nr, ip, (u64)result, size);
  return result;
}

s64 record_memory(struct thread *th, u64 nr, u64 *args, u64 ip) {
  s64 result;
  late_fault_call(th, nr, args);
  if (nr != RR_NR_madvise && !++space.map_changes) space.map_changes = 1;
  if (nr == RR_NR_mmap && args[3] & MAP_GROWSDOWN) space.grows_down = 1;
  switch (nr) {
    case RR_NR_mmap: return record_mmap(th, nr, args, ip);
    case RR_NR_shmat: return record_shmat(th, nr, args, ip);
    case RR_NR_pkey_alloc: return record_made(th, nr, args, ip, -28);
    case RR_NR_brk: return record_made(th, nr, args, ip, SYS1(nr, args[0]));
    case RR_NR_shmdt:
      for (u32 i = 0; i < space.nshared; i++)
        if (space.shared[i].addr == args[0]) {
          forget_shared(args[0], space.shared[i].len);
          break;
        }
      return record_made(th, nr, args, ip, SYS1(nr, args[0]));
    default: break;
  }
  if (overlaps_core(args[0], args[1])) return record_made(th, nr, args, ip, nr == RR_NR_munmap || nr == RR_NR_mremap ? -EINVAL : -ENOMEM);
  if (nr == RR_NR_mremap && args[3] & MREMAP_FIXED && overlaps_core(args[4], args[2])) return record_made(th, nr, args, ip, -EINVAL);
  if (nr == RR_NR_mremap) jit_settle(args[0], args[1]);
  if (nr == RR_NR_madvise && args[2] == 8) /* MADV_FREE frees when the kernel likes; DONTNEED frees now */
    result = SYS3(nr, args[0], args[1], 4);
  else
    result = sys6((s64)nr, args[0], args[1], args[2], args[3], args[4], args[5]);
  if (nr == RR_NR_mremap) result = moved_apart(result, args);
  if ((nr == RR_NR_munmap || nr == RR_NR_mprotect || nr == RR_NR_pkey_mprotect) && result >= 0) jit_forget(args[0], args[1]);
  if (nr == RR_NR_munmap && result >= 0 && space.nshared) forget_shared(args[0], args[1]);
  if (nr == RR_NR_mremap && result >= 0 && space.nshared) move_shared(args, (u64)result);
  return record_made(th, nr, args, ip, result);
}

/* ---- replaying ---- */

static void diverge(struct thread *th, const struct rr_event *event) { park(th, RR_DIV_MEMORY, event); }

#define OFFERS ((const volatile struct rr_offers *)RR_FILES)

/* A descriptor of a file that the tool keeps open, and what its offsets differ by; negative where it has to be asked. */
static s32 offered(u32 file, u64 *shift) {
  u64 count = __atomic_load_n(&((struct rr_offers *)RR_FILES)->count, __ATOMIC_ACQUIRE), i = 0;
  while (i < count && OFFERS->offers[i].file != file) i++;
  if (i >= count || i >= RR_OFFERS_MAX) return -1;
  char path[48], *at = path + sizeof path;
  *--at = 0;
  at = decimal_before(at, OFFERS->offers[i].fd);
  copy_bytes(at -= 4, "/fd/", 4);
  at = decimal_before(at, GLOBAL->tool_pid);
  copy_bytes(at -= 6, "/proc/", 6);
  *shift = OFFERS->offers[i].shift;
  return (s32)SYS2(RR_NR_open, at, O_CLOEXEC);
}

/* A descriptor of a file of the trace, the caller's while kept_fd differs, and the offset to map it at. That of a private
 * mapping is kept: linkers map a file several times. Negative when the file is not available. */
s32 trace_file(struct process *process, u32 file, u64 offset, u64 length, u64 how, u64 *at) {
  int keep = (how >> 32 & MAP_TYPE) == MAP_PRIVATE;
  u64 shift = 0;
  if (keep && process->kept_file == file) {
    *at = offset + process->kept_shift;
    return process->kept_fd;
  }
  s32 fd = offered(file, &shift);
  if (fd < 0) {
    struct rr_msg msg = {.type = RR_M_NEED_FILE, .a = file, .b = offset, .c = length, .d = how};
    if (channel_send(CONTROL, &msg, NULL, 0) < 0 || channel_receive(CONTROL, &msg, NULL, 0, &fd, 1) < 0 || msg.result) return -1;
    shift = msg.a - offset;
  }
  *at = offset + shift;
  if (!keep || fd < 0) return fd;
  if (process->kept_file) SYS1(RR_NR_close, process->kept_fd);
  process->kept_file = file;
  process->kept_fd = fd;
  process->kept_shift = shift;
  return fd;
}

static void map_file(struct thread *th, u64 *args, const struct rr_event *event, const struct rr_mapped *mapped, u64 flags) {
  u64 at = 0;
  s32 fd = trace_file(th->process, mapped->file, args[5], args[1], args[2] | args[3] << 32, &at);
  if (fd < 0) diverge(th, event);
  s64 got = SYS6(RR_NR_mmap, event->result, args[1], args[2], flags, fd, at);
  if (fd != th->process->kept_fd) SYS1(RR_NR_close, fd);
  if (got != event->result) diverge(th, event);
}

/* The file behind shared mappings is made as long as it was. */
void replay_length(const struct rr_region *region) {
  const struct rr_length *length = (const struct rr_length *)(region + 1);
  s32 fd = -1;
  struct rr_msg msg = {.type = RR_M_NEED_FILE, .a = length->file, .d = (u64)MAP_SHARED << 32};
  if (channel_send(CONTROL, &msg, NULL, 0) < 0 || channel_receive(CONTROL, &msg, NULL, 0, &fd, 1) < 0 || fd < 0) return;
  SYS2(RR_NR_ftruncate, fd, length->bytes);
  SYS1(RR_NR_close, fd);
}

static void replay_mmap(struct thread *th, u64 *args, const struct rr_event *event) {
  const struct rr_region *region = find_region(event, RR_R_FILE);
  const struct rr_mapped *mapped = region ? (const struct rr_mapped *)(region + 1) : NULL;
  u64 kind = (args[3] & MAP_TYPE) == MAP_PRIVATE ? MAP_PRIVATE : MAP_SHARED;
  u64 flags = kind | MAP_FIXED | MAP_NORESERVE | (args[3] & MAP_GROWSDOWN);
  if (event->result < 0 && event->result >= -4095) return;
  if (overlaps_core((u64)event->result, args[1])) diverge(th, event);
  if (mapped && mapped->file) {
    map_file(th, args, event, mapped, flags);
    const u32 *offsets = (const u32 *)(mapped + 1);
    u32 n = mapped->npatches, traps = n && offsets[n - 1] == RR_TRAPS_MARK;
    patch_all((u64)event->result, offsets, n - traps, args[2]);
    if (traps) late_fault(th);
  } else {
    u64 prot = args[3] & MAP_ANONYMOUS ? jit_protection(args) : args[2];
    if (args[2] & PROT_EXEC) late_fault(th);
    if (SYS6(RR_NR_mmap, event->result, args[1], prot, flags | MAP_ANONYMOUS, -1, 0) != event->result) diverge(th, event);
  }
  jit_mapped((u64)event->result, args);
}

static void replay_brk(struct thread *th, const struct rr_event *event) {
  u64 old = page_up(space.brk), new = page_up((u64)event->result);
  if (!space.brk) old = new;
  if (new > old && SYS6(RR_NR_mmap, old, new - old, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != (s64)old)
    diverge(th, event);
  if (new < old) SYS2(RR_NR_munmap, new, old - new);
  space.brk = (u64)event->result;
}

s64 replay_memory(struct thread *th, u64 nr, u64 *args, const struct rr_event *event) {
  s64 result = event->result, real = 0;
  int failed = result < 0 && result >= -4095;
  late_fault_call(th, nr, args);
  switch (nr) {
    case RR_NR_mmap: replay_mmap(th, args, event); break;
    case RR_NR_brk: replay_brk(th, event); break;
    case RR_NR_munmap:
      if (failed) break;
      real = SYS2(nr, args[0], args[1]);
      jit_forget(args[0], args[1]);
      break;
    case RR_NR_pkey_mprotect:
    case RR_NR_mprotect:
      real = SYS3(RR_NR_mprotect, args[0], args[1], args[2]);
      if (!failed) jit_forget(args[0], args[1]);
      break;
    case RR_NR_remap_file_pages: if (!failed) real = SYS5(nr, args[0], args[1], args[2], args[3], args[4]); break;
    case RR_NR_mremap:
      jit_settle(args[0], args[1]);
      if (failed) break;
      if ((u64)result != args[0])
        real = SYS5(nr, args[0], args[1], args[2], (args[3] & 4) | MREMAP_MAYMOVE | MREMAP_FIXED, result);
      else
        real = SYS5(nr, args[0], args[1], args[2], 0, 0);
      if (real != result) diverge(th, event);
      real = 0;
      break;
    case RR_NR_madvise:
      switch (args[2]) {
        case 8: real = SYS3(nr, args[0], args[1], 4); break;
        case 4: case 9: case 10: case 11: case 18: case 19: case 102: case 103: real = SYS3(nr, args[0], args[1], args[2]); break;
        default: break;
      }
      real = 0;
      break;
    case RR_NR_shmat: {
      const struct rr_region *region = find_region(event, RR_R_SIZE);
      if (failed || !region) break;
      u64 size = page_up(*(const u64 *)(region + 1));
      space.shared[space.nshared % MAX_SHARED_MAPS] = (struct shared_map){.addr = (u64)result, .len = size};
      if (space.nshared < MAX_SHARED_MAPS) space.nshared++;
      const struct rr_region *file = find_region(event, RR_R_FILE);
      u64 segment[6] = {0, size, PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0};
      if (file)
        map_file(th, segment, event, (const struct rr_mapped *)(file + 1), MAP_SHARED | MAP_FIXED);
      else if (SYS6(RR_NR_mmap, result, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != result)
        diverge(th, event);
      break;
    }
    case RR_NR_shmdt:
      for (u32 i = 0; i < space.nshared; i++)
        if (space.shared[i].addr == args[0]) {
          SYS2(RR_NR_munmap, args[0], space.shared[i].len);
          space.shared[i] = space.shared[--space.nshared];
          break;
        }
      break;
    default: break;
  }
  if (!failed && real < 0) diverge(th, event);
  return result;
}
