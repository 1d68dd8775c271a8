/* Continues streams.c: signals at the C library. Handlers of the program are replaced by one of the log's, so that a
 * signal reaches the program only where replay finds the place again: within a logged call (which it interrupts, or the
 * next that the thread makes), or at the end of a call or of another handler (known by how many beginnings and ends of
 * calls, and ends of handlers, the thread has seen). One that finds no such place for HOLD_NS, because the thread
 * computes, is delivered all the same and counted: replay delivers it after the same time. The handler is always entered
 * from the kernel (the log sends the signal to its own thread again), so that stack, mask and context are the kernel's.
 * Faults, and what abort() sends, come again by themselves. The log's own timer sends SIGSTKFLT. In replay no other
 * signal is blocked: those that come from outside act as they do by default. */
#define IGNORED (BIT(17) | BIT(18) | BIT(23) | BIT(28))
#define STOPS (BIT(20) | BIT(21) | BIT(22))
#define NUDGE 16
#define HOLD_NS 100000000UL
#define SA_KEPT 0x18000003UL	/* ONSTACK, RESTART, NOCLDSTOP, NOCLDWAIT */
#define SA_MADE 0x04000004UL	/* RESTORER, SIGINFO */
#define SA_RESTARTS 0x10000000UL
#define SA_NODEFERS 0x40000000UL
#define SA_RESETS 0x80000000UL
#define CONTEXT_MASK 296	/* uc_sigmask in a ucontext_t */
#define action rr_state.action
#define callable(p) ((u64)(p) > 1)
struct rr_user_action { void *handler; u64 mask[16]; u32 flags, pad; void *restorer; };
struct rr_info { i32 signal, err, code, pad; i32 pid, uid; u64 value; u64 rest[12]; };
struct rr_said { u64 kind, flags, mask; };
struct rr_due { u32 task, where; u64 points, delay; };
extern void rr_restorer(void);

static u32 process(void) { return (u32)syscall(39); }
static i64 kernel_action(int s, struct rr_action *to, struct rr_action *old) { return syscall(13, s, to, old, 8); }
static void send_again(int s, void *info) { syscall(297, process(), syscall(186), s, info); }

static void timer(struct rr_thread *t, u64 ns)
{
	u64 event[8], when[4];
	if (!t->has_timer) {
		if (!ns) return;
		memset(event, 0, sizeof(event));
		event[1] = NUDGE | (4UL << 32); event[2] = (u64)syscall(186);
		if (syscall(222, 1, event, &t->timer) != 0) return;
		t->has_timer = 1;
	}
	when[0] = when[1] = 0; when[2] = ns / 1000000000; when[3] = ns % 1000000000;
	syscall(223, (i64)t->timer, 0, when, (void *)0);
}

static void on_signal(int s, struct rr_info *info, u8 *context);
static int trapped(struct rr_thread *t, u8 *context);

/* Puts an action of the program in force, with the log's handler for a handler. 0, or minus an errno. */
static i64 install(int s, struct rr_action *as)
{
	struct rr_action real = *as;
	real.restorer = (void *)rr_restorer;
	real.flags = (as->flags & SA_KEPT) | SA_MADE;
	if (callable(as->handler)) { real.handler = (void *)on_signal; real.mask = ~0UL; }
	else if ((ctl->mode == RR_M_REPLAY && !(FAULTS & BIT(s))) || (s == 4 && rr_state.ntraps)) return 0;
	return s == NUDGE ? 0 : kernel_action(s, &real, (void *)0);
}

/* The program's handler, under the mask that the kernel would have set. */
static void run(int s, struct rr_info *info, u8 *context)
{
	struct rr_action a = action[s]; u64 mask = *(u64 *)(context + CONTEXT_MASK) | a.mask;
	if (!callable(a.handler)) return;
	if (!(a.flags & SA_NODEFERS)) mask |= BIT(s);
	if (ctl->mode == RR_M_REPLAY) mask &= FAULTS;
	if (rr_state.ntraps) mask &= ~BIT(4);
	if (a.flags & SA_RESETS) { action[s].handler = (void *)0; install(s, action + s); }
	set_mask(mask);
	((void (*)(int, void *, void *))a.handler)(s, info, context);
	set_mask(~0UL);
}

static void signal_call(struct rr_call *k, struct rr_thread *t, int s)
{
	memset(k, 0, sizeof(*k));
	k->t = t; k->base = t->len; k->nr = (u16)rr_state.signal_nr; k->time_in = now(); k->nargs = 1;
	k->args[0] = s; k->flags = RR_L_SIGNAL; k->replaying = ctl->mode == RR_M_REPLAY;
}

