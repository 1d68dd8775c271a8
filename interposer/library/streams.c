/* Continues callbacks.c: streams and descriptors of the C library. What the program does to a FILE through macros
 * (getc_unlocked, putc_unlocked), between calls, is seen at the next call on that stream: the bytes it took are
 * logged there, and replay (which finds them in the call before) lays them ready. Descriptors and streams that
 * are the program's output are known through dup, close and freopen: what goes there is written in replay too. */
extern void *stdin, *stdout, *stderr;
struct rr_file { u32 flags, pad; u8 *read_ptr, *read_end, *read_base, *write_base, *write_ptr, *write_end; };
#define FILE_ENDS 0x30u	/* end of file, error */
#define FILE_UNLOCKED 0x8000u
#define FILE_PUTTING 0xa00u	/* being written, line by line */
#define RR_A_AHEAD 250
#define RR_A_WROTE 251
#define RR_A_LAID 252
#define files rr_state.files
#define live rr_state.live
#define outputs rr_state.outputs

void *rr_standard_input(void) { return stdin; }
void *rr_standard_output(void) { return stdout; }
int rr_fd_is_output(int fd) { return (u32)fd < 64 && (outputs >> fd & 1); }
void rr_fd_mark(int fd, int is) { if ((u32)fd < 64) { if (is) outputs |= 1UL << fd; else outputs &= ~(1UL << fd); } }

static int live_at(void *s) { int i; for (i = 0; i < (int)rr_state.nlive; i++) if (live[i] == s) return i; return -1; }
void rr_live_stream(void *s) { lock(&slots_lock); if (s && live_at(s) < 0 && rr_state.nlive < 64) live[rr_state.nlive++] = s; unlock(&slots_lock); }
static void no_live_stream(void *s) { int i; lock(&slots_lock); i = live_at(s); if (i >= 0) live[i] = live[--rr_state.nlive]; unlock(&slots_lock); }

int rr_is_output(void *s)
{
	if (s == stdout || !s) return rr_fd_is_output(1);
	if (s == stderr) return rr_fd_is_output(2);
	return rr_state.nlive && live_at(s) >= 0;
}
int rr_is_standard(void *s) { return s == stdout || s == stderr || s == stdin; }

/* A descriptor was copied: a copy of an output is made in replay, too. */
void rr_dup(struct rr_call *c, int from, int to)
{
	int is = rr_fd_is_output(from);
	if (to < 0) return;
	if (c->replaying && is && from != to) syscall(33, from, to);
	rr_fd_mark(to, is);
}

/* The files that are standard output and error under a name. */
void rr_opened(struct rr_call *c, const char *path, int fd)
{
	static const char names[6][24] = { "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2" };
	int i;
	for (i = 0; path && i < 6; i++) if (!memcmp(path, names[i], strlen(names[i]) + 1)) { rr_dup(c, 1 + i / 3, fd); return; }
	rr_fd_mark(fd, 0);
}

/* The stream has another file now. */
void rr_freopen(void *s) { if (s == stdout) rr_fd_mark(1, 0); if (s == stderr) rr_fd_mark(2, 0); }

static struct rr_seen *seen(void *f)
{
	u32 i = (u32)(((u64)f >> 4) * 2654435761u) % FILES, n;
	for (n = 0; n < FILES; n++, i = (i + 1) % FILES) if (files[i].f == f || !files[i].f) { files[i].f = f; return files + i; }
	i = (u32)(((u64)f >> 4) * 2654435761u) % FILES;
	memset(files + i, 0, sizeof(*files)); files[i].f = f;
	return files + i;
}
void rr_forget(void *f) { struct rr_seen *s = seen(f); s->read_ptr = s->read_end = s->write_ptr = s->write_base = 0; if (rr_state.nlive) no_live_stream(f); }

