/* cursor.c - replaying: the next event of the domain, whose turn it is, and what to do when they disagree.
 *
 * Guarantees: only the task that owns the next event touches the cursor; an event and its payload stay readable
 * until the one after it is asked for; a task whose turn it is not sleeps; a difference parks the task for ever
 * with its registers saved, and tells the replayer.
 */
#include "core.h"
#include "debug.h"

static struct rr_slot *slot_at(u64 sequence) {
  return (struct rr_slot *)(RR_RING + RR_RING_CTL + (sequence % RR_SLOTS) * (u64)RR_SLOT_SIZE);
}

static void tell(u32 type, u64 a) {
  struct rr_msg msg = {.type = type, .a = a};
  channel_send(CONTROL, &msg, NULL, 0);
}

struct rr_event *next_event(struct thread *th) {
  (void)th;
  for (;;) {
    struct rr_slot *slot = slot_at(RING->sequence);
    while (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != RR_SLOT_SEALED) {
      u32 state = slot->state;
      if (state == RR_SLOT_SEALED) break;
      futex_wait(&slot->state, state, 500000000);
      if (slot->state == state && !tool_alive()) SYS1(RR_NR_exit_group, 125);
    }
    u64 index = RING->event_count - slot->first_event;
    if (index < slot->nevents) return (struct rr_event *)((u8 *)slot + RR_SLOT_EVENTS_OFF) + index;
    if (slot->last) return NULL;
    __atomic_store_n(&slot->state, RR_SLOT_FREE, __ATOMIC_RELEASE);
    futex_wake(&slot->state, 1);
    RING->sequence++;
  }
}

const u8 *event_payload(const struct rr_event *event) {
  return (const u8 *)slot_at(RING->sequence) + RR_SLOT_PAYLOAD_OFF + event->payload_off;
}

static void park_at(struct thread *th, volatile u32 *word) {
  RING->stopped_tid = th->tid;
  RING->diverged_regs = th->frame ? (u64)&th->frame->uc : 0;
  *word = 1;
  tell(RR_M_STUCK, 0);
  while (*word) {
    if (DEBUG->request != RR_Q_NONE) {
      debug_request(th);
      continue;
    }
    futex_wait(word, 1, 500000000);
    if (!tool_alive()) SYS1(RR_NR_exit_group, 125);
  }
  debug_parked();
  th->pass = DEBUG->pass;
  DEBUG->pass = 0;
  DEBUG->core_watch = 0;
}

void park_for(struct thread *th, u32 reason) {
  DEBUG->reason = reason;
  park_at(th, &RING->stopped);
}

void advance(void) { RING->event_count++; }

void consumed(struct thread *th) {
  debug_event();
  if (unlikely(RING->event_count >= RING->stop_at))
    park_for(th, RR_P_EVENT);
  else if (unlikely(DEBUG->core_watch))
    debug_core_watch(th);
}

void consume(struct thread *th) {
  advance();
  consumed(th);
}

static u32 owner_of(const struct rr_event *event) {
  return event->kind == RR_K_TASK_START && event->args[3] ? (u32)event->args[0] : event->task;
}

static void wake_task(u32 task) {
  volatile u32 *word = &RING->turn[task % RR_TURN_WORDS];
  __atomic_fetch_add((u32 *)word, 1, __ATOMIC_RELEASE);
  futex_wake(word, 0x7fffffff);
}

void give_turn(u32 task) {
  __atomic_store_n(&((struct rr_ring *)RR_RING)->owner, task, __ATOMIC_RELEASE);
  wake_task(task);
}

void pass_turn(struct thread *th) {
  struct rr_event *event = next_event(th);
  if (event) give_turn(owner_of(event));
}

static void sleep_until_turn(struct thread *th) {
  volatile u32 *word = &RING->turn[th->tid % RR_TURN_WORDS];
  for (u32 i = spins(200); i; i--) {
    if (__atomic_load_n(&((struct rr_ring *)RR_RING)->owner, __ATOMIC_ACQUIRE) == th->tid) return;
    __builtin_ia32_pause();
  }
  for (;;) {
    u32 seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&((struct rr_ring *)RR_RING)->owner, __ATOMIC_ACQUIRE) == th->tid) {
      handed_over();
      return;
    }
    futex_wait(word, seen, 500000000);
    if (!tool_alive()) SYS1(RR_NR_exit_group, 125);
  }
}