/* Recording: log the signal, run the handler, log its return. It may never return (siglongjmp). */
static void give(struct rr_thread *t, int s, struct rr_info *info, u8 *context, int where)
{
	struct rr_call k; u32 depth = t->depth, inside = t->inside, live_call = t->live_call; int code = *__errno_location();
	t->inside = t->live_call = 0; t->depth = 1;
	if (inside && t->call && !t->call->announced) { t->call->announced = 1; commit(t->call, RR_L_ENTER); }
	signal_call(&k, t, s);
	k.args[1] = t->points; k.args[2] = where; k.args[3] = k.time_in - t->since;
	memcpy(region(&k, RR_R_OUT, 1, 0, 128), info, 128);
	commit(&k, RR_L_CALLBACK | RR_L_SIGNAL);
	if (where == COMPUTING) add(&ctl->inexact, 1);
	t->len = k.base; t->depth = 0;
	if (t->nheld) timer(t, HOLD_NS);	/* the handler may never return */
	*__errno_location() = code;
	run(s, info, context);
	code = *__errno_location();
	t->depth = 1;
	commit(&k, RR_L_RETURN | RR_L_SIGNAL);
	t->points++;
	t->len = k.base; t->depth = depth; t->inside = inside; t->live_call = live_call;
	if (t->nheld) timer(t, where == COMPUTING ? 1000000 : HOLD_NS);
	*__errno_location() = code;
}

/* Replaying: what comes while the thread computes from here on comes after the recorded time. */
static void expect(struct rr_thread *t)
{
	if (t->next_where == COMPUTING && t->points == t->next_point) timer(t, t->next_delay ? t->next_delay : 1);
}

/* Replaying: the event was taken from the log; run the handler, and see it return. */
static void give_again(struct rr_thread *t, int s, struct rr_info *info, u8 *context)
{
	struct rr_call k; struct rr_event *e; u32 depth = t->depth, live_call = t->live_call; int code;
	t->depth = t->live_call = 0;
	expect(t);
	run(s, info, context);
	code = *__errno_location();
	t->depth = 1;
	signal_call(&k, t, s);
	k.flags |= RR_L_RETURN;
	e = turn(&k);
	if (!(e->flags & RR_L_SIGNAL) || !(e->flags & RR_L_RETURN)) diverge(&k, D_CALL, 255, k.nr, e->nr);
	consumed(e);
	t->points++;
	expect(t);
	t->depth = depth; t->live_call = live_call;
	*__errno_location() = code;
}

/* One that is held, sent again. */
static void send_held(struct rr_thread *t)
{
	u8 info[128]; u32 i;
	memcpy(info, t->held[0], 128);
	t->nheld--;
	for (i = 0; i < t->nheld; i++) memcpy(t->held[i], t->held[i + 1], 128);
	send_again(*(i32 *)info, info);
}

/* All that is held is delivered here. */
static void release_held(struct rr_thread *t, int where)
{
	u64 mask;
	timer(t, 0);
	while (t->nheld) {
		mask = set_mask(~0UL);
		t->gate = 1 + where;
		send_held(t);
		set_mask(mask);
		t->gate = 0;
	}
}

static void hold(struct rr_thread *t, int s, struct rr_info *info)
{
	u32 i;
	if (s < 32) for (i = 0; i < t->nheld; i++) if (*(i32 *)t->held[i] == s) return;
	if (t->nheld < HELD) memcpy(t->held[t->nheld++], info, 128); else add(&ctl->lost, 1);
	if (t->nheld == 1) timer(t, HOLD_NS);
}

/* ---- replay ---- */
static void advance(struct rr_thread *t)
{
	struct rr_due *d = (struct rr_due *)(area + ctl->schedule);
	if (t->next_where == COMPUTING) timer(t, 0);
	t->next_where = AT_CALL; t->scheduled = 1;
	while (t->at_due < ctl->nschedule) {
		d = (struct rr_due *)(area + ctl->schedule) + t->at_due++;
		if (d->task == t->id && d->points >= rr_state.base) { t->next_where = d->where; t->next_point = d->points; t->next_delay = d->delay; return; }
	}
}