/* Before a call on a stream: what macros have taken from its buffer or put there since the last one. */
void rr_stream_enter(struct rr_call *c, void *stream)
{
	struct rr_file *f = stream; struct rr_seen *s; u64 took = 0, wrote = 0;
	if (!f) return;
	c->args[5] = (u64)f;
	c->took = 0;
	if (f == stdout || f == stderr) return;	/* written in earnest, now and then: their buffers are real in both runs */
	s = seen(f);
	if (s->read_ptr && f->read_end == s->read_end && f->read_ptr > s->read_ptr && f->read_ptr <= f->read_end) took = f->read_ptr - s->read_ptr;
	if (s->write_ptr && f->write_base == s->write_base && f->write_ptr > s->write_ptr) wrote = f->write_ptr - s->write_ptr;
	if (!took && !wrote) { c->took = 0; return; }
	c->flags |= RR_L_AHEAD;
	rr_in(c, RR_A_AHEAD, &took, 8);
	if (wrote) rr_in(c, RR_A_WROTE, s->write_ptr, wrote);
	c->took = took; c->took_from = s->read_ptr;
}

/* After rr_begin: the bytes taken, for replay to lay ready at the call before. */
void rr_stream_begun(struct rr_call *c)
{
	if (!c->took) return;
	if (!c->replaying) memcpy(region(c, RR_R_OUT, RR_A_AHEAD, 0, c->took), c->took_from, c->took);
}

void rr_stream_answered(struct rr_call *c) { if (c->took) next(c, RR_A_AHEAD); }

static u8 *room_for(u8 **buffer, u64 *have, u64 n)
{
	if (*have < n) { rr_drop(*buffer); *buffer = rr_take(n); *have = n; }
	return *buffer;
}

/* Standard output that leads elsewhere: room for macros, as it was recorded; what is in it nobody will write. */
static void standard_stream(struct rr_file *f, struct rr_seen *s, u32 *x)
{
	u8 *p = room_for(&s->put, &s->put_size, x[3] + (u64)x[4] + 8);
	f->flags = (f->flags & ~(FILE_ENDS | FILE_PUTTING)) | (x[0] & (FILE_ENDS | FILE_PUTTING));
	f->write_base = f->read_base = f->read_ptr = f->read_end = p;
	f->write_ptr = p + x[3]; f->write_end = f->write_ptr + x[4];
	s->read_ptr = s->read_end = p; s->write_ptr = f->write_ptr; s->write_base = p;
}

/* After the call: flags and fill of the buffers, as macros look at them; in replay the bytes that macros take. */
void rr_stream(struct rr_call *c, int arg, void *stream)
{
	struct rr_file *f = stream; struct rr_seen *s; struct rr_region *r; u32 *x; u64 n, *laid; u8 *p;
	if (!f) return;
	s = seen(f);
	if (!c->replaying) {
		x = (u32 *)region(c, RR_R_OUT, arg, 0, 24);
		x[0] = f->flags; x[1] = f->read_ptr - f->read_base; x[2] = f->read_end - f->read_ptr;
		x[3] = f->write_ptr - f->write_base; x[4] = f->write_end > f->write_ptr ? f->write_end - f->write_ptr : 0;	/* none where lines are flushed */ x[5] = f->read_base != 0;
	} else {
		r = next(c, arg);
		if (!r || rr_is_output(f)) return;
		x = (u32 *)(r + 1);
		if (f == stdout || f == stderr) { standard_stream(f, s, x); return; }
		if (f == stdin) f->flags = (f->flags & ~FILE_ENDS) | (x[0] & FILE_ENDS); else f->flags = x[0] | FILE_UNLOCKED;
		p = room_for(&s->taken, &s->taken_size, (u64)x[1] + x[2] + 8);
		f->read_base = p; f->read_ptr = p + x[1]; f->read_end = f->read_ptr + x[2];
		if (!x[5]) f->read_base = f->read_ptr = f->read_end = 0;
		laid = rr_region_of(c->e, RR_A_LAID, &n);
		if (laid && n <= x[2]) memcpy(f->read_ptr, laid, n);
		if (f != stdin) {
			n = x[4] < 65536 ? x[4] : 0;
			p = room_for(&s->put, &s->put_size, x[3] + n + 8);
			f->write_base = p; f->write_ptr = p + x[3]; f->write_end = f->write_ptr + n;
		}
	}
	s->read_ptr = f->read_ptr; s->read_end = f->read_end; s->write_ptr = f->write_ptr; s->write_base = f->write_base;
}

