/* log.c - recording: events go into the open slot of the ring.
 *
 * Guarantees: only the baton holder writes; an event becomes visible (nevents, event_count) only when it and its
 * payload are complete; an event whose payload does not fit is split into K_DATA events before it; when the
 * recorder is slow the program waits, when it is gone the program goes on and nothing more is logged.
 */
#include "core.h"

static struct rr_slot *open_slot(void) {
  return (struct rr_slot *)(RR_RING + RR_RING_CTL + (RING->sequence % RR_SLOTS) * (u64)RR_SLOT_SIZE);
}
static struct rr_event *slot_events(struct rr_slot *slot) { return (struct rr_event *)((u8 *)slot + RR_SLOT_EVENTS_OFF); }
static u8 *slot_payload(struct rr_slot *slot) { return (u8 *)slot + RR_SLOT_PAYLOAD_OFF; }

void stop_recording(u32 reason) {
  RING->stop_reason = reason;
  RING->state = RR_UNRECORDED;
}

static void await_free(struct rr_slot *slot) {
  while (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != RR_SLOT_FREE && logging()) {
    u32 state = slot->state;
    if (state == RR_SLOT_FREE) break;
    futex_wait(&slot->state, state, 100000000);
    if (!tool_alive()) stop_recording(RR_STOP_RECORDER);
  }
}

static void start_slot(void) {
  struct rr_slot *slot = open_slot();
  slot->nevents = 0;
  slot->payload_used = 0;
  slot->last = 0;
  slot->first_event = RING->event_count;
  slot->sequence = RING->sequence;
  __atomic_store_n(&slot->state, RR_SLOT_OPEN, __ATOMIC_RELEASE);
}

static void next_slot(void) {
  struct rr_msg msg = {.type = RR_M_SEALED, .a = RING->sequence};
  __atomic_store_n(&open_slot()->state, RR_SLOT_SEALED, __ATOMIC_RELEASE);
  if (channel_send(CONTROL, &msg, NULL, 0) < 0) stop_recording(RR_STOP_RECORDER);
  RING->sequence++;
  await_free(open_slot());
  if (logging()) start_slot();
}

static void publish(struct thread *th) {
  struct rr_slot *slot = open_slot();
  struct rr_event *event = &th->event;
  event->payload_off = th->event_payload;
  slot_events(slot)[slot->nevents] = *event;
  slot->payload_used = th->event_payload + event->payload_len;
  __atomic_store_n(&slot->nevents, slot->nevents + 1, __ATOMIC_RELEASE);
  RING->event_count++;
}

/* Room for this many events in the open slot (and for some payload). */
void log_flush_room(u32 events) {
  struct rr_slot *slot = open_slot();
  if (!logging()) return;
  if (slot->nevents + events > RR_SLOT_EVENTS - 1 || slot->payload_used + RR_SHORT_MAX > RR_SLOT_PAYLOAD_MAX) next_slot();
}

void log_begin(struct thread *th, u32 kind, u32 nr, u64 ip, const u64 *args) {
  struct rr_event *event = &th->event;
  log_flush_room(1);
  event->task = th->tid;
  event->kind = (u8)kind;
  event->flags = 0;
  event->nr = (u16)nr;
  event->ip = ip;
  for (u32 i = 0; i < 6; i++) event->args[i] = args ? args[i] : 0;
  event->result = 0;
  event->time_in = th->time_in;
  event->time_out = 0;
  event->payload_len = 0;
  th->event_payload = open_slot()->payload_used;
  th->event_fills = 0;
  th->event_open = 1;
}

/* Turns what the event has so far into a K_DATA event and goes on in a fresh slot. */
static void split(struct thread *th) {
  struct rr_event whole = th->event;
  if (th->event.payload_len) {
    th->event.kind = RR_K_DATA;
    th->event.result = whole.kind == RR_K_DATA ? RR_K_PREEMPT : whole.kind;
    th->event.time_out = th->event.time_in;
    publish(th);
    th->event = whole;
  }
  next_slot();
  th->event.payload_len = 0;
  th->event_payload = open_slot()->payload_used;
  th->event_fills = 0;
}

