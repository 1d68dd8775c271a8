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
struct rr_start { void *(*run)(void *); void *arg; u64 mask, blocked; u32 id; };
/* A thread begins with signals blocked, until it is known; `mask` is what it would have begun with, unless its
 * attributes give it a mask of its own. Its end is a place where signals are delivered. */
void rr_thread_ends(void)
{
	struct rr_thread *t = off || ctl->mode == RR_M_WATCH ? 0 : self();
	if (!t || t->depth) return;
	t->depth = 1;
	boundary(t, ctl->mode == RR_M_REPLAY);
	if (t->has_timer) { syscall(226, (i64)t->timer); t->has_timer = 0; }
	t->depth = 0;
}

static void *starts(struct rr_start *s)
{
	struct rr_start copy = *s; struct rr_thread *t; u64 mask; void *result;
	rr_drop(s);
	t = rr_register(copy.id);
	mask = set_mask(HELD_BACK);
	t->depth = 1; t->since = now();
	if (ctl->mode == RR_M_REPLAY) due(t);
	t->depth = 0;
	set_mask(mask == copy.blocked ? copy.mask : mask);
	result = copy.run(copy.arg);
	rr_thread_ends();
	return result;
}

int rr_create(struct rr_call *c, void *function, void *thread, void *attr, void *run, void *arg)
{
	int (*orig)(void *, void *, void *, void *) = function;
	struct rr_start *s = rr_take(sizeof(*s)); int r; u64 id, mask;
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
	s->mask = mask = set_mask(HELD_BACK);
	s->blocked = set_mask(HELD_BACK);
	r = orig(thread, attr, starts, s);
	set_mask(mask);
	if (r) rr_drop(s);
	return r;
}

extern int __register_atfork(void *, void *, void *, void *);
int rr_init(void *control, void *memory)
{
	ctl = control; area = memory;
	rr_state.outputs = 6; rr_state.pid = (u32)syscall(39); rr_state.task = ctl->task;
	calibrate();
	if (ctl->mode != RR_M_WATCH) __register_atfork((void *)0, (void *)0, child, (void *)0);
	return sizeof(struct rr_ctl);
}
u64 rr_state_size(void) { return sizeof(struct rr_state); }
u64 rr_callbacks_offset(void) { return (u64)&rr_state.callbacks - (u64)&rr_state; }
/* Calls made by this module (the dynamic linker, the C library, Frida) are none of the program's. */
void rr_foreign(u64 start, u64 size) { u64 i = rr_state.nforeign; if (i < 32) { rr_state.foreign[i][0] = start; rr_state.foreign[i][1] = size; rr_state.nforeign = i + 1; } }
void rr_stop(void) { off = 1; }
/* The watch is over: its tool says so, or is gone. */
int rr_over(void) { return *(volatile u32 *)&ctl->stopped || !alive(); }
void rr_left(void) { ctl->left = 1; wake(&ctl->left); }
