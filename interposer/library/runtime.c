/* The log at a library interface, inside the program. See docs/interfaces.md. */
extern void *memset(void *, int, u64);
extern int memcmp(const void *, const void *, u64);
extern long syscall(long, ...);
extern int clock_gettime(int, void *);
extern int *__errno_location(void);
extern void *realloc(void *, u64);

struct rr_slot { u32 state, nevents, payload_used, last; u64 first_event, sequence; u8 pad[32]; };
#define KIDS 64u
#define KNOCKS 32u
/* A process that is about to become another program: see family.c. */
struct rr_knock { u32 state, pid, tid, task; u64 path, pad; };
struct rr_ctl {
	u32 task, mode, tool_pid, pid;
	u32 lock, slot, sealed, turn;
	u64 events, sequence, cursor, end;
	u64 event_no, calls;
	u32 threads, multi, diverged, stopped;
	u32 div_task, div_nr, div_arg, div_flags;
	u64 div_ip, div_found, div_expected, div_offset;
	u64 div_args[6];
	u32 div_len, full, waiting, unseen;
	u8 div_data[1024];
	u32 out_lock, knock, broken, left, kids[KIDS];
	u64 lives, lives_done, schedule, nschedule, most_lives, most_done; u32 ends_by, inexact, lost, untrapped, whole, cut;
	struct rr_knock knocks[KNOCKS];
};
#define SLOTS 8
#define SLOT_SIZE 0x100000u
#define SLOT_EVENTS 4096u
#define EVENTS_OFF 64u
#define PAYLOAD_OFF (EVENTS_OFF + SLOT_EVENTS * 96u)
#define PAYLOAD_MAX (SLOT_SIZE - PAYLOAD_OFF)
#define CTL_SIZE 0x10000u
#define IN_SHOWN 256u
#define THREADS 4096u

/* Buffers of a stream as they were after the last call. */
struct rr_seen { void *f; u8 *read_ptr, *read_end, *write_ptr, *write_base, *taken, *put; u64 taken_size, put_size; };
#define FILES 1024u

#define TRAPS 1024u
struct rr_trap { u64 at; u16 nr; u8 kind, length, where, size, pad[2]; };
struct rr_action { void *handler; u64 flags; void *restorer; u64 mask; };

/* A CModule's own data is read-only: what changes lives in memory that the script allocates. */
struct rr_state {
	struct rr_ctl *ctl; u8 *area; i64 off; struct rr_thread *main_thread;
	u64 map_size, map_used; u64 *map_keys, *map_values;
	u64 tsc0, ns0, tsc_mult;
	u32 map_lock, registry, slots_lock, throughs;
	u64 nforeign, foreign[32][2];
	struct rr_thread *table[THREADS];
	u64 outputs; void *live[64]; u64 nlive; u32 forking, nkids, kids[KIDS][2]; u32 is_kid, signal_nr, leaves, pad6; u64 acted, interrupts; struct rr_action action[65]; u32 ntraps, pad3; struct rr_trap traps[TRAPS];
	u64 heap, heap_used, heap_free[40]; void *heap_was[8]; u32 heap_lock, pad4; u64 pages_used, placed; u32 settled, pad5;
	u32 pid, task, last, pad2; u64 base;
	struct rr_seen files[FILES];
	void (*callbacks[8192])(struct rr_event *e);
};
extern struct rr_state rr_state;
#define ctl rr_state.ctl
#define area rr_state.area
#define off rr_state.off
#define main_thread rr_state.main_thread
#define map_size rr_state.map_size
#define map_used rr_state.map_used
#define map_keys rr_state.map_keys
#define map_values rr_state.map_values
#define map_lock rr_state.map_lock
#define registry rr_state.registry
#define slots_lock rr_state.slots_lock
#define tsc0 rr_state.tsc0
#define ns0 rr_state.ns0
#define tsc_mult rr_state.tsc_mult
#define table rr_state.table
enum { D_CALL = 1, D_ARGS = 2, D_INPUT = 4, D_END = 8, D_KIND = 9, D_RESULT = 10 };

