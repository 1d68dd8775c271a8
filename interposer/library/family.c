/* Continues runtime.c: the processes of a recording. All append to one log, in one order, each under the number
 * of its task. A child made by fork goes on in the log; a process that becomes another program knocks, is entered by
 * the tool at its new entry point, and goes on under the same number. What reaches the recording's own output is
 * logged once there is a second thread or process, so that replay writes it in that order. */
static u32 next_id(void) { u32 n = 1; __asm__ volatile("lock; xaddl %0,%1" : "+r"(n), "+m"(ctl->threads) : : "memory"); return ctl->task + n + 1; }

static void child(void) { if (!rr_state.forking) off = 1; }

static void kid(u32 pid, u32 by)
{
	u32 i;
	if (!pid) for (i = 0; i < KIDS; i++) if (ctl->kids[i] == by) return;
	for (i = 0; i < KIDS; i++) if (swap(ctl->kids + i, pid, by)) return;
}

/* The call is logged before it is made, because the child may be logged before its parent goes on. In replay a fifth
 * argument says that the child was killed before it made any call. */
int rr_fork(struct rr_call *c, void *function)
{
	int (*make)(void) = function; int real, silent = 0; u32 id = 0; u64 mask; struct rr_thread *t = c->t;
	ctl->multi = 1;
	rr_begin(c);
	if (!c->replaying) { c->args[4] = 0; c->args[5] = id = next_id(); }
	rr_release(c);
	if (c->replaying) { id = (u32)c->e->args[5]; silent = (int)c->e->args[4]; }
	/* Not one signal may reach the child before it is one. */
	mask = set_mask(HELD_BACK);
	rr_state.forking = 1;
	real = make();
	rr_state.forking = 0;
	if (real == 0) {
		registry = map_lock = slots_lock = rr_state.heap_lock = 0;
		t->id = id; t->call = 0; t->len = 0; t->since = now();
		rr_state.pid = (u32)syscall(39); rr_state.last = silent ? id : 0;
		t->nheld = t->gate = t->resent = t->injected = t->has_timer = t->scheduled = 0; t->at_due = 0; rr_state.is_kid = 1;
		kid(0, rr_state.pid);
		if (c->replaying) due(t);
		t->depth = 0;
		set_mask(mask);
		return 0;
	}
	set_mask(mask);
	if (real > 0) kid(0, real);
	if (c->replaying) {
		rr_answer(c);
		if (rr_state.nkids < KIDS) { rr_state.kids[rr_state.nkids][0] = (u32)c->result; rr_state.kids[rr_state.nkids++][1] = real; }
	} else c->result = real;
	real = (int)c->result;
	rr_leave(c);
	return real;
}

/* Waited for a child that was recorded: in replay, the one that plays it is released, and ended where a signal
 * did that. It need not have ended: what it still does has its place in the log. */
void rr_waited(struct rr_call *c, i64 pid, int *status)
{
	u32 i;
	if (!c->replaying || pid <= 0) return;
	for (i = 0; i < rr_state.nkids; i++) if (rr_state.kids[i][0] == (u32)pid) {
		if (status && (*status & 0x7f) == 0x7f) return;
		if (status && (*status & 0x7f)) syscall(62, rr_state.kids[i][1], 9);
		syscall(61, rr_state.kids[i][1], (void *)0, 1, (void *)0);
		rr_state.kids[i][0] = 0;
		return;
	}
}

/* A child that the C library made for itself (system, popen, posix_spawn): it borrows its parent's memory. */
int rr_spawned(void) { return !off && ctl->mode == RR_M_RECORD && (u32)syscall(39) != rr_state.pid; }

/* Tell the tool that this process is about to become another program, and wait until it looks. Returns 0 where
 * nobody will: the program runs unrecorded. */
void *rr_knock(struct rr_call *c, const void *path)
{
	struct rr_knock *k = ctl->knocks; u32 me = (u32)syscall(39), state;
	if (path && syscall(21, path, 1) != 0) return 0;	/* not executable: execve will say so */
	while (!swap(&k->state, 0, 1)) if (++k == ctl->knocks + KNOCKS) { if (!alive()) return 0; k = ctl->knocks; syscall(24); }
	k->pid = me; k->tid = (u32)syscall(186); k->path = (u64)path;
	k->task = c ? c->t->id : next_id();
	kid(0, me);
	xchg(&k->state, 2);
	add(&ctl->knock, 1); wake(&ctl->knock);
	while ((state = *(volatile u32 *)&k->state) == 2) {
		wait_(&k->state, 2, 50000000);
		if (k->state == 2 && !alive()) { xchg(&k->state, 0); return 0; }
	}
	if (state == 3) return k;
	if (!c || c->t->id != ctl->task) kid(me, 0);
	xchg(&k->state, 0);
	return 0;
}

/* The program was not replaced after all. */
void rr_stays(void *knock)
{
	struct rr_knock *k = knock;
	if (!k) return;
	xchg(&k->state, 4);
	add(&ctl->knock, 1); wake(&ctl->knock);
}