/* What a scanf has stored: each conversion's bytes, in the order of the format. */
struct rr_va { u32 gp, fp; u64 *overflow; u8 *save; };
static void *va_pointer(struct rr_va *v) { void *p; if (v->gp < 48) { p = *(void **)(v->save + v->gp); v->gp += 8; return p; } return (void *)*v->overflow++; }
void rr_scanned(struct rr_call *c, int arg, const char *format, void *list, i64 done)
{
	struct rr_va v = *(struct rr_va *)list; const char *p = format; void *to; u64 n, width; int quiet, size, makes; struct rr_region *r; char *q;
	while (*p) {
		if (*p++ != '%') continue;
		if (*p == '%') { p++; continue; }
		quiet = makes = 0; width = 0; size = 4;
		while (*p >= '0' && *p <= '9') width = width * 10 + (*p++ - '0');
		if (*p == '$') { p++; width = 0; }
		if (*p == '*') { quiet = 1; p++; }
		if (*p == '\'') p++;
		while (*p >= '0' && *p <= '9') width = width * 10 + (*p++ - '0');
		if (*p == 'm') { makes = 1; p++; }
		if (*p == 'h') { p++; size = 2; if (*p == 'h') { p++; size = 1; } }
		else if (*p == 'l') { p++; size = 8; if (*p == 'l') p++; }
		else if (*p == 'j' || *p == 'z' || *p == 't' || *p == 'q') { p++; size = 8; }
		else if (*p == 'L') { p++; size = 16; }
		if (!*p) return;
		if (*p == 'p') size = 8;
		if (*p == '[') { p++; if (*p == '^') p++; if (*p == ']') p++; while (*p && *p != ']') p++; if (!*p) return; p++; n = 0; }
		else { n = *p == 'c' ? (width ? width : 1) : *p == 's' ? 0 : size; if (*p == 'n' && !quiet) done++; p++; }
		if (quiet) continue;
		to = va_pointer(&v);
		if (done-- <= 0) return;
		if (c->replaying) {
			r = next(c, arg);
			if (!r) return;
			if (makes) { q = rr_take(r->len); memcpy(q, r + 1, r->len); *(char **)to = q; } else memcpy(to, r + 1, r->len);
			continue;
		}
		q = makes ? *(char **)to : to;
		if (!n) n = strlen(q) + 1;
		memcpy(region(c, RR_R_OUT, arg, 0, n), q, n);
	}
}

/* ---- memory in pieces ---- */
struct rr_iov { u8 *base; u64 n; };
void rr_in_vector(struct rr_call *c, int arg, const void *parts, i64 n)
{
	const struct rr_iov *v = parts; i64 i;
	for (i = 0; v && i < n; i++) rr_in(c, arg, v[i].base, v[i].n);
}

void rr_out_vector(struct rr_call *c, int arg, const void *parts, i64 n, i64 all)
{
	const struct rr_iov *v = parts; struct rr_region *r = 0; u8 *p; i64 i; u64 part, left;
	if (c->replaying) { r = next(c, arg); if (!r) return; p = (u8 *)(r + 1); left = r->len; }
	else { if (all < 0) return; p = region(c, RR_R_OUT, arg, 0, all); left = all; }
	for (i = 0; v && i < n && left; i++) {
		part = v[i].n < left ? v[i].n : left;
		if (r) memcpy(v[i].base, p, part); else memcpy(p, v[i].base, part);
		p += part; left -= part;
	}
}

