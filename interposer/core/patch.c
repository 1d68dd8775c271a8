/* patch.c - call sites that have trapped often are rewritten to jump here instead of trapping.
 *
 * Guarantees: only a `syscall` instruction followed by instructions that can be moved, with no branch into them, is
 * rewritten; registers are left as the kernel leaves them; whatever the short way cannot do goes through a trap as
 * before, with the site's own address. Recording and replaying may patch different sites: nothing visible to the
 * program depends on it. A thread that returns to the middle of patched bytes is sent to the stub's copy of them.
 */
#include "core.h"

#define SITES (RR_SLOT_TABLE_SIZE / 8)
#define STUB 128ul
#define STUBS_SIZE ((SITES + 1) * STUB)
#define TAIL_OFFSET 40ul
#define HASH 1024u
#define HOT 6
#define JUMP 7u /* jmp *slot: ff 24 25 imm32 */

u64 gate_trap, gate_late;
static u32 ready, nsites;
static struct { u64 ip; u32 count; } heat[HASH];
static struct { u64 ip; u32 site; } table[SITES * 2];


static u64 stub_at(u32 site) { return RR_STUBS + (site + 1) * STUB; }

/* The slot table's place is taken in every process, patched or not, so that the program is never given it. */
void patch_reserve(void) {
  s64 got = SYS6(RR_NR_mmap, RR_SLOT_TABLE, RR_SLOT_TABLE_SIZE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
  if (got != (s64)RR_SLOT_TABLE || GLOBAL->flags & RR_GF_NO_PATCH) return;
  got = SYS6(RR_NR_mmap, RR_STUBS, (STUBS_SIZE + PAGE - 1) & ~(PAGE - 1), PROT_READ | PROT_WRITE | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (got != (s64)RR_STUBS) return;
  u8 *code = (u8 *)RR_STUBS;
  code[0] = code[16] = 0x0f;
  code[1] = code[17] = 0x05;
  gate_trap = RR_STUBS;
  gate_late = RR_STUBS + 16;
  ready = 1;
}

/* ---- what may be moved ---- */

enum { GOES_ON = 0, RETURNS = 1, BRANCHES = 2 };

static int rsp_based(const u8 *at) { return (at[1] & 0xc7) == 0x44 && at[2] == 0x24; } /* disp8(%rsp) */

/* Bytes of the instruction at `code` if it can stand elsewhere; 0: unknown. `*ends`: how control leaves it. A
 * conditional branch is made anew in the stub. */
static u32 movable(const u8 *code, int *ends) {
  u32 rex = (code[0] & 0xf0) == 0x40, wide = rex && code[0] & 8;
  const u8 *at = code + rex;
  *ends = 0;
  switch (at[0]) {
    case 0x3d: return rex + 5;                                        /* cmp imm32, eax/rax */
    case 0x89: case 0x8b:                                             /* mov */
      if (rsp_based(at)) return rex + 4;
      return (at[1] & 0xc0) == 0xc0 ? rex + 2 : 0;
    case 0x8d: return rsp_based(at) ? rex + 4 : 0;                    /* lea disp8(%rsp) */
    case 0x85: case 0x31: case 0x39:                                  /* test, xor, cmp between registers */
      return (at[1] & 0xc0) == 0xc0 ? rex + 2 : 0;
    case 0x83: return (at[1] & 0xc0) == 0xc0 ? rex + 3 : 0;           /* add, cmp, ... imm8 */
    case 0xf7: return (at[1] & 0xf8) == 0xd8 ? rex + 2 : 0;           /* neg */
    case 0x98: return wide ? rex + 1 : 0;                             /* cltq */
    case 0x63: return (at[1] & 0xc0) == 0xc0 ? rex + 2 : 0;           /* movslq */
    case 0xc3:
      *ends = RETURNS;
      return rex ? 0 : 1;
    case 0x0f:
      if (rex || (at[1] & 0xf0) != 0x80) return 0;
      *ends = BRANCHES;
      return 6;
    default:
      if (!rex && at[0] >= 0x70 && at[0] <= 0x7f) {
        *ends = BRANCHES;
        return 2;
      }
      if (at[0] >= 0xb8 && at[0] <= 0xbf && !wide) return rex + 5;    /* mov imm32, reg */
      if (at[0] >= 0x58 && at[0] <= 0x5f) return rex + 1;             /* pop */
      return 0;
  }
}

static int is_padding(const u8 *code, u32 bytes) {
  for (u32 i = 0; i < bytes;) {
    const u8 *at = code + i;
    if (at[0] == 0xcc || at[0] == 0x90) i += 1;
    else if (at[0] == 0x66 && at[1] == 0x90) i += 2;
    else if (at[0] == 0x0f && at[1] == 0x1f && at[2] == 0x00) i += 3;
    else if (at[0] == 0x0f && at[1] == 0x1f && at[2] == 0x40) i += 4;
    else if (at[0] == 0x0f && at[1] == 0x1f && at[2] == 0x44) i += 5;
    else if (at[0] == 0x0f && at[1] == 0x1f && at[2] == 0x80) i += 7;
    else if (at[0] == 0x0f && at[1] == 0x1f && at[2] == 0x84) i += 8;
    else if (at[0] == 0x66 && (at[1] == 0x66 || at[1] == 0x2e || at[1] == 0x0f)) i += 1;
    else if (at[0] == 0x2e && at[1] == 0x0f) i += 1;
    else return 0;
  }
  return 1;
}

/* Whether some branch in the code around could lead to an instruction that is moved: bit n of `starts` is set where one
 * begins n bytes behind the site. Bytes that only look like a branch count, but not where they lead into the middle of an
 * instruction: glibc's read and write have such ones (the operand of a mov) where there are several threads. */
static int branch_into(const u8 *code, u64 start, u64 size, u64 site, u32 starts) {
  for (u64 i = 0; i + 6 < size; i++) {
    u64 next = 0;
    if ((code[i] >= 0x70 && code[i] <= 0x7f) || code[i] == 0xeb || (code[i] >= 0xe0 && code[i] <= 0xe3))
      next = start + i + 2 + (u64)(s64)(signed char)code[i + 1];
    else if (code[i] == 0xe9 || code[i] == 0xe8)
      next = start + i + 5 + (u64)(s64) * (const s32 *)(code + i + 1);
    else if (code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80)
      next = start + i + 6 + (u64)(s64) * (const s32 *)(code + i + 2);
    if (next > site && next - site < 32 && starts >> (next - site) & 1) return 1;
  }
  return 0;
}

/* ---- patching ---- */

static u32 slot_of(u64 ip) {
  u32 at = (u32)((ip * 0x9e3779b97f4a7c15ul) >> 40) % (SITES * 2);
  while (table[at].ip && table[at].ip != ip) at = (at + 1) % (SITES * 2);
  return at;
}

static int is_ours(u64 site_address, u32 site) {
  u8 code[JUMP];
  u32 target = (u32)(RR_SLOT_TABLE + 8ul * site);
  return !rr_copy(code, (void *)site_address, JUMP) && code[0] == 0xff && code[1] == 0x24 && code[2] == 0x25 &&
         *(u32 *)(code + 3) == target;
}

static u8 *put(u8 *at, const char *bytes, u32 count) {
  copy_bytes(at, bytes, count);
  return at + count;
}

static u8 *jump_to(u8 *at, u64 target) {
  at = put(at, "\xff\x25\x00\x00\x00\x00", 6); /* jmp *next */
  copy_bytes(at, &target, 8);
  return at + 8;
}

/* `len` bytes at the site are replaced, the first `plain` of them are moved as they are. */
static void make_stub(u32 site, u64 ip, const u8 *code, u32 len, u32 plain, int ends) {
  u8 *start = (u8 *)stub_at(site), *at = start;
  u64 back = ip - 2 + len;
  u32 app = TH_APP_SP, fast = TH_FAST_SP;
  at = put(at, "\x65\x48\x89\x24\x25", 5); /* mov %rsp, %gs:app_sp */
  copy_bytes(at, &app, 4), at += 4;
  at = put(at, "\x65\x48\x8b\x24\x25", 5); /* mov %gs:fast_sp, %rsp */
  copy_bytes(at, &fast, 4), at += 4;
  at = put(at, "\x48\xb9", 2); /* movabs $ip, %rcx */
  copy_bytes(at, &ip, 8), at += 8;
  at = put(at, "\x4c\x8d\x1d", 3); /* lea tail(%rip), %r11 */
  s32 to_tail = (s32)((u64)start + TAIL_OFFSET - ((u64)at + 4));
  copy_bytes(at, &to_tail, 4), at += 4;
  *at++ = 0xe9; /* jmp rr_fast_entry */
  s32 to_entry = (s32)((u64)rr_fast_entry - ((u64)at + 4));
  copy_bytes(at, &to_entry, 4);
  at = start + TAIL_OFFSET;
  copy_bytes(at, code + 2, plain - 2), at += plain - 2;
  if (ends == BRANCHES) {
    const u8 *branch = code + plain;
    u64 target = back + (u64)(s64)(len - plain == 2 ? (signed char)branch[1] : *(const s32 *)(branch + 2));
    *at++ = (u8)(0x70 | ((len - plain == 2 ? branch[0] : branch[1]) & 15));
    at = put(at, "\x02\xeb\x0e", 3); /* jcc over; jmp on; over: */
    at = jump_to(at, target);
  }
  if (ends != RETURNS) jump_to(at, back);
  ((u64 *)RR_SLOT_TABLE)[site] = (u64)start;
}

static int write_code(u64 address, const u8 *bytes, u64 count) {
  s64 fd = SYS4(RR_NR_openat, -100, "/proc/self/mem", 02000002, 0);
  if (fd < 0) return 0;
  s64 done = SYS4(RR_NR_pwrite64, fd, bytes, count, address);
  SYS1(RR_NR_close, fd);
  return done == (s64)count;
}

static void patch(u64 ip) {
  u64 site = ip - 2, start = (site - 160) & ~15ul;
  u8 code[480], made[16];
  u32 len = 2, plain = 2, at = slot_of(ip), starts = 0;
  int ends = 0;
  if (nsites >= SITES || rr_copy(code, (void *)start, sizeof code)) return;
  if (table[at].ip && is_ours(site, table[at].site)) return;
  const u8 *here = code + (site - start);
  if (here[0] != 0x0f || here[1] != 0x05) return;
  while (len < JUMP && !ends) {
    u32 more = movable(here + len, &ends);
    if (!more || len + more > 16) return;
    starts |= 1u << len;
    len += more;
    if (ends != BRANCHES) plain = len;
  }
  if (len < JUMP && (ends != RETURNS || !is_padding(here + len, JUMP - len))) return;
  u32 covered = len < JUMP ? JUMP : len;
  for (u32 i = len; i < covered; i++) starts |= 1u << i;
  if (branch_into(code, start, sizeof code, site, starts)) return;
  u32 index = nsites++;
  make_stub(index, ip, here, len, plain, ends);
  made[0] = 0xff, made[1] = 0x24, made[2] = 0x25;
  *(u32 *)(made + 3) = (u32)(RR_SLOT_TABLE + 8ul * index);
  for (u32 i = JUMP; i < 16; i++) made[i] = 0x90;
  table[at].ip = ip;
  table[at].site = index;
  if (!write_code(site, made, covered)) {
    ready = 0;
    table[at].ip = 1; /* never an address after a call: the place in the table stays taken */
  }
}

/* A call has trapped. Those that do so often are worth a patch. */
void patch_consider(u64 ip) {
  if (!ready || in_core(ip)) return;
  u32 at = (u32)((ip * 0x9e3779b97f4a7c15ul) >> 48) % HASH;
  if (heat[at].ip != ip) {
    heat[at].ip = ip;
    heat[at].count = 0;
  }
  if (++heat[at].count == HOT) patch(ip);
}

u64 patch_resume(u64 ip) {
  if (!nsites || in_core(ip)) return ip;
  u32 at = slot_of(ip);
  return table[at].ip && is_ours(ip - 2, table[at].site) ? stub_at(table[at].site) + TAIL_OFFSET : ip;
}

u64 patch_canonical(u64 ip) {
  if (ip - RR_STUBS >= STUBS_SIZE || (ip - RR_STUBS) % STUB != TAIL_OFFSET) return ip;
  return *(u64 *)(ip - TAIL_OFFSET + 20);
}

/* ---- the short way ---- */

static int needs_trap(u64 nr, const u64 *args) {
  switch (nr) {
    case RR_NR_clone: case RR_NR_fork: case RR_NR_vfork: case RR_NR_clone3: case RR_NR_execve: case RR_NR_execveat:
    case RR_NR_exit: case RR_NR_exit_group: case RR_NR_rt_sigreturn: case RR_NR_close_range: case RR_NR_personality:
    case RR_NR_setrlimit: case RR_NR_prlimit64: return 1;
    default: return is_memory(nr) || is_virtual(nr, args);
  }
}

static struct fast_result fast_record(struct thread *th, struct fast_frame *f) {
  if (th->pending || RING->checksum_every || (RING->baton & 0x80000000u) || (GLOBAL->seed && !alone())) return (struct fast_result){0, FAST_TRAP};
  const struct rr_call *call = f->nr < RR_NCALLS ? &rr_calls[f->nr] : NULL;
  if (call && call->treat == RR_T_FEED && call->block == RR_BLK_NEVER && !call->neffects && !call->sub && !call->flags &&
      GLOBAL->writes == space.writes_seen) {
    if (!(RING->event_count & 15)) th->time_in = now_coarse();
    s64 result = sys6((s64)f->nr, f->args[0], f->args[1], f->args[2], f->args[3], f->args[4], f->args[5]);
    log_simple(th, (u32)f->nr, f->ip, f->args, result);
    return (struct fast_result){result, th->pending ? FAST_LATE : FAST_DONE};
  }
  s64 result;
  th->time_in = now_coarse();
  if (!record_light(th, f->nr, f->args, f->ip, &result)) result = record_plain(th, f->nr, f->args, f->ip);
  return (struct fast_result){result, th->pending || result == RR_RESTART ? FAST_LATE : FAST_DONE};
}

static struct fast_result fast_replay(struct thread *th, struct fast_frame *f) {
  struct rr_event *event = next_event(th);
  if (!event || event->kind != RR_K_SYSCALL || event->task != th->tid || event->nr != f->nr || event->ip != f->ip ||
      RING->stop_at <= RING->event_count + 1)
    return (struct fast_result){0, FAST_TRAP};
  for (u32 i = 0; i < 6; i++)
    if (event->args[i] != f->args[i]) return (struct fast_result){0, FAST_TRAP};
  if (event->payload_len) {
    if (!inputs_agree(event)) return (struct fast_result){0, FAST_TRAP};
    apply_outputs(th, event);
  }
  if (event->flags & (RR_EF_ECHO_OUT | RR_EF_ECHO_ERR)) replay_output(th, event, f->args);
  s64 result = event->result;
  consume(th);
  event = next_event(th);
  if (result == RR_RESTART || !event ||
      (event->task == th->tid && (event->kind == RR_K_SIGNAL || event->kind == RR_K_PREEMPT || event->kind == RR_K_DATA || event->kind == RR_K_DEATH)))
    return (struct fast_result){result, FAST_LATE};
  return (struct fast_result){result, FAST_DONE};
}

struct fast_result rr_fast(struct fast_frame *f) {
  struct thread *th = current();
  if (needs_trap(f->nr, f->args)) return (struct fast_result){0, FAST_TRAP};
  return space.recording ? fast_record(th, f) : fast_replay(th, f);
}