static u32 xchg(u32 *p, u32 v) { __asm__ volatile("xchgl %0,%1" : "+r"(v), "+m"(*p) : : "memory"); return v; }
static int swap(u32 *p, u32 was, u32 is) { u32 had = was; __asm__ volatile("lock; cmpxchgl %2,%1" : "+a"(had), "+m"(*p) : "r"(is) : "memory"); return had == was; }
static void add(u32 *p, u32 v) { __asm__ volatile("lock; addl %1,%0" : "+m"(*p) : "r"(v) : "memory"); }
static u64 fetch_add(u64 *p, u64 v) { __asm__ volatile("lock; xaddq %0,%1" : "+r"(v), "+m"(*p) : : "memory"); return v; }
static u64 tcb(void) { u64 p; __asm__ volatile("movq %%fs:0,%0" : "=r"(p)); return p; }
static void pause_(void) { __asm__ volatile("pause" : : : "memory"); }
static void lock(u32 *p) { u32 n = 0; while (xchg(p, 1)) { if (++n < 200) pause_(); else { syscall(24); n = 100; } } }
/* Whether a process has ended: /proc/PID/stat says Z or X behind the name's last parenthesis, or is not there. */
static int dead(u32 pid)
{
	char text[512], *at = text + 40; i64 n, i, file, found = 1;
	memcpy(at, "/stat", 6);
	for (n = pid; n; n /= 10) *--at = '0' + n % 10;
	at -= 6; memcpy(at, "/proc/", 6);
	if ((file = syscall(2, at, 0, 0)) < 0) return 1;
	n = syscall(0, file, text, sizeof(text));
	syscall(3, file);
	for (i = 0; i + 2 < n; i++) if (text[i] == ')') found = text[i + 2] == 'Z' || text[i + 2] == 'X';
	return found;
}
/* A lock of all processes of the recording. It holds its owner's number, of a process or a thread: an owner that has
 * ended gives it up. Who is patient waits as long as it takes, others a fifth of a second, and then go on without:
 * returns 0. Who has it already has it again: a handler that interrupted its owner, or left it by a jump. */
static int lock_shared(u32 *p, u32 me, int patient)
{
	u32 n = 0, owner; u64 t[2];
	while (!swap(p, 0, me)) {
		owner = *(volatile u32 *)p;
		if (!patient && owner == me) return 1;
		if (++n < 200) { pause_(); continue; }
		if (n < 400) { syscall(24); continue; }
		if (owner && n % 16 == 0 && dead(owner) && swap(p, owner, me)) { if (!patient) add(&ctl->cut, 1); return 1; }
		if (!patient && n > 600) return 0;
		t[0] = 0; t[1] = 1000000; syscall(202, p, 0, owner, t, (void *)0, 0);
	}
	return 1;
}
static void unlock(u32 *p) { __asm__ volatile("" : : : "memory"); xchg(p, 0); }
static u64 clock(void) { u64 t[2]; clock_gettime(1, t); return t[0] * 1000000000UL + t[1]; }
static u64 tsc(void) { u32 a, d; __asm__ volatile("rdtsc" : "=a"(a), "=d"(d)); return ((u64)d << 32) | a; }
/* Nanoseconds of CLOCK_MONOTONIC from the time-stamp counter, set right by the clock every 2^24 ticks. */
static u64 now(void)
{
	u64 t = tsc(), by = t - tsc0;
	if (by > 16777216) { if (!tsc_mult) return clock(); ns0 = clock(); tsc0 = tsc(); by = 0; }
	return ns0 + (by * tsc_mult >> 24);
}
static void calibrate(void)
{
	u64 n0 = clock(), t0 = tsc(), n1, t1;
	do n1 = clock(); while (n1 - n0 < 2000000);
	t1 = tsc(); ns0 = n1; tsc0 = t1; tsc_mult = ((n1 - n0) << 24) / (t1 - t0);
}
#define BIT(s) (1UL << ((s) - 1))
#define FAULTS (BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(8) | BIT(11) | BIT(31))
#define HELD_BACK ~(FAULTS | BIT(32) | BIT(33))	/* those of the C library itself are its own */
static u64 set_mask(u64 m) { u64 old = 0; syscall(14, 2, &m, &old, 8); return old; }
static void due(struct rr_thread *t);
static void settle(void);
static void release_held(struct rr_thread *t, int where);
static void signal_again(struct rr_call *c, struct rr_event *e);
static void die(int s);
static void wake(u32 *p) { syscall(202, p, 1, 0x7fffffff, (void *)0, (void *)0, 0); }
static void wait_(u32 *p, u32 seen, u64 ns) { u64 t[2]; t[0] = 0; t[1] = ns; syscall(202, p, 0, seen, t, (void *)0, 0); }

/* The log's own memory lies far from the program's, which is to have the same addresses in both runs. */
#define PAGES_AT 0x210000000000UL
static void *pages(u64 n)
{
	return (void *)syscall(9, PAGES_AT + fetch_add(&rr_state.pages_used, (n + 4095) & ~4095UL), n, 3, 0x22, -1, 0);
}