/* Sends the signal of this event, which the thread gets before it goes on; `mask` of what it goes on with. */
static void inject(struct rr_thread *t, struct rr_event *e, u64 *mask)
{
	struct rr_info info; struct rr_call k; int s = (int)e->args[0]; u64 where = e->args[2], n = 0, m; void *p = rr_region_of(e, 1, &n);
	signal_call(&k, t, s);
	if (!p || n != 128 || s < 1 || s > 64 || !callable(action[s].handler)) diverge(&k, D_KIND, 255, 0, 0);
	memcpy(&info, p, 128);
	if (info.code < 0 && info.code > -4) info.value = (u64)rr_translate(info.value);
	consumed(e);
	if (where != AT_CALL) advance(t);
	if (mask) { t->injected = s; *mask &= ~BIT(s); send_again(s, &info); return; }
	m = set_mask(~0UL);
	t->injected = s;
	send_again(s, &info);
	set_mask(m & ~BIT(s));
	set_mask(m);
}

static void signal_again(struct rr_call *c, struct rr_event *e) { inject(c->t, e, (u64 *)0); }

/* A call begins or has ended: signals that were delivered before it, or at its end. */
static void due(struct rr_thread *t)
{
	struct rr_call k; struct rr_event *e;
	if (!ctl->nschedule) return;
	if (!t->scheduled) advance(t);
	while ((t->next_where == AT_BOUNDARY && t->points >= t->next_point) || (t->next_where == COMPUTING && t->points > t->next_point)) {
		signal_call(&k, t, 0);
		e = turn(&k);
		if (!(e->flags & RR_L_SIGNAL) || !(e->flags & RR_L_CALLBACK)) diverge(&k, D_CALL, 255, k.nr, e->nr);
		inject(t, e, (u64 *)0);
	}
	expect(t);
}

/* The same in a handler of the log's: the signal is delivered when it returns. */
static void due_here(struct rr_thread *t, u64 *mask)
{
	struct rr_call k; struct rr_event *e;
	if (!ctl->nschedule) return;
	if (!t->scheduled) advance(t);
	if (t->next_where == AT_BOUNDARY && t->points >= t->next_point) {
		signal_call(&k, t, 0);
		e = turn(&k);
		if (!(e->flags & RR_L_SIGNAL) || !(e->flags & RR_L_CALLBACK)) diverge(&k, D_CALL, 255, k.nr, e->nr);
		inject(t, e, mask);
	} else expect(t);
}

/* The end of a process that a signal ended. */
static void die(int s)
{
	struct rr_action a;
	memset(&a, 0, sizeof(a));
	kernel_action(s, &a, (void *)0);
	set_mask(0);
	for (;;) { syscall(62, process(), s); syscall(231, 128 + s); }
}

/* ---- the handler ---- */
static void nudge(struct rr_thread *t, u64 *mask)
{
	struct rr_event *e; int s;
	if (ctl->mode == RR_M_REPLAY) {
		if (t->depth || t->next_where != COMPUTING || t->points != t->next_point) return;
		e = event_at(*(volatile u64 *)&ctl->cursor);
		t->depth = 1;	/* what the log calls itself is none of the program's calls */
		if (ctl->cursor < ctl->end && e->task == t->id && (e->flags & RR_L_SIGNAL) && (e->flags & RR_L_CALLBACK)) inject(t, e, mask); else timer(t, 1000000);
		t->depth = 0;
		return;
	}
	if (!t->nheld) return;
	if (t->depth && !t->inside && !t->live_call) { timer(t, HOLD_NS); return; }
	/* One that is blocked by now comes when it no longer is, as any other. */
	s = *(i32 *)t->held[0];
	t->resent = t->inside || (*mask & BIT(s)) ? 0 : 1 + COMPUTING;
	send_held(t);
	if (t->nheld && (*mask & BIT(s))) timer(t, HOLD_NS);
}

static void from_outside(int s, void *info, u64 *mask)
{
	struct rr_action a;
	if (IGNORED & BIT(s)) return;
	if (STOPS & BIT(s)) { syscall(62, process(), 19); return; }
	memset(&a, 0, sizeof(a));
	kernel_action(s, &a, (void *)0);
	*mask &= ~BIT(s);
	send_again(s, info);
}

