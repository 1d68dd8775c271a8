/* Continues signals.c: instructions that tell something no function does (RDTSC, RDTSCP, RDRAND, RDSEED). Where the
 * script has found one in the program or a library, its opcode is an invalid one; the signal it raises is answered
 * here, with a value that is logged as a call of a function of that name. Inside a logged call nothing is logged. */
enum { RDTSC = 0, RDTSCP = 1, RANDOM = 2 };
#define REGISTERS 40	/* in a ucontext_t */
#define RAX 13
#define RCX 14
#define RDX 12
#define RIP 16
#define FLAGS 17

/* The opcode that stands at `at` is invalid from now on. */
void rr_trap(u64 at, u32 kind, u32 nr, u32 length, u32 where, u32 size)
{
	struct rr_trap *s; struct rr_action a;
	if (rr_state.ntraps == TRAPS) { add(&ctl->untrapped, 1); return; }
	s = rr_state.traps + rr_state.ntraps;
	s->at = at; s->kind = kind; s->nr = (u16)nr; s->length = length; s->where = where; s->size = size;
	if (rr_state.ntraps++ == 0) {
		memset(&a, 0, sizeof(a));
		a.handler = (void *)on_signal; a.flags = SA_MADE; a.mask = ~0UL; a.restorer = (void *)rr_restorer;
		kernel_action(4, &a, (void *)0);
	}
}

static void answer(u64 *r, struct rr_trap *s, u64 value, u64 extra)
{
	/* Register numbers of instructions -> places in a ucontext_t. */
	static const u8 places[16] = { 13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7 };
	u64 *to = r + places[s->where];
	if (s->kind == RANDOM) {
		if (s->size == 2) *to = (*to & ~0xffffUL) | (value & 0xffff); else *to = s->size == 4 ? (u32)value : value;
		r[FLAGS] = (r[FLAGS] & ~0x8d5UL) | 1;
	} else {
		r[RAX] = (u32)value; r[RDX] = value >> 32;
		if (s->kind == RDTSCP) r[RCX] = extra;
	}
	r[RIP] += s->length;
}

/* Whether the invalid instruction is one of these; the thread then goes on behind it. */
static int trapped(struct rr_thread *t, u8 *context)
{
	u64 *r = (u64 *)(context + REGISTERS), value = 0, aux = 0, *x; u32 i, a, d; struct rr_trap *s = 0; struct rr_call k; struct rr_event *e;
	for (i = 0; i < rr_state.ntraps; i++) if (rr_state.traps[i].at == r[RIP]) { s = rr_state.traps + i; break; }
	if (!s) return 0;
	if (!t || t->depth || off || ctl->mode == RR_M_RECORD) {
		if (s->kind == RANDOM) syscall(318, &value, 8, 0);
		else { __asm__ volatile("rdtsc" : "=a"(a), "=d"(d)); value = ((u64)d << 32) | a; }
		if (s->kind == RDTSCP) { syscall(309, &a, &d, (void *)0); aux = (d << 12) | (a & 0xfff); }
		if (!t || t->depth || off) { answer(r, s, value, aux); return 1; }
	}
	t->depth = 1;
	signal_call(&k, t, 0);
	k.nr = s->nr; k.flags = 0; k.nargs = 0; k.args[0] = 0; k.ip = r[RIP]; k.result = (i64)value;
	if (!k.replaying) {
		k.args[5] = aux;
		commit(&k, 0);
	} else {
		e = turn(&k);
		if ((e->flags & RR_L_SIGNAL) && (e->flags & RR_L_CALLBACK)) {	/* first, and then this instruction again */
			inject(t, e, (u64 *)(context + CONTEXT_MASK));
			t->depth = 0;
			return 1;
		}
		if (e->nr != k.nr || e->flags) diverge(&k, D_CALL, 255, k.nr, e->nr);
		value = (u64)e->result; aux = e->args[5];
		consumed(e);
	}
	t->points++;
	if (k.replaying) due_here(t, (u64 *)(context + CONTEXT_MASK));
	else if (t->nheld) { t->resent = 1 + AT_BOUNDARY; send_held(t); }
	t->depth = 0;
	answer(r, s, value, aux);
	return 1;
}