static struct rr_thread *watched(void);
static struct rr_thread *self(void)
{
	u64 me = tcb(); u32 i = (u32)((me >> 6) * 2654435761u) % THREADS;
	struct rr_thread *t;
	while ((t = table[i]) != 0) { if (t->tcb == me) return t; i = (i + 1) % THREADS; }
	if (!main_thread && (u32)syscall(186) == rr_state.pid) {
		main_thread = t = pages(4096); t->tcb = me; t->id = rr_state.task; t->points = rr_state.base; table[i] = t; return t;
	}
	return ctl->mode == RR_M_WATCH ? watched() : 0;
}

struct rr_thread *rr_register(u32 id)
{
	u64 me = tcb(); u32 i = (u32)((me >> 6) * 2654435761u) % THREADS; struct rr_thread *t;
	lock(&registry);
	while ((t = table[i]) != 0) { if (t->tcb == me) break; i = (i + 1) % THREADS; }
	if (!t) { t = pages(4096); t->tcb = me; table[i] = t; }
	t->id = id; t->depth = 0; t->len = 0; t->call = 0;
	t->inside = t->nheld = t->gate = t->resent = t->injected = t->has_timer = t->scheduled = 0; t->points = t->at_due = 0;
	unlock(&registry);
	return t;
}

/* A thread of a process that was running already: all but Frida's own are the program's. */
static struct rr_thread *watched(void)
{
	char name[16];
	if (syscall(157, 16, name) != 0) return 0;
	if (!memcmp(name, "gum-js", 6) || !memcmp(name, "gmain", 5) || !memcmp(name, "gdbus", 5) || !memcmp(name, "pool-", 5) || !memcmp(name, "frida", 5)) return 0;
	return rr_register((u32)syscall(186));
}

static void grow(struct rr_thread *t, u64 need)
{
	u64 cap = t->cap ? t->cap : 65536; u8 *p;
	while (cap < need) cap *= 2;
	p = pages(cap);
	if (t->buf) { memcpy(p, t->buf, t->len); syscall(11, t->buf, t->cap); }
	t->buf = p; t->cap = cap;
}

static u8 *region(struct rr_call *c, int kind, int arg, u64 addr, u64 n)
{
	struct rr_thread *t = c->t; u64 all = 16 + ((n + 7) & ~7UL); struct rr_region *r;
	if (t->len + all > t->cap) grow(t, t->len + all);
	r = (struct rr_region *)(t->buf + t->len);
	r->addr = addr; r->len = (u32)n; r->kind = kind; r->arg = arg; r->full_hi = 0;
	if (n & 7) *(u64 *)(t->buf + t->len + all - 8) = 0;
	t->len += all;
	return (u8 *)(r + 1);
}

static u64 hash(const u8 *p, u64 n)
{
	u64 h = 14695981039346656037UL ^ n, w;
	for (; n >= 8; n -= 8, p += 8) { memcpy(&w, p, 8); h = (h ^ w) * 0x9E3779B97F4A7C15UL; h ^= h >> 29; }
	for (; n; n--, p++) h = (h ^ *p) * 1099511628211UL;
	return h;
}

/* ---- the log while recording ---- */
static struct rr_slot *slot_at(u32 i) { return (struct rr_slot *)(area + (u64)(i % SLOTS) * SLOT_SIZE); }

static int alive(void) { return syscall(62, ctl->tool_pid, 0) == 0; }

static u32 filled(struct rr_slot *s)
{
	struct rr_event *last = (struct rr_event *)((u8 *)s + EVENTS_OFF) + s->nevents - 1;
	return s->nevents ? last->payload_off + last->payload_len : 0;
}

static struct rr_slot *room(u32 n)
{
	struct rr_slot *s = slot_at(ctl->slot);
	/* Another process may have been killed at any place below: what it left half done is made good. */
	if (ctl->sequence > ctl->slot && s->state != 1) { ctl->slot++; s = slot_at(ctl->slot); }
	if (s->state == 1) { ctl->events = s->first_event + s->nevents; s->payload_used = filled(s); }
	if (s->state == 1 && s->nevents < SLOT_EVENTS && s->payload_used + n <= PAYLOAD_MAX) return s;
	if (s->state == 1) { s->state = 2; ctl->slot++; ctl->sealed++; wake(&ctl->sealed); s = slot_at(ctl->slot); }
	while (s->state != 0) {
		ctl->full++;
		wait_(&s->state, 2, 50000000);
		if (s->state != 0 && !alive()) { off = 1; return 0; }
	}
	s->nevents = 0; s->payload_used = 0; s->first_event = ctl->events; s->sequence = ctl->slot;
	__asm__ volatile("" : : : "memory");
	s->state = 1;
	ctl->sequence = ctl->slot + 1;
	return s;
}