static void on_signal(int s, struct rr_info *info, u8 *context)
{
	struct rr_thread *t = self(); u64 *mask = (u64 *)(context + CONTEXT_MASK); i32 depth, inside; int code = *__errno_location();
	if (s == 4 && info->code > 0 && trapped(t, context)) { *__errno_location() = code; return; }
	if (!t) {	/* a thread of Frida's: never again, and somebody else takes it */
		*mask = ~FAULTS;
		if (s != NUDGE) syscall(129, process(), s, info);
		return;
	}
	if (s == NUDGE && info->code == -2) { nudge(t, mask); *__errno_location() = code; return; }
	if ((BIT(s) & FAULTS) && (info->code > 0 || (s == 6 && info->code == -6 && (u32)info->pid == process() && !t->depth && !t->injected))) {
		if (!callable(action[s].handler)) { from_outside(s, info, mask); return; }
		depth = t->depth; inside = t->inside;
		t->depth = t->inside = 0;
		run(s, info, context);
		t->depth = depth; t->inside = inside;
		return;
	}
	if (off) { run(s, info, context); return; }
	if (ctl->mode == RR_M_REPLAY) {
		if (t->injected != (u32)s) { from_outside(s, info, mask); return; }
		t->injected = 0;
		give_again(t, s, info, context);
	} else if (!callable(action[s].handler)) from_outside(s, info, mask);
	else if (t->gate) { depth = t->gate - 1; t->gate = 0; give(t, s, info, context, depth); }
	else if (t->inside) give(t, s, info, context, AT_CALL);
	else if (t->resent && (!t->depth || t->live_call)) { depth = t->resent - 1; t->resent = 0; give(t, s, info, context, depth); }
	else { hold(t, s, info); *__errno_location() = code; }
}

/* ---- what stubs call ---- */
void rr_held(struct rr_call *c) { if (c->t->nheld) release_held(c->t, AT_CALL); }

static void said(struct rr_said *to, const struct rr_action *a)
{
	to->kind = callable(a->handler) ? 2 : (u64)a->handler; to->flags = a->flags; to->mask = a->mask;
}

/* What all functions that set an action come to: 0 or -1. `old` is given what was in force. */
static int set_action(struct rr_call *c, int s, struct rr_action *to, struct rr_action *old)
{
	struct rr_said what, *was; struct rr_region *r; i64 done = 0; struct rr_action now_;
	if (to) { said(&what, to); rr_in(c, 1, &what, sizeof(what)); }
	rr_begin(c);
	memset(old, 0, sizeof(*old));
	if (c->replaying) {
		rr_answer(c);
		r = next(c, 2);
		if (c->result != 0 || !r) return (int)c->result;
		was = (struct rr_said *)(r + 1);
		*old = action[s];
		if (was->kind < 2) old->handler = (void *)was->kind;
		old->flags = was->flags; old->mask = was->mask;
		if (to) { action[s] = *to; rr_state.acted |= BIT(s); install(s, to); }
		return 0;
	}
	if (s < 1 || s > 64 || s == 32 || s == 33) done = -22;
	if (!done) done = kernel_action(s, (void *)0, &now_);
	if (!done) {
		*old = action[s];
		if (!(rr_state.acted & BIT(s))) { *old = now_; old->flags &= ~0x04000000UL; if (callable(old->handler)) memset(old, 0, sizeof(*old)); }
		if (to) done = install(s, to);
	}
	if (done) { *__errno_location() = (int)-done; c->result = -1; return -1; }
	if (to) { action[s] = *to; rr_state.acted |= BIT(s); }
	said((struct rr_said *)region(c, RR_R_OUT, 2, 0, sizeof(what)), old);
	return 0;
}

int rr_sigaction(struct rr_call *c, u32 nr, void *function, int s, const void *given, void *old_to)
{
	const struct rr_user_action *to = given; struct rr_user_action *old = old_to; struct rr_action mine, was; int r;
	if (ctl->mode == RR_M_WATCH) {
		rr_begin(c); r = ((int (*)(int, const void *, void *))function)(s, given, old_to); c->result = r; rr_leave(c);
		return r;
	}
	rr_state.signal_nr = nr;
	if (to) { memset(&mine, 0, sizeof(mine)); mine.handler = to->handler; mine.flags = to->flags & ~0x04000000UL; mine.mask = to->mask[0]; }
	r = set_action(c, s, to ? &mine : (void *)0, &was);
	if (r == 0 && old) { old->handler = was.handler; old->mask[0] = was.mask; old->flags = (u32)was.flags; old->restorer = (void *)0; }
	rr_leave(c);
	return r;
}

/* The C library itself, as abort() does: past Frida, which keeps actions of faults that are set for itself. */
int rr_foreign_sigaction(void *function, int s, const void *given, void *old)
{
	const struct rr_user_action *to = given; struct rr_action as; i64 done;
	if (!to || old || s < 1 || s > 64 || !(FAULTS & BIT(s)) || !(rr_state.acted & BIT(s))) return ((int (*)(int, const void *, void *))function)(s, given, old);
	as.handler = to->handler; as.flags = to->flags | 0x04000000UL; as.restorer = (void *)rr_restorer; as.mask = to->mask[0];
	done = kernel_action(s, &as, (void *)0);
	if (done) *__errno_location() = (int)-done;
	return done ? -1 : 0;
}