/* An array of texts, or of blocks of `each` bytes, that ends with NULL, in the library's memory. */
void rr_out_strings(struct rr_call *c, int arg, char ***s) { rr_out_blocks(c, arg, s, -1); }
void rr_out_blocks(struct rr_call *c, int arg, char ***s, i64 each)
{
	struct rr_region *r; u64 *x, i;
	if (!c->replaying) { put_pieces(c, arg, *s, -1, each); return; }
	r = next(c, arg);
	if (!r) { *s = 0; return; }
	x = (u64 *)(r + 1);
	for (i = 1; i <= x[0]; i++) if (x[i]) x[i] += (u64)x;
	*s = (char **)(x + 1);
}

/* The list that getaddrinfo makes; in replay it lies in the log. */
struct rr_address { i32 flags, family, kind, protocol; u32 size, pad; u8 *address; char *name; struct rr_address *next; };
void rr_addresses(struct rr_call *c, int arg, void *to)
{
	struct rr_address **list = to, *a, *b, **last = list; struct rr_region *r; u64 n; u8 *p;
	if (!c->replaying) {
		for (a = *list; a; a = a->next) {
			n = a->name ? strlen(a->name) + 1 : 0;
			p = region(c, RR_R_OUT, arg, (u64)*list, sizeof(*a) + a->size + n);
			memcpy(p, a, sizeof(*a)); memcpy(p + sizeof(*a), a->address, a->size); memcpy(p + sizeof(*a) + a->size, a->name, n);
		}
		return;
	}
	*list = 0;
	while ((r = next(c, arg)) != 0) {
		b = (struct rr_address *)(r + 1);
		if (last == list) map_put(r->addr, (u64)b);
		b->address = (u8 *)(b + 1); if (b->name) b->name = (char *)b->address + b->size;
		b->next = 0; *last = b; last = &b->next;
	}
}

/* A file in memory: replay maps pages of its own and fills them. */
void *rr_mapped(struct rr_call *c, int arg, void *at, u64 n, int protection, int flags, int fd, i64 offset)
{
	struct rr_region *r; u64 have = 0; i64 stat[18];
	if (!c->replaying) {
		if ((i64)at < 0 && (i64)at > -4096) return at;
		if (syscall(5, fd, stat) == 0 && stat[6] > offset) have = stat[6] - offset < (i64)n ? stat[6] - offset : n;
		if (!(protection & 1)) have = 0;
		memcpy(region(c, RR_R_OUT, arg, (u64)at, have), at, have);
		return at;
	}
	r = next(c, arg);
	if (!r) return (void *)c->result;
	at = (void *)syscall(9, c->args[0], n, 3, 0x22 | (flags & 16), -1, 0);
	memcpy(at, r + 1, r->len);
	if (protection != 3) syscall(10, at, n, protection);
	return at;
}

/* The word that goes with a descriptor is the program's own, mostly a pointer. */
void rr_epoll_ctl(struct rr_call *c, void *event)
{
	u64 mine;
	if (!event) return;
	memcpy(&mine, (u8 *)event + 4, 8);
	if (c->replaying) map_put(c->e->args[5], mine); else c->args[5] = mine;
}

void rr_epoll_wait(struct rr_call *c, void *events, i64 n)
{
	u64 word; u8 *p = events;
	for (; c->replaying && n > 0; n--, p += 12) { memcpy(&word, p + 4, 8); word = (u64)rr_translate(word); memcpy(p + 4, &word, 8); }
}

/* ---- system calls that the program makes by their number, through syscall() ---- */
int rr_refused(i64 number) { return ctl->mode != RR_M_WATCH && ((number >= 425 && number <= 427) || number == 206); }

void rr_by_number(struct rr_call *c, i64 number, i64 a, i64 b, void *event, i64 result)
{
	switch (number) {
	case 3: rr_fd_mark((int)a, 0); break;
	case 2: rr_opened(c, (const char *)a, (int)result); break;
	case 257: rr_opened(c, (const char *)b, (int)result); break;
	case 32: case 33: case 292: rr_dup(c, (int)a, (int)result); break;
	case 232: case 281: rr_epoll_wait(c, (void *)b, result); break;
	case 233: rr_epoll_ctl(c, event); break;
	}
}