static struct rr_event *append(struct rr_call *c, u8 flags, const u8 *data, u32 n, u32 wrap)
{
	struct rr_slot *s = room(n + wrap); struct rr_event *e; struct rr_region *r; u8 *to;
	if (!s) return 0;
	e = (struct rr_event *)((u8 *)s + EVENTS_OFF) + s->nevents;
	to = (u8 *)s + PAYLOAD_OFF + s->payload_used;
	if (wrap) { r = (struct rr_region *)to; r->addr = 0; r->len = n; r->kind = RR_R_INFO; r->arg = 254; r->full_hi = 0; }
	memcpy(to + wrap, data, n);
	n += wrap;
	e->task = c->t->id; e->kind = RR_LIBCALL; e->flags = flags; e->nr = c->nr; e->ip = c->ip;
	memcpy(e->args, c->args, 48);
	e->result = c->result; e->time_in = c->time_in; e->time_out = c->t->since = now();
	e->payload_off = s->payload_used; e->payload_len = n;
	s->payload_used += n; ctl->events++;
	__asm__ volatile("" : : : "memory");
	s->nevents++;
	return e;
}

#define PIECE 524288u
static void commit(struct rr_call *c, u8 flags)
{
	struct rr_thread *t = c->t; u64 n = t->len - c->base, all = ~0UL, mask; u8 *p = t->buf + c->base; u32 shared = ctl->multi;
	if (shared) syscall(14, 2, &all, &mask, 8);	/* not stopped or killed by a signal with the lock in hand */
	lock_shared(&ctl->lock, rr_state.pid, 1);
	u32 wrap = n > PIECE ? 16 : 0;
	while (n > PIECE) { if (!append(c, flags | RR_L_PART, p, PIECE, 16)) break; p += PIECE; n -= PIECE; }
	if (n <= PIECE) append(c, flags, p, (u32)n, wrap);
	unlock(&ctl->lock);
	if (shared) syscall(14, 2, &mask, (void *)0, 8);
}

/* ---- the log while replaying ---- */
static struct rr_event *event_at(u64 at) { return (struct rr_event *)(area + at); }

static void park(void)
{
	add(&ctl->knock, 1); wake(&ctl->knock);
	for (;;) syscall(34);
}

static void diverge(struct rr_call *c, u32 why, u32 arg, u64 found, u64 expected)
{
	if (xchg(&ctl->stopped, 1)) park();
	ctl->div_task = c->t->id; ctl->div_nr = c->nr; ctl->div_arg = arg; ctl->div_ip = c->ip; ctl->div_flags = c->flags;
	ctl->div_found = found; ctl->div_expected = expected; ctl->div_offset = ctl->cursor;
	memcpy(ctl->div_args, c->args, 48);
	ctl->div_len = (u32)(c->t->len - c->base < 1024 ? c->t->len - c->base : 1024);
	memcpy(ctl->div_data, c->t->buf + c->base, ctl->div_len);
	xchg(&ctl->diverged, why);
	park();
}

/* At the end of a whole log a thread may wait in a call that never ended: another one ends the process. It is one call
 * too many where nobody calls anything, and this process computes nothing, for some seconds. */
#define PATIENCE 50u
static int ends_soon(u32 *rounds, u64 *before)
{
	u64 t[2], now_[2];
	if (!ctl->multi || !ctl->whole) return 0;
	clock_gettime(2, t);
	now_[0] = ctl->calls; now_[1] = t[0] * 50 + t[1] / 20000000;
	if (now_[0] != before[0] || now_[1] != before[1]) { *rounds = 0; before[0] = now_[0]; before[1] = now_[1]; }
	return ++*rounds < PATIENCE;
}