static u64 payload_room(struct thread *th) {
  u64 used = (u64)th->event_payload + th->event.payload_len;
  return used + 64 > RR_SLOT_PAYLOAD_MAX ? 0 : RR_SLOT_PAYLOAD_MAX - used - 64;
}

static u8 *region_space(struct thread *th, u64 len) {
  return slot_payload(open_slot()) + th->event_payload + th->event.payload_len + sizeof(struct rr_region);
  (void)len;
}

static u32 region_put(struct rr_region *region, u32 kind, u32 arg, u64 addr, u64 len) {
  region->addr = addr;
  region->len = (u32)len;
  region->kind = (u8)kind;
  region->arg = (u8)arg;
  region->full_hi = 0;
  u64 padded = (len + 7) & ~7ul;
  for (u64 i = len; i < padded; i++) ((u8 *)(region + 1))[i] = 0;
  return (u32)(sizeof *region + padded);
}

static void region_add(struct thread *th, u32 kind, u32 arg, u64 addr, u64 len) {
  u8 *at = slot_payload(open_slot()) + th->event_payload + th->event.payload_len;
  th->event.payload_len += region_put((struct rr_region *)at, kind, arg, addr, len);
}

/* Bytes that are one word again and again, as unwritten files and cleared pages have them, become that word. */
static int fold_fill(u8 *bytes, u64 len) {
  if (len < RR_FILL_MIN || len > RR_FILL_MAX) return 0;
  struct rr_fill fill = {len, *(u64 *)bytes};
  const u64 *words = (const u64 *)bytes, count = len / 8;
  u64 i = 1;
  for (; i + 4 <= count; i += 4)
    if ((words[i] ^ fill.word) | (words[i + 1] ^ fill.word) | (words[i + 2] ^ fill.word) | (words[i + 3] ^ fill.word)) return 0;
  for (; i < count; i++)
    if (words[i] != fill.word) return 0;
  for (i = len & ~7ul; i < len; i++)
    if (bytes[i] != (u8)(fill.word >> 8 * (i & 7))) return 0;
  *(struct rr_fill *)bytes = fill;
  return 1;
}

static int fill_add(struct thread *th, u32 arg, u64 addr, u8 *bytes, u64 len) {
  if (th->event_fills + len > RR_FILLS_MAX || !fold_fill(bytes, len)) return 0;
  region_add(th, RR_R_FILL, arg, addr, sizeof(struct rr_fill));
  th->event_fills += (u32)len;
  return 1;
}

static void log_from(struct thread *th, u32 kind, u32 arg, u64 addr, const u8 *from, u8 *also_to, u64 len) {
  if (!th->event_open) return;
  while (len && logging()) {
    u64 room = payload_room(th);
    u64 piece = len;
    if (room < piece) {
      if (room < 65536 || kind != RR_R_OUT) {
        split(th);
        continue;
      }
      piece = room & ~7ul;
    }
    u8 *to = region_space(th, piece);
    if (rr_copy(to, from, piece)) return;
    if (also_to) {
      rr_copy(also_to, to, piece);
      also_to += piece;
    }
    if (kind != RR_R_OUT || !fill_add(th, arg, addr, to, piece)) region_add(th, kind, arg, addr, piece);
    addr += piece;
    from += piece;
    len -= piece;
  }
}

void log_region(struct thread *th, u32 kind, u32 arg, u64 addr, u64 len) {
  log_from(th, kind, arg, addr, (const u8 *)addr, NULL, len);
}

void log_bytes(struct thread *th, u32 kind, u32 arg, u64 addr, const void *data, u64 len) {
  log_from(th, kind, arg, addr, data, NULL, len);
}

void log_string(struct thread *th, u32 arg, u64 addr) {
  if (!th->event_open || !logging() || !addr) return;
  if (payload_room(th) < 4096 + 64) split(th);
  if (!logging()) return;
  s64 len = rr_strcopy((char *)region_space(th, 4096), (const char *)addr, 4096);
  if (len > 0) region_add(th, RR_R_IN, arg, addr, (u64)len);
}