/* Until the next event is this thread's. Where the log ends, the last to run says so. */
void wait_turn(struct thread *th) {
  if (RING->owner == th->tid && !next_event(th)) park(th, RR_DIV_END, NULL);
  if (debugging()) {
    SYS2(RR_NR_arch_prctl, ARCH_GET_FS, &th->fs_base);
    rr_remember(&th->resume);
    __atomic_store_n(&th->waiting, 1, __ATOMIC_RELEASE);
  }
  sleep_until_turn(th);
  late_fault_follow(th);
  th->waiting = 0;
}

NORETURN void park(struct thread *th, u32 divergence, const struct rr_event *found) {
  if (!RING->diverged) {
    if (found) copy_bytes((void *)&RING->found, found, sizeof *found);
    RING->diverged_event = RING->event_count;
    RING->diverged_tid = th->tid;
    RING->diverged_regs = th->frame ? (u64)&th->frame->uc : 0;
    RING->diverged = divergence;
    tell(RR_M_STUCK, divergence);
  }
  for (;;) {
    futex_wait(&RING->diverged, RING->diverged, 500000000);
    if (!tool_alive()) SYS1(RR_NR_exit_group, 125);
  }
}

const struct rr_region *find_region(const struct rr_event *event, u32 kind) {
  const u8 *at = event_payload(event), *end = at + event->payload_len;
  while (at < end) {
    const struct rr_region *region = (const struct rr_region *)at;
    if (region->kind == kind) return region;
    at += sizeof *region + ((region->len + 7ul) & ~7ul);
  }
  return NULL;
}

/* Writes `bytes` of the word that a region repeats; not 0 where the memory cannot be written. */
static int fill_memory(const struct rr_region *region) {
  const struct rr_fill *fill = (const struct rr_fill *)(region + 1);
  u64 bytes = fill->bytes < RR_FILL_MAX ? fill->bytes : RR_FILL_MAX, rest = bytes & 7;
  return rr_fill((void *)region->addr, fill->word, bytes / 8) || (rest && rr_copy((void *)(region->addr + bytes - rest), &fill->word, rest));
}

static int write_memory(const struct rr_region *region) {
  return region->kind == RR_R_FILL ? fill_memory(region) : rr_copy((void *)region->addr, region + 1, region->len);
}

/* A mapping that the program may only read shows what was written to the file, or through /proc/self/mem. */
static int write_protected(const struct rr_region *region) {
  u64 len = region->kind == RR_R_FILL ? ((const struct rr_fill *)(region + 1))->bytes : region->len;
  u64 page = region->addr & ~(PAGE - 1), span = ((region->addr + len + PAGE - 1) & ~(PAGE - 1)) - page;
  if (region->kind == RR_R_OUT && rr_equal((void *)region->addr, region + 1, len) == 1) return 1;
  if (region->kind == RR_R_OUT && write_anyhow(region->addr, region + 1, len)) return 1;
  if (SYS3(RR_NR_mprotect, page, span, PROT_READ | PROT_WRITE) < 0) return 0;
  int failed = write_memory(region);
  SYS3(RR_NR_mprotect, page, span, PROT_READ);
  return !failed;
}

void apply_outputs(struct thread *th, const struct rr_event *event) {
  const u8 *at = event_payload(event), *end = at + event->payload_len;
  while (at < end) {
    const struct rr_region *region = (const struct rr_region *)at;
    if (region->kind == RR_R_LENGTH) replay_length(region);
    /* What the kernel could not write either (read-only memory that a call names as its output) is there already. */
    if ((region->kind == RR_R_OUT || region->kind == RR_R_FILL) && write_memory(region) && !write_protected(region)) {
      struct rr_event found = *event;
      found.args[0] = region->addr;
      park(th, RR_DIV_MEMORY, &found);
    }
    at += sizeof *region + ((region->len + 7ul) & ~7ul);
  }
}

int inputs_agree(const struct rr_event *event) {
  const u8 *at = event_payload(event), *end = at + event->payload_len;
  while (at < end) {
    const struct rr_region *region = (const struct rr_region *)at;
    if (region->kind == RR_R_IN && rr_equal((void *)region->addr, region + 1, region->len) != 1) return 0;
    at += sizeof *region + ((region->len + 7ul) & ~7ul);
  }
  return 1;
}

