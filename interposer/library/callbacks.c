/* Continues runtime.c: calls from the library into the program, threads, and how it all begins. */
/* ---- the other direction ---- */
int rr_enter_callback(struct rr_call *c, u32 nr, u64 ip)
{
	struct rr_thread *t; u8 inside;
	if (off) return 0;
	t = self();
	if (!t) { ctl->unseen++; return 0; }
	if (!t->depth) return 0;
	inside = t->inside; t->inside = 0;
	/* Replay must know the call's arguments before it calls back: the first callback has the call logged. */
	if (t->call && !t->call->announced && ctl->mode != RR_M_REPLAY) {
		t->call->announced = 1;
		commit(t->call, RR_L_ENTER);
	}
	memset(c, 0, sizeof(*c));
	c->inside = inside;
	c->t = t; c->base = t->len; c->nr = nr; c->ip = ip; c->time_in = now();
	return 1;
}

void rr_callback_enter(struct rr_call *c, int slot)
{
	c->result = slot;
	arguments(c);
	commit(c, RR_L_CALLBACK);
	c->result = 0;
	c->t->len = c->base; c->t->depth = 0;
}

/* The depth comes first: what the log itself calls (clock_gettime) may be replaced, too. */
void rr_callback_leave(struct rr_call *c) 
{
	c->t->depth = 1; commit(c, RR_L_RETURN); c->t->len = c->base;
	c->t->inside = c->inside;
	if (c->inside && c->t->nheld) release_held(c->t, AT_CALL);
}

void rr_replay_begin(struct rr_call *c, struct rr_event *e)
{
	memset(c, 0, sizeof(*c));
	c->t = self(); c->base = c->t->len; c->nr = e->nr; c->replaying = 1; c->flags = RR_L_RETURN;
}

/* `handle`: the result is an object of the program's, known to the log under its address at that time. */
void rr_replay_end(struct rr_call *c, int handle)
{
	struct rr_event *e = turn(c), *full;
	if (e->nr != c->nr || !(e->flags & RR_L_RETURN)) diverge(c, D_CALL, 255, c->nr, e->nr);
	full = whole(c, e);
	c->in_end = c->t->len;
	compare(c, full);
	if (handle) map_put(full->result, c->result);
	else if (full->result != c->result) diverge(c, D_RESULT, 255, c->result, full->result);
	consumed(event_at(ctl->cursor));
	c->t->len = c->base;
}

int rr_callback_slot(void *p, void **fns, int most, u32 nr)
{
	int i;
	lock(&slots_lock);
	for (i = 0; i < most && fns[i]; i++) if (fns[i] == p) break;
	if (i < most) fns[i] = p;
	unlock(&slots_lock);
	return i < most ? i : -1;
}

/* ---- threads ---- */
static u32 next_id(void) { u32 n = 1; __asm__ volatile("lock; xaddl %0,%1" : "+r"(n), "+m"(ctl->threads) : : "memory"); return ctl->task + n + 1; }

struct rr_start { void *(*run)(void *); void *arg; u32 id; };
static void *starts(struct rr_start *s)
{
	struct rr_start copy = *s;
	free(s);
	rr_register(copy.id);
	return copy.run(copy.arg);
}

int rr_create(struct rr_call *c, void *function, void *thread, void *attr, void *run, void *arg)
{
	int (*orig)(void *, void *, void *, void *) = function;
	struct rr_start *s = malloc(sizeof(*s)); int r; u64 id;
	s->run = run; s->arg = arg;
	ctl->multi = 1;
	rr_begin(c);
	if (c->replaying) {
		rr_answer(c);
		s->id = (u32)c->e->args[5];
	} else {
		id = s->id = next_id();
		c->args[5] = id;
	}
	rr_leave(c);
	r = orig(thread, attr, starts, s);
	if (r) free(s);
	return r;
}

/* ---- processes ---- */
static void child(void) { if (!rr_state.forking) off = 1; }

static void kid(u32 pid, u32 by)
{
	u32 i;
	for (i = 0; i < KIDS; i++) if (swap(ctl->kids + i, pid, by)) return;
}

/* The child's events go into the same log, in one order with its parent's. The call is logged before it is made,
 * because the child may be logged before its parent goes on. */
int rr_fork(struct rr_call *c, void *function)
{
	int (*make)(void) = function; int real; u32 id = 0; struct rr_thread *t = c->t;
	ctl->multi = 1;
	rr_begin(c);
	if (!c->replaying) c->args[5] = id = next_id();
	rr_release(c);
	if (c->replaying) id = (u32)c->e->args[5];
	rr_state.forking = 1;
	real = make();
	rr_state.forking = 0;
	if (real == 0) {
		registry = map_lock = slots_lock = 0;
		t->id = id; t->call = 0; t->len = 0; t->depth = 0;
		t->nheld = t->gate = t->computing = t->injected = t->has_timer = t->scheduled = 0; t->at_due = 0; rr_state.is_kid = 1;
		kid(0, (u32)syscall(39));
		return 0;
	}
	if (c->replaying) {
		rr_answer(c);
		if (rr_state.nkids < KIDS) { rr_state.kids[rr_state.nkids][0] = (u32)c->result; rr_state.kids[rr_state.nkids++][1] = real; }
	} else c->result = real;
	real = (int)c->result;
	rr_leave(c);
	return real;
}

/* Waited for a child that was recorded: in replay, until the one that plays it has ended. */
void rr_waited(struct rr_call *c, i64 pid, int *status)
{
	u32 i;
	if (!c->replaying || pid <= 0) return;
	for (i = 0; i < rr_state.nkids; i++) if (rr_state.kids[i][0] == (u32)pid) {
		if (status && (*status & 0x7f) == 0x7f) return;
		if (status && (*status & 0x7f)) syscall(62, rr_state.kids[i][1], 9);
		syscall(61, rr_state.kids[i][1], (void *)0, 0, (void *)0);
		rr_state.kids[i][0] = 0;
		return;
	}
}

/* An execve that succeeds is the end of what is recorded of a process, and the end of it in replay, where the
 * event says so (its result is 1 more than the exit status). */
void rr_exec(struct rr_call *c)
{
	rr_begin(c);
	if (!c->replaying) { add(&ctl->execs, 1); kid((u32)syscall(39), 0); }
	rr_release(c);
	if (c->replaying && c->e->result > 0) syscall(231, c->e->result - 1);
}
void rr_exec_failed(struct rr_call *c)
{
	if (!c->replaying) { add(&ctl->execs, -1); if (c->t->id != ctl->task) kid(0, (u32)syscall(39)); }
}
void rr_started(struct rr_call *c) { if (!c->replaying) add(&ctl->execs, 1); }

extern int __register_atfork(void *, void *, void *, void *);
int rr_init(void *control, void *memory)
{
	ctl = control; area = memory;
	rr_state.outputs = 6;
	calibrate();
	if (ctl->mode != RR_M_WATCH) __register_atfork((void *)0, (void *)0, child, (void *)0);
	return sizeof(struct rr_ctl);
}
u64 rr_state_size(void) { return sizeof(struct rr_state); }
u64 rr_callbacks_offset(void) { return (u64)&rr_state.callbacks - (u64)&rr_state; }
/* Calls made by this module (the dynamic linker, the C library, Frida) are none of the program's. */
void rr_foreign(u64 start, u64 size) { u64 i = rr_state.nforeign; if (i < 32) { rr_state.foreign[i][0] = start; rr_state.foreign[i][1] = size; rr_state.nforeign = i + 1; } }
void rr_stop(void) { off = 1; }