static struct rr_event *turn(struct rr_call *c)
{
	u32 spins = 0, seen, rounds = 0; u64 before[2]; struct rr_event *e;
	before[0] = before[1] = 0;
	for (;;) {
		seen = *(volatile u32 *)&ctl->turn;
		if (*(volatile u32 *)&ctl->stopped) park();
		if (ctl->cursor >= ctl->end && ctl->ends_by && !rr_state.is_kid) die(ctl->ends_by);
		/* The process was killed at this place; the tool does it again. */
		if (rr_state.last == c->t->id) for (;;) syscall(34);
		/* It has become another program while it handled a signal. */
		if (rr_state.leaves) syscall(231, rr_state.leaves - 1);
		if (ctl->cursor >= ctl->end) {
			if (!ends_soon(&rounds, before)) diverge(c, D_END, 255, 0, 0);
			wait_(&ctl->turn, seen, 100000000);
			continue;
		}
		e = event_at(*(volatile u64 *)&ctl->cursor);
		if (e->task == c->t->id && e->kind == RR_LIBCALL) return e;
		if (++spins < 100) { pause_(); continue; }
		if (spins < 130) { syscall(24); continue; }
		add(&ctl->waiting, 1);
		wait_(&ctl->turn, seen, 100000000);
		add(&ctl->waiting, -1);
	}
}

static void consumed(struct rr_event *e)
{
	if (e->time_out == ~0UL) rr_state.last = e->task;
	else if (e->time_out > ~0UL - 257) rr_state.leaves = (u32)(~0UL - e->time_out);
	ctl->event_no++; ctl->cursor += 96 + e->payload_len;
	/* The next program of the family begins: the tool lets it go. */
	if (ctl->cursor < ctl->end && event_at(ctl->cursor)->kind == RR_EXECED) { add(&ctl->knock, 1); wake(&ctl->knock); }
	if (ctl->multi) { add(&ctl->turn, 1); if (*(volatile u32 *)&ctl->waiting) wake(&ctl->turn); }
}

/* A call whose payload was cut into pieces: put together again in pages of its own. */
static struct rr_event *whole(struct rr_call *c, struct rr_event *e)
{
	u64 at = ctl->cursor, n = 0; struct rr_event *p = e, *q; u8 *to;
	if (!(e->flags & RR_L_PART)) return e;
	for (;;) { n += p->payload_len - 16; if (!(p->flags & RR_L_PART)) break; at += 96 + p->payload_len; if (at >= ctl->end) diverge(c, D_END, 255, 0, 0); p = event_at(at); }
	q = pages(96 + n); memcpy(q, p, 96); to = (u8 *)(q + 1);
	while (e != p) { memcpy(to, (u8 *)(e + 1) + 16, e->payload_len - 16); to += e->payload_len - 16; consumed(e); e = event_at(ctl->cursor); }
	memcpy(to, (u8 *)(e + 1) + 16, e->payload_len - 16);
	q->payload_len = (u32)n;
	return q;
}

/* ---- pointers of the program that come back from the library ---- */
static void map_put(u64 key, u64 value)
{
	u64 i, n, *k, *v, j;
	lock(&map_lock);
	if (map_used * 2 >= map_size) {
		n = map_size ? map_size * 2 : 4096; k = pages(n * 8); v = pages(n * 8);
		for (j = 0; j < map_size; j++) if (map_keys[j]) { i = (map_keys[j] >> 3) * 0x9E3779B97F4A7C15UL % n; while (k[i]) i = (i + 1) % n; k[i] = map_keys[j]; v[i] = map_values[j]; }
		if (map_keys) { syscall(11, map_keys, map_size * 8); syscall(11, map_values, map_size * 8); }
		map_keys = k; map_values = v; map_size = n;
	}
	i = (key >> 3) * 0x9E3779B97F4A7C15UL % map_size;
	while (map_keys[i] && map_keys[i] != key) i = (i + 1) % map_size;
	if (!map_keys[i]) { map_keys[i] = key; map_used++; }
	map_values[i] = value;
	unlock(&map_lock);
}

static u64 map_get(u64 key)
{
	u64 i, found = key;
	lock(&map_lock);
	i = (key >> 3) * 0x9E3779B97F4A7C15UL % map_size;
	while (map_keys[i] && map_keys[i] != key) i = (i + 1) % map_size;
	if (map_keys[i]) found = map_values[i];
	unlock(&map_lock);
	return found;
}

void *rr_translate(u64 key) { return (void *)(key && map_size && ctl->mode == RR_M_REPLAY ? map_get(key) : key); }

/* Room of the program's for text, which it has given to go with an object of the library's. */
#define ROOM (0x726f6f6dUL << 32)
void rr_remember(u64 key, void *p) { map_put(key ^ ROOM, (u64)p); }

#define OBJECT 0x7272206f626a6563UL
static u64 *object(void *p) { return p && ((u64)p & 7) == 0 && ((u64 *)p)[-2] == OBJECT ? p : 0; }
static int zeroed(const u8 *p, u64 n) { while (n) if (p[--n]) return 0; return 1; }
