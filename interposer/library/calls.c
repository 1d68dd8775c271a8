/* What stubs call: a call begins, its parameters and outputs, its end; recording and replaying. See docs/interfaces.md. */

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

/* Within a function that only puts others together (scandir), what the C library calls counts as the program's. */
static int through(void) { struct rr_thread *t; return rr_state.throughs && (t = self()) != 0 && t->through; }
void *rr_through(void)
{
	struct rr_thread *t = off || ctl->mode == RR_M_WATCH ? 0 : self();
	if (!t || t->depth) return 0;
	t->through++; add(&rr_state.throughs, 1);
	return t;
}
void rr_through_end(void *thread)
{
	struct rr_thread *t = thread;
	if (t) { t->through--; add(&rr_state.throughs, (u32)-1); }
}

int rr_enter(struct rr_call *c, u32 nr, u64 ip) { return (!is_foreign(ip) || through()) && enter(c, nr, ip); }
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
		if (role == 0 && arg == 255) for (i = 0; i < c->nargs && i < 6; i++) if ((u64)p == c->args[i]) { region(c, RR_R_OUT, arg, 1 + i, 0); return (void *)p; }
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

/* The text in the room that goes with an object. */
void rr_remembered(struct rr_call *c, int arg, u64 key)
{
	u64 p = map_size ? map_get(key ^ ROOM) : 0;
	if (p && p != (key ^ ROOM)) rr_out(c, arg, (void *)p, c->replaying ? 0 : strlen((char *)p) + 1);
}

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
static void put_pieces(struct rr_call *c, int arg, char **s, i64 n, i64 each)
{
	i64 i; u64 size, *x; u8 *q;
	if (!s) return;
	if (n < 0) for (n = 0; s[n]; n++) ;
	size = 16 + n * 8;
	for (i = 0; i < n; i++) if (s[i]) size += each < 0 ? strlen(s[i]) + 1 : each;
	q = region(c, RR_R_OUT, arg, (u64)s, size); x = (u64 *)q; x[0] = n; size = 16 + n * 8;
	for (i = 0; i < n; i++) { x[i + 1] = s[i] ? size : 0; if (s[i]) { u64 l = each < 0 ? strlen(s[i]) + 1 : each; memcpy(q + size, s[i], l); size += l; } }
	x[n + 1] = 0;
}
void rr_put_strings(struct rr_call *c, int arg, char **s, i64 n) { put_pieces(c, arg, s, n, -1); }

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
