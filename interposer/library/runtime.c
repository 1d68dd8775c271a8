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
	u64 lives, lives_done, schedule, nschedule, most_lives, most_done; u32 ends_by, inexact, lost, untrapped;
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
	u32 map_lock, registry, slots_lock, pad;
	u64 nforeign, foreign[32][2];
	struct rr_thread *table[THREADS];
	u64 outputs; void *live[64]; u64 nlive; u32 forking, nkids, kids[KIDS][2]; u32 is_kid, signal_nr; u64 acted, interrupts; struct rr_action action[65]; u32 ntraps, pad3; struct rr_trap traps[TRAPS];
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
/* A lock of all processes of the recording. It holds its owner's number: an owner that has ended gives it up.
 * Who is patient waits as long as it takes, others a fifth of a second, and then go on without: returns 0. */
static int lock_shared(u32 *p, int patient)
{
	u32 n = 0, owner; u64 t[2];
	while (!swap(p, 0, rr_state.pid)) {
		owner = *(volatile u32 *)p;
		if (++n < 200) { pause_(); continue; }
		if (n < 400) { syscall(24); continue; }
		if (owner && n % 16 == 0 && dead(owner) && swap(p, owner, rr_state.pid)) return 1;
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
	lock_shared(&ctl->lock, 1);
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

static struct rr_event *turn(struct rr_call *c)
{
	u32 spins = 0, seen; struct rr_event *e;
	for (;;) {
		seen = *(volatile u32 *)&ctl->turn;
		if (*(volatile u32 *)&ctl->stopped) park();
		if (ctl->cursor >= ctl->end && ctl->ends_by && !rr_state.is_kid) die(ctl->ends_by);
		/* The process was killed at this place; the tool does it again. */
		if (rr_state.last == c->t->id) for (;;) syscall(34);
		if (ctl->cursor >= ctl->end) diverge(c, D_END, 255, 0, 0);
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

void *rr_translate(u64 key)
{
	u64 i, found = key;
	if (!key || !map_size || ctl->mode != RR_M_REPLAY) return (void *)key;
	lock(&map_lock);
	i = (key >> 3) * 0x9E3779B97F4A7C15UL % map_size;
	while (map_keys[i] && map_keys[i] != key) i = (i + 1) % map_size;
	if (map_keys[i]) found = map_values[i];
	unlock(&map_lock);
	return (void *)found;
}

#define OBJECT 0x7272206f626a6563UL
static u64 *object(void *p) { return p && ((u64)p & 7) == 0 && ((u64 *)p)[-2] == OBJECT ? p : 0; }
static int zeroed(const u8 *p, u64 n) { while (n) if (p[--n]) return 0; return 1; }

/* ---- what stubs call ---- */
static int is_foreign(u64 ip)
{
	u32 i;
	for (i = 0; i < rr_state.nforeign; i++) if (ip - rr_state.foreign[i][0] < rr_state.foreign[i][1]) return 1;
	return 0;
}

static int enter(struct rr_call *c, u32 nr, u64 ip)
{
	struct rr_thread *t;
	if (off) return 0;
	t = self();
	if (!t || t->depth) return 0;
	t->depth = 1;
	if (!rr_state.settled) settle();
	c->t = t; c->base = t->len; c->nr = nr; c->ip = ip; c->flags = 0; c->nargs = 0; c->result = 0; c->e = 0; c->took = 0;
	c->errno_in = *__errno_location();
	c->replaying = ctl->mode == RR_M_REPLAY;
	c->time_in = now();
	ctl->calls++; t->points++;
	return 1;
}

int rr_enter(struct rr_call *c, u32 nr, u64 ip) { return !is_foreign(ip) && enter(c, nr, ip); }
/* Also where the C library itself calls: execvp ends in execve. */
int rr_enter_anywhere(struct rr_call *c, u32 nr, u64 ip) { return enter(c, nr, ip); }

/* A call has ended: signals that came meanwhile are delivered. */
static void boundary(struct rr_thread *t, int replaying)
{
	t->points++;
	if (replaying) due(t); else if (t->nheld) release_held(t, AT_BOUNDARY);
}

int rr_enter_ordered(struct rr_call *c, u32 nr, u64 ip) { return ctl->multi ? rr_enter(c, nr, ip) : 0; }

/* Calls made in earnest are counted: of a program that a signal ended, replay makes as many. */
static void counted(u64 *p) { if (ctl->multi) add((u32 *)p, 1); else ++*p; }

void rr_live_enter(struct rr_call *c)
{
	struct rr_thread *t = c->t;
	if (!rr_state.is_kid) {
		counted(&ctl->lives);
		if (ctl->ends_by && ctl->cursor >= ctl->end && ctl->lives > ctl->most_done) die(ctl->ends_by);
	}
	if (c->replaying) due(t); else { t->since = c->time_in; if (t->nheld) release_held(t, AT_BOUNDARY); }
	c->outer = t->call; t->call = 0; t->live_call = 1;
	*__errno_location() = c->errno_in;
}

void rr_live_leave(struct rr_call *c)
{
	struct rr_thread *t = c->t;
	if (!rr_state.is_kid) counted(&ctl->lives_done);
	t->call = c->outer; t->len = c->base; t->live_call = 0;
	boundary(t, c->replaying);
	t->depth = 0;
}

void rr_in(struct rr_call *c, int arg, const void *p, u64 n)
{
	u64 shown = n < IN_SHOWN ? n : IN_SHOWN, *x;
	if (!p || (i64)n < 0) return;
	memcpy(region(c, RR_R_IN, arg, 0, shown), p, shown);
	if (shown < n) { x = (u64 *)region(c, RR_R_SIZE, arg, 0, 16); x[0] = n; x[1] = hash(p, n); }
}

void rr_in_string(struct rr_call *c, int arg, const char *s) { if (s) rr_in(c, arg, s, strlen(s) + 1); }

void rr_in_strings(struct rr_call *c, int arg, char **s, i64 n)
{
	i64 i;
	if (!s) return;
	for (i = 0; n < 0 ? s[i] != 0 : i < n; i++) rr_in_string(c, arg, s[i] ? s[i] : "");
}

void rr_data(struct rr_call *c, int arg, void *p) { c->cmp[arg] |= RR_C_NULL | 8; }

static void arguments(struct rr_call *c)
{
	if (c->nargs > 6) memcpy(region(c, RR_R_REGS, 6, 0, (c->nargs - 6) * 8), c->more, (c->nargs - 6) * 8);
}

void rr_begin(struct rr_call *c)
{
	c->in_end = c->t->len;
	arguments(c);
	c->outer = c->t->call; c->announced = 0; c->t->call = c;
	if (!c->replaying && c->t->nheld) release_held(c->t, AT_CALL);
	*__errno_location() = c->errno_in;
}

static void compare(struct rr_call *c, struct rr_event *e)
{
	u64 n = c->in_end - c->base, i, *more = (u64 *)((u8 *)(e + 1) + n + 16);
	struct rr_region *mine, *theirs; u8 *p = c->t->buf + c->base, *q = (u8 *)(e + 1); u64 at = 0, a, r;
	while (at < n) {
		mine = (struct rr_region *)(p + at);
		if (at + 16 > e->payload_len) diverge(c, D_INPUT, mine->arg, at, 0);
		theirs = (struct rr_region *)(q + at);
		if (mine->kind != theirs->kind || mine->arg != theirs->arg || mine->len != theirs->len || memcmp(mine + 1, theirs + 1, mine->len)) diverge(c, D_INPUT, mine->arg, at, 0);
		at += 16 + ((mine->len + 7) & ~7UL);
	}
	if (at + 16 <= e->payload_len && (((struct rr_region *)(q + at))->kind == RR_R_IN || ((struct rr_region *)(q + at))->kind == RR_R_SIZE)) diverge(c, D_INPUT, ((struct rr_region *)(q + at))->arg, at, 0);
	for (i = 0; i < c->nargs; i++) {
		a = i < 6 ? c->args[i] : c->more[i - 6]; r = i < 6 ? e->args[i] : more[i - 6];
		if ((c->cmp[i] & RR_C_VALUE) && a != r) diverge(c, D_ARGS, i, a, r);
		if ((c->cmp[i] & RR_C_HANDLE) && a != (u64)rr_translate(r)) diverge(c, D_ARGS, i, a, r);
		if ((c->cmp[i] & RR_C_NULL) && !a != !r) diverge(c, D_ARGS, i, a, r);
		if ((c->cmp[i] & 8) && r) map_put(r, a);
		if ((c->cmp[i] & 16) && a != r && object((void *)a)) { ((u64 *)a)[-2] = 0; map_put(r, r); rr_drop((u64 *)a - 2); }
	}
	c->at = q + n + (c->nargs > 6 ? 16 + (c->nargs - 6) * 8 : 0);
	c->end = q + e->payload_len;
	c->e = e;
}

static void calls_back(struct rr_call *c, struct rr_event *e)
{
	struct rr_event *full = whole(c, e);
	c->t->depth = 0;
	consumed(event_at(ctl->cursor));
	rr_state.callbacks[full->nr](full);
	c->t->depth = 1;
}

i64 rr_answer(struct rr_call *c)
{
	struct rr_event *e, *full;
	while ((e = turn(c))->flags & (RR_L_CALLBACK | RR_L_ENTER)) {
		if (e->flags & RR_L_CALLBACK) { if (e->flags & RR_L_SIGNAL) signal_again(c, e); else calls_back(c, e); continue; }
		if (e->nr != c->nr) diverge(c, D_CALL, 255, c->nr, e->nr);
		compare(c, whole(c, e));
		consumed(event_at(ctl->cursor));
	}
	if (e->nr != c->nr || (e->flags & RR_L_RETURN)) diverge(c, D_CALL, 255, c->nr, e->nr);
	full = whole(c, e);
	compare(c, full);
	c->result = full->result;
	return c->result;
}

static struct rr_region *next(struct rr_call *c, int arg)
{
	struct rr_region *r = (struct rr_region *)c->at;
	if (c->at + 16 > c->end || r->arg != arg || r->kind != RR_R_OUT) return 0;
	c->at += 16 + ((r->len + 7) & ~7UL);
	return r;
}

void rr_out(struct rr_call *c, int arg, void *p, u64 n)
{
	struct rr_region *r;
	if (c->replaying) { r = next(c, arg); if (r && p) memcpy(p, r + 1, r->len); return; }
	if (!p || (i64)n < 0) return;
	memcpy(region(c, RR_R_OUT, arg, (u64)p, n), p, n);
}

/* What the library owns and the program may read: role 0 lives in the log, or is a parameter that is given back (gettext); 1 is allocated for the program; 2 as 1, zeroed, and handed back as a handle. */
void *rr_ret(struct rr_call *c, int arg, const void *p, u64 n, int role)
{
	struct rr_region *r; u64 *q, *x, *old, *had, i; int moved = role == 3;
	if (moved) role = 2;
	if (role == 2 && p && !c->replaying) rr_forget((void *)p);
	if (!c->replaying) {
		if (!p || (i64)n < 0) return (void *)p;
		if (role == 0 && arg >= 128) for (i = 0; i < c->nargs && i < 6; i++) if ((u64)p == c->args[i]) { region(c, RR_R_OUT, arg, 1 + i, 0); return (void *)p; }
		if (role != 2) { memcpy(region(c, RR_R_OUT, arg, (u64)p, n), p, n); return (void *)p; }
		x = (u64 *)region(c, RR_R_OUT, arg, (u64)p, 16); x[0] = n; x[1] = zeroed(p, n);
		return (void *)p;
	}
	r = next(c, arg);
	if (!r) return 0;
	if (role == 0 && r->len == 0 && r->addr - 1 < 6) return (void *)c->args[r->addr - 1];
	if (role == 0) { map_put(r->addr, (u64)(r + 1)); return r + 1; }
	if (role == 4) { q = rr_take(r->len); memcpy(q, r + 1, r->len); map_put(r->addr, (u64)q); return q; }
	x = (u64 *)(r + 1);
	n = role == 2 ? x[0] : r->len;
	old = moved && c->args[0] ? object((void *)c->args[0]) : 0;
	had = (u64 *)rr_translate(r->addr);
	q = role == 2 && (u64)had != r->addr && had != (u64 *)c->args[0] && object(had) && had[-1] >= n ? had : 0;
	if (!q) { q = rr_take(n + 17); q[0] = OBJECT; q[1] = n; q += 2; memset(q, 0, n + 1); }
	if (role != 2) memcpy(q, r + 1, n);
	else if (old && (u64 *)c->args[0] != q) memcpy(q, old, old[-1] < n ? old[-1] : n);
	else if (x[1]) memset(q, 0, n);
	map_put(r->addr, (u64)q);
	if (role == 2) rr_forget(q);
	return q;
}

char *rr_ret_string(struct rr_call *c, int arg, const char *s, int role) { return rr_ret(c, arg, s, s && !c->replaying ? strlen(s) + 1 : 0, role); }

void rr_advance_pointer(struct rr_call *c, int arg, u8 **p, u8 *before)
{
	i64 by = *p - before;
	rr_out(c, arg, &by, 8);
	if (c->replaying) *p = before + by;
}

void rr_refuse(int code) { *__errno_location() = code; }

/* A function changed what its interface says it leaves alone: the recorder tells. */
u64 rr_kept(const void *p, u64 n) { return p ? hash(p, n) : 0; }
void rr_broken(struct rr_call *c) { ctl->broken = c->nr; }

/* While a call is open, what is called beneath it is logged, too. */
void rr_open(struct rr_call *c) { commit(c, RR_L_ENTER); c->announced = 1; c->t->depth = 0; }
void rr_shut(struct rr_call *c) { c->t->depth = 1; c->t->call = c; }

/* What getline does to the program's buffer. */
void rr_line(struct rr_call *c, int arg, char **to, u64 *room, i64 n)
{
	struct rr_region *r;
	if (!c->replaying) { rr_out(c, arg, n > 0 ? *to : 0, n); return; }
	r = next(c, arg);
	if (!r) return;
	if (!*to || *room < r->len) { *room = r->len < 120 ? 120 : r->len; *to = rr_retake(*to, *room); }
	memcpy(*to, r + 1, r->len);
}

/* count, then offsets of the strings from the region's data (0: NULL), which replay turns into pointers. */
void rr_put_strings(struct rr_call *c, int arg, char **s, i64 n)
{
	i64 i; u64 size, *x; u8 *q;
	if (!s) return;
	if (n < 0) for (n = 0; s[n]; n++) ;
	size = 16 + n * 8;
	for (i = 0; i < n; i++) if (s[i]) size += strlen(s[i]) + 1;
	q = region(c, RR_R_OUT, arg, (u64)s, size); x = (u64 *)q; x[0] = n; size = 16 + n * 8;
	for (i = 0; i < n; i++) { x[i + 1] = s[i] ? size : 0; if (s[i]) { u64 l = strlen(s[i]) + 1; memcpy(q + size, s[i], l); size += l; } }
	x[n + 1] = 0;
}

void *rr_region_of(struct rr_event *e, int arg, u64 *n)
{
	u8 *p = (u8 *)(e + 1), *end = p + e->payload_len; struct rr_region *r;
	for (; p + 16 <= end; p += 16 + ((r->len + 7) & ~7UL)) { r = (struct rr_region *)p; if (r->arg == arg && r->kind == RR_R_OUT) { if (n) *n = r->len; return r + 1; } }
	return 0;
}

u64 *rr_more_of(struct rr_event *e)
{
	u8 *p = (u8 *)(e + 1), *end = p + e->payload_len; struct rr_region *r;
	for (; p + 16 <= end; p += 16 + ((r->len + 7) & ~7UL)) { r = (struct rr_region *)p; if (r->kind == RR_R_REGS) return (u64 *)(r + 1); }
	return 0;
}

void *rr_strings_of(struct rr_event *e, int arg)
{
	u64 *x = rr_region_of(e, arg, 0), i, n;
	if (!x) return 0;
	n = x[0];
	for (i = 1; i <= n; i++) if (x[i]) x[i] += (u64)x;
	return x + 1;
}

/* The end of a call in the log; returns what errno is then. */
static int logged(struct rr_call *c, int code)
{
	struct rr_region *r;
	if (c->replaying) {
		r = (struct rr_region *)(c->end - 24);
		if ((c->e->flags & RR_L_ERRNO) && r->kind == RR_R_INFO) code = *(i32 *)(r + 1); else code = c->errno_in;
		consumed(event_at(ctl->cursor));
		return code;
	}
	if (code != c->errno_in) { *(i32 *)region(c, RR_R_INFO, 255, 0, 8) = code; c->flags |= RR_L_ERRNO; }
	commit(c, c->flags);
	return code;
}

void rr_leave(struct rr_call *c)
{
	struct rr_thread *t = c->t; int code = *__errno_location();
	if (off) { t->call = c->outer; t->len = c->base; t->depth = 0; return; }
	code = logged(c, code);
	t->call = c->outer;
	t->len = c->base;
	*__errno_location() = code;
	boundary(t, c->replaying);
	t->depth = 0;
}

/* A release is logged before it is carried out; the log says nothing of its result, which is 0. */
void rr_release(struct rr_call *c)
{
	c->flags |= RR_L_RELEASE;
	if (!c->replaying) { commit(c, c->flags); c->t->len = c->base; c->flags = 0; return; }
	rr_answer(c);
	consumed(event_at(ctl->cursor));
	c->t->len = c->in_end = c->base;
	c->flags = 0;
}

void rr_end(struct rr_call *c) { c->t->call = c->outer; c->t->len = c->base; c->t->depth = 0; }