void log_commit(struct thread *th, s64 result) {
  if (!th->event_open) return;
  th->event_open = 0;
  th->event.result = result;
  if (!th->event.time_out) th->event.time_out = th->event.time_in;
  if (logging()) publish(th);
}

/* ---- events that are written where they stay ---- */

u8 *log_short_room(void) {
  log_flush_room(1);
  return logging() ? slot_payload(open_slot()) + open_slot()->payload_used : NULL;
}

u32 log_short_in(u8 *to, u32 arg, u64 addr, u64 len) {
  struct rr_region *region = (struct rr_region *)to;
  return rr_copy(region + 1, (const void *)addr, len) ? 0 : region_put(region, RR_R_IN, arg, addr, len);
}

u32 log_short_out(u8 *to, u32 arg, u64 addr, u64 len) {
  struct rr_region *region = (struct rr_region *)to;
  if (rr_copy(region + 1, (const void *)addr, len)) return 0;
  if (fold_fill((u8 *)(region + 1), len)) return region_put(region, RR_R_FILL, arg, addr, sizeof(struct rr_fill));
  return region_put(region, RR_R_OUT, arg, addr, len);
}

u32 log_short_sequence(u8 *to, u64 number) {
  struct rr_region *region = (struct rr_region *)to;
  *(u64 *)(region + 1) = number;
  return region_put(region, RR_R_SEQ, 255, 0, 8);
}

void log_short(struct thread *th, u32 nr, u64 ip, const u64 *args, s64 result, u64 time_out, u32 payload, u32 flags) {
  if (!logging()) return;
  struct rr_slot *slot = open_slot();
  u32 nevents = slot->nevents, used = slot->payload_used;
  struct rr_event *event = &slot_events(slot)[nevents];
  event->task = th->tid;
  event->kind = RR_K_SYSCALL;
  event->flags = (u8)flags;
  event->nr = (u16)nr;
  event->ip = ip;
  for (u32 i = 0; i < 6; i++) event->args[i] = args[i];
  event->result = result;
  event->time_in = th->time_in;
  event->time_out = time_out;
  event->payload_off = used;
  event->payload_len = payload;
  slot->payload_used = used + payload;
  __atomic_store_n(&slot->nevents, nevents + 1, __ATOMIC_RELEASE);
  RING->event_count++;
}

void log_simple(struct thread *th, u32 nr, u64 ip, const u64 *args, s64 result) {
  log_flush_room(1);
  log_short(th, nr, ip, args, result, th->time_in, 0, 0);
}

void log_abandon(struct thread *th) { th->event_open = 0; }

/* ---- the ring of a new domain: made here, handed to the recorder with this process's control socket ---- */

static s64 log_memory(void) {
  struct rlimit_k size;
  if (SYS4(RR_NR_prlimit64, 0, RLIMIT_FSIZE, NULL, &size) >= 0 && size.soft < RR_RING_SIZE) return -ENOMEM; /* else SIGXFSZ */
  s64 memory = SYS2(RR_NR_memfd_create, "rr-py log", 1);
  if (memory < 0) return memory;
  if (SYS2(RR_NR_ftruncate, memory, RR_RING_SIZE) >= 0 &&
      SYS6(RR_NR_mmap, RR_RING, RR_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) == (s64)RR_RING)
    return memory;
  SYS1(RR_NR_close, memory);
  return -ENOMEM;
}