/* signal() and its variants: `flags` are what the variant sets. */
void *rr_signal(struct rr_call *c, u32 nr, void *function, int s, void *handler, u64 flags)
{
	struct rr_action mine, was; int r; void *old;
	if (ctl->mode == RR_M_WATCH) {
		rr_begin(c); old = ((void *(*)(int, void *))function)(s, handler); c->result = (i64)old; rr_leave(c);
		return old;
	}
	rr_state.signal_nr = nr;
	memset(&mine, 0, sizeof(mine));
	mine.handler = handler; mine.flags = flags;
	if (flags == SA_RESTARTS && s > 0 && s < 65) {
		mine.mask = BIT(s);
		if (rr_state.interrupts & BIT(s)) mine.flags = 0;
	}
	r = set_action(c, s, &mine, &was);
	rr_leave(c);
	return r ? (void *)-1L : was.handler;
}

int rr_siginterrupt(struct rr_call *c, u32 nr, void *function, int s, int interrupts)
{
	struct rr_action mine, was; int r;
	if (ctl->mode == RR_M_WATCH || s < 1 || s > 64) {
		rr_begin(c);
		if (c->replaying) r = (int)rr_answer(c); else r = ((int (*)(int, int))function)(s, interrupts);
		c->result = r; rr_leave(c);
		return r;
	}
	if (rr_state.signal_nr == 0) rr_state.signal_nr = nr;
	if (interrupts) rr_state.interrupts |= BIT(s); else rr_state.interrupts &= ~BIT(s);
	mine = action[s];
	mine.flags = interrupts ? mine.flags & ~SA_RESTARTS : mine.flags | SA_RESTARTS;
	r = set_action(c, s, callable(mine.handler) ? &mine : (void *)0, &was);
	rr_leave(c);
	return r;
}

/* A mask that the program sets, without the signal that traps need; `room` is for it. */
const void *rr_mask(int how, const void *set, u64 *room)
{
	if (!set || how == 1 || !rr_state.ntraps || !(*(const u64 *)set & BIT(4))) return set;
	memcpy(room, set, 8);
	*room &= ~BIT(4);
	return room;
}

/* In replay only faults may be blocked. */
void rr_sigmask(struct rr_call *c, int how, const u64 *set)
{
	u64 m;
	if (!c->replaying || !set || c->result != 0) return;
	m = *set & FAULTS;
	if (rr_state.ntraps) m &= ~BIT(4);
	syscall(14, how, &m, (void *)0, 8);
}

/* The word that goes with a timer's signal is the program's own, mostly a pointer. */
void rr_timer_value(struct rr_call *c, const u64 *event)
{
	if (!event || c->result != 0) return;
	if (event[1] >> 32 == 2) add(&ctl->unseen, 1);
	if (c->replaying) map_put(c->e->args[5], event[0]); else c->args[5] = event[0];
}

/* longjmp: calls that the jump leaves are over. The saved stack pointer is the seventh word, mangled as glibc does. */
void rr_jump(const u64 *saved)
{
	struct rr_thread *t; struct rr_call *c; u64 to = saved[6], guard, stack[3]; int on, there;
	if (off || (t = self()) == 0 || !t->call) return;
	__asm__ volatile("movq %%fs:0x30,%0" : "=r"(guard));
	to = (to >> 17 | to << 47) ^ guard;
	syscall(131, (void *)0, stack);
	there = to - stack[0] < stack[2];
	for (c = t->call; c; c = c->outer) {
		on = (u64)c - stack[0] < stack[2];
		if (on != there ? !on : (u64)c > to) break;
		t->call = c->outer; t->len = c->base; t->depth = t->inside = t->live_call = 0;
	}
}

void rr_signals_init(void)
{
	struct rr_action a;
	if (ctl->mode == RR_M_WATCH) return;
	memset(&a, 0, sizeof(a));
	a.handler = (void *)on_signal; a.flags = SA_MADE | SA_RESTARTS; a.mask = ~0UL; a.restorer = (void *)rr_restorer;
	kernel_action(NUDGE, &a, (void *)0);
}
/* Sent to a thread of Frida's: it takes no signal of the program's. */
void rr_hush(u64 tid) { syscall(234, process(), tid, NUDGE); }