void check_inputs(struct thread *th, const struct rr_event *event, const struct rr_event *found) {
  if (!inputs_agree(event)) park(th, RR_DIV_INPUT, found);
}

static void write_all(s32 fd, const u8 *data, u64 bytes) {
  while (bytes) {
    s64 n = SYS3(RR_NR_write, fd, data, bytes);
    if (n == -EAGAIN) {
      struct pollfd_k p = {fd, 4, 0};
      SYS3(RR_NR_poll, &p, 1, 1000);
      continue;
    }
    if (n == -EINTR) continue;
    if (n <= 0) return;
    data += n;
    bytes -= (u64)n;
  }
}

static void write_vector(s32 fd, u64 array, u64 count, u64 bytes) {
  for (u64 i = 0; i < count && bytes; i++) {
    struct iovec v;
    if (rr_copy(&v, (void *)(array + i * sizeof v), sizeof v)) return;
    u64 piece = v.len < bytes ? v.len : bytes;
    write_all(fd, (u8 *)v.base, piece);
    bytes -= piece;
  }
}

/* "[PID EVENT] ", as `rr-py dump --numbers` numbers the event. */
static void write_stamp(s32 fd, const struct thread *th) {
  char text[64], *end = text + sizeof text, *at = end;
  *--at = ' ', *--at = ']';
  at = decimal_before(at, RING->event_count);
  *--at = ' ';
  at = decimal_before(at, th->pid);
  *--at = '[';
  write_all(fd, (u8 *)at, (u64)(end - at));
}

/* Wait until the output of number `mine` is due. Whoever sleeps is counted: who makes a turn due wakes nobody else. */
static void await_turn(volatile u64 *turn, u64 mine) {
  if (*turn >= mine) return;
  RING->waiting_seq = mine;
  RING->waiting_output = 1;
  for (u32 i = 0; i < 100 && *turn < mine; i++) __builtin_ia32_pause();
  if (*turn < mine) {
    __atomic_add_fetch(&GLOBAL->output_lock, 1, __ATOMIC_SEQ_CST);
    for (u64 seen; (seen = __atomic_load_n(turn, __ATOMIC_SEQ_CST)) < mine;) {
      futex_wait((volatile u32 *)turn, (u32)seen, 100000000);
      if (!tool_alive()) SYS1(RR_NR_exit_group, 125);
    }
    __atomic_sub_fetch(&GLOBAL->output_lock, 1, __ATOMIC_SEQ_CST);
  }
  RING->waiting_output = 0;
}

/* What the program wrote to the recording's output comes out again, in the recorded order. */
void replay_output(struct thread *th, const struct rr_event *event, const u64 *args) {
  if (!GLOBAL->replay_echo) return;
  const struct rr_region *region = find_region(event, RR_R_SEQ);
  if (!region) return;
  u64 mine = *(const u64 *)(region + 1);
  volatile u64 *turn = &GLOBAL->output_seq;
  await_turn(turn, mine);
  int error = event->flags & RR_EF_ECHO_ERR;
  if (event->result > 0 && GLOBAL->replay_echo & (error ? 2 : 1)) {
    s32 fd = HIDDEN(error ? RR_FD_ERR : RR_FD_OUT);
    u64 bytes = (u64)event->result;
    if (GLOBAL->flags & RR_GF_STAMP) write_stamp(fd, th);
    switch (event->nr) {
      case RR_NR_write: case RR_NR_pwrite64: case RR_NR_sendto: write_all(fd, (u8 *)args[1], bytes); break;
      case RR_NR_sendfile: case RR_NR_splice: case RR_NR_copy_file_range:
        if (region->len >= 8 + bytes) write_all(fd, (const u8 *)(region + 1) + 8, bytes);
        break;
      case RR_NR_writev: case RR_NR_pwritev: case RR_NR_pwritev2: case RR_NR_vmsplice: write_vector(fd, args[1], args[2], bytes); break;
      case RR_NR_sendmsg: {
        struct msghdr_k hdr;
        if (!rr_copy(&hdr, (void *)args[1], sizeof hdr)) write_vector(fd, hdr.iov, hdr.iovlen, bytes);
        break;
      }
    }
  }
  if (*turn > mine) return;
  __atomic_store_n(turn, mine + 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&GLOBAL->output_lock, __ATOMIC_SEQ_CST)) futex_wake((volatile u32 *)turn, 0x7fffffff);
}