/* The second is not where the first is to be. */
static s64 control_pair(s32 *pair) {
  s64 result = SYS4(RR_NR_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
  if (result >= 0 && pair[1] == HIDDEN(RR_FD_CONTROL)) {
    pair[1] = pair[0];
    pair[0] = HIDDEN(RR_FD_CONTROL);
  }
  return result;
}

/* The second try: limits are lifted, and the hidden numbers that only keep a place are used for it. */
static s64 create_hard(s64 *memory, s32 *pair) {
  struct limits limits;
  limits_lift(&limits);
  if (*memory >= 0) SYS1(RR_NR_close, *memory);
  for (u32 i = RR_FD_CONTROL; i < RR_FD_COUNT; i++) SYS1(RR_NR_close, HIDDEN(i));
  s64 paired = control_pair(pair);
  *memory = paired < 0 ? paired : log_memory();
  limits_restore(&limits);
  return *memory < 0 ? *memory : paired;
}

/* Numbers of the core's own that nothing uses are taken, so that the program gets none of them. */
void keep_places(u32 from) {
  for (u32 i = from; i < RR_FD_COUNT; i++)
    if (SYS2(RR_NR_fcntl, HIDDEN(i), F_GETFL) < 0) SYS3(RR_NR_dup3, HIDDEN(RR_FD_GLOBAL), HIDDEN(i), i == RR_FD_CONTROL ? SOCK_CLOEXEC : 0);
}

/* Where neither can be had the program goes on unrecorded, and the recorder is told. */
static void create(u32 domain, struct rr_msg *hello) {
  s32 pair[2] = {-1, -1}, fds[2];
  s64 memory = log_memory(), paired = memory < 0 ? -1 : control_pair(pair);
  int hard = paired < 0;
  if (hard) paired = create_hard(&memory, pair);
  if (paired < 0) {
    if (SYS6(RR_NR_mmap, RR_RING, RR_RING_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != (s64)RR_RING)
      fatal("no memory for the log");
    if (pair[0] >= 0) SYS1(RR_NR_close, pair[0]);
    memory = -1;
  } else {
    hide_control(pair[0]);
  }
  u32 tid = (u32)SYS0(RR_NR_gettid);
  RING->magic = RR_RING_MAGIC;
  RING->version = RR_ABI_VERSION;
  RING->domain = domain;
  RING->state = RR_RECORDING;
  RING->baton = tid;
  RING->last_holder = RING->turn[tid % RR_TURN_WORDS] = tid;
  RING->ntasks = 1;
  RING->stop_at = ~0ul;
  RING->checksum_every = GLOBAL->checksum_every;
  start_slot();
  fds[0] = (s32)memory;
  fds[1] = pair[1];
  if (channel_send(HIDDEN(RR_FD_HELLO), hello, fds, memory < 0 ? 0 : 2) < 0 || memory < 0) stop_recording(RR_STOP_RECORDER);
  if (memory >= 0) SYS1(RR_NR_close, memory);
  if (pair[1] >= 0) SYS1(RR_NR_close, pair[1]);
  if (hard) {
    struct limits limits;
    limits_lift(&limits);
    keep_places(RR_FD_CONTROL);
    limits_restore(&limits);
  }
}

void ring_create(u32 domain) {
  struct rr_msg msg = {.type = RR_M_HELLO_EXEC, .a = domain};
  create(domain, &msg);
}

void ring_create_child(u32 domain, u32 parent, u32 parent_pid) {
  struct rr_msg msg = {.type = RR_M_HELLO_FORK, .a = domain, .b = parent, .c = parent_pid};
  create(domain, &msg);
}

/* A forked child that stays in its parent's domain needs only a control socket of its own. Where all descriptors are in
 * use, the hidden numbers that only keep a place, and the parent's control socket, make room. */
void control_create(u32 domain, u32 parent_pid) {
  s32 pair[2];
  struct limits limits;
  int hard = control_pair(pair) < 0;
  if (hard) {
    limits_lift(&limits);
    if (control_pair(pair) < 0) {
      for (u32 i = RR_FD_CONTROL; i < RR_FD_COUNT; i++) SYS1(RR_NR_close, HIDDEN(i));
      if (control_pair(pair) < 0) fatal("no control socket");
    }
  }
  hide_control(pair[0]);
  struct rr_msg msg = {.type = RR_M_HELLO_FORK, .a = domain, .b = domain, .c = parent_pid, .d = 1};
  channel_send(HIDDEN(RR_FD_HELLO), &msg, &pair[1], 1);
  SYS1(RR_NR_close, pair[1]);
  if (hard) {
    keep_places(RR_FD_CONTROL);
    limits_restore(&limits);
  }
}