/* In replay a process ends where it became another program, which the tool starts; its status matters where that
 * one was not recorded (the event's result is 1 more than it). */
void rr_exec(struct rr_call *c)
{
	ctl->multi = 1;
	rr_begin(c);
	rr_release(c);
	if (c->replaying && c->e->result > 0) syscall(231, c->e->result - 1);
}

void rr_starts(struct rr_call *c) { ctl->multi = 1; }

/* The end of a process, however deep in calls: nothing is logged after it. */
int rr_enter_end(struct rr_call *c, u32 nr, u64 ip)
{
	struct rr_thread *t;
	if (off || ctl->mode == RR_M_WATCH || !ctl->multi || (u32)syscall(39) != rr_state.pid || !(t = self())) return 0;
	t->depth = 0;
	return enter(c, nr, ip);
}
void rr_end_process(struct rr_call *c)
{
	rr_begin(c);
	if (c->replaying) rr_answer(c);
	rr_leave(c);
	off = 1;
}

/* ---- output ---- */
struct rr_part { u8 *base; u64 n; };
int rr_orders(int fd) { return !off && ctl->multi && ctl->mode != RR_M_WATCH && rr_fd_is_output(fd); }

/* In replay, what the C library itself still has in a standard stream that led elsewhere. */
int rr_swallows(int fd) { return !off && ctl->mode == RR_M_REPLAY && (fd == 1 || fd == 2) && !rr_fd_is_output(fd); }
i64 rr_size(const void *from, i64 n, int vector)
{
	const struct rr_part *v = from; i64 all = 0;
	if (!vector) return n;
	while (n-- > 0) all += v[n].n;
	return all;
}

static void write_all(int fd, const u8 *p, u64 n)
{
	i64 did;
	while (n) {
		did = syscall(1, fd, p, n);
		if (did == -4 || did == -11) { syscall(24); continue; }
		if (did <= 0) return;
		p += did; n -= did;
	}
}

/* write and writev to the recording's output, wherever the call comes from: the C library's own buffers, too. There
 * no signal is delivered: a handler must not see them half written. */
i64 rr_output(u32 nr, void *function, int fd, const void *from, i64 n, int vector, u64 ip)
{
	i64 (*make)(int, const void *, i64) = function, i, left; const struct rr_part *v = from;
	struct rr_thread *t = self(); struct rr_call c; int depth, code, held = 0, nested;
	if (!t || (u32)syscall(39) != rr_state.pid) return make(fd, from, n);
	depth = t->depth; nested = depth || is_foreign(ip);
	t->depth = 0;
	if (!enter(&c, nr, ip)) { t->depth = depth; return make(fd, from, n); }
	c.nargs = 3; c.args[0] = fd; c.args[1] = from != 0; c.args[2] = n; c.args[3] = c.args[4] = c.args[5] = 0;
	c.cmp[0] = c.cmp[1] = 0; c.cmp[2] = RR_C_VALUE;
	if (vector) rr_in_vector(&c, 1, from, n); else rr_in(&c, 1, from, n);
	if (nested) c.in_end = t->len; else rr_begin(&c);
	if (c.replaying) {
		left = rr_answer(&c);
		if (!vector) { if (left > 0) write_all(fd, from, left); }
		else for (i = 0; i < n && left > 0; left -= v[i++].n) write_all(fd, v[i].base, (i64)v[i].n < left ? v[i].n : left);
	} else {
		held = lock_shared(&ctl->out_lock, (u32)syscall(186), 0);
		if (!nested) t->inside = 1;
		c.result = make(fd, from, n);
		if (!nested) t->inside = 0;
	}
	if (nested) {
		code = logged(&c, *__errno_location());
		t->len = c.base; t->depth = depth;
		*__errno_location() = code;
	} else rr_leave(&c);
	if (held) unlock(&ctl->out_lock);
	return c.result;
}

/* Where this process stands in the recording. `mask` has a bit for each descriptor that leads to the recording's
 * output, `errors` for those that are its standard error. A program that a process has become is logged: `domain`
 * describes it in the trace, `kind` the buffer of its standard output. */
void rr_image(u32 task, u32 domain, u64 mask, u64 errors, u64 kind)
{
	struct rr_thread t; struct rr_call c; struct rr_event *e;
	rr_state.task = task; rr_state.outputs = mask;
	rr_state.is_kid = task != ctl->task; rr_state.base = (u64)domain << 40;
	if (!domain || ctl->mode != RR_M_RECORD) return;
	memset(&t, 0, sizeof(t)); memset(&c, 0, sizeof(c));
	c.t = &t; t.id = task; c.time_in = now();
	c.args[0] = domain; c.args[1] = rr_state.pid; c.args[2] = mask; c.args[3] = errors; c.args[4] = kind;
	lock_shared(&ctl->lock, rr_state.pid, 1);
	if ((e = append(&c, 0, (u8 *)&c, 0, 0)) != 0) e->kind = RR_EXECED;
	unlock(&ctl->lock);
}
