/* Continues runtime.c: memory that the C library allocates for itself within a logged call. Replay does not make the
 * call, and would not allocate: the program's own memory would lie elsewhere, and what depends on addresses would
 * differ. So such memory comes from a region of its own, in both runs; so does what the log allocates. The program's
 * malloc, free, ... are replaced for that: free must know such memory, and hands all else to the original. */
enum { H_FREE = 0, H_REALLOC = 1, H_MALLOC = 2, H_CALLOC = 3, H_MEMALIGN = 4, H_ALIGNED = 5, H_POSIX = 6, H_USABLE = 7, H_FUNCTIONS = 8 };
#define HEAP_AT 0x220000000000UL
#define HEAP_SIZE 0x40000000UL
#define HEAP_HEAD 16u
#define HEAP_PLAIN 0x70726976UL	/* in the head: the size class, and this */
struct rr_head { u64 class_, mark; };

static int is_private(const void *p) { return rr_state.heap && (u64)p - rr_state.heap < HEAP_SIZE; }

static int in_call(void)
{
	struct rr_thread *t = main_thread; u64 me; u32 i;
	if (!rr_state.heap) return 0;
	if (ctl->multi) {
		me = tcb();
		for (i = (u32)((me >> 6) * 2654435761u) % THREADS; (t = table[i]) != 0 && t->tcb != me; i = (i + 1) % THREADS) ;
	}
	return t && t->inside;
}

static void *heap_take(u64 n)
{
	struct rr_head *h; u64 c = 0, size = 32, **list;
	while (size < n + HEAP_HEAD) { size <<= 1; c++; }
	lock(&rr_state.heap_lock);
	list = (u64 **)&rr_state.heap_free[c];
	if (*list) { h = (struct rr_head *)*list; *list = *(u64 **)(h + 1); }
	else if (rr_state.heap_used + size > HEAP_SIZE) { unlock(&rr_state.heap_lock); return ((void *(*)(u64))rr_state.heap_was[H_MALLOC])(n); }
	else { h = (struct rr_head *)(rr_state.heap + rr_state.heap_used); rr_state.heap_used += size; }
	unlock(&rr_state.heap_lock);
	h->class_ = c; h->mark = HEAP_PLAIN;
	return h + 1;
}

static void heap_give(void *p)
{
	struct rr_head *h = (struct rr_head *)p - 1; u64 c = h->class_;
	if (h->mark != HEAP_PLAIN) return;	/* aligned: not given back */
	h->mark = 0;
	lock(&rr_state.heap_lock);
	*(u64 *)p = rr_state.heap_free[c]; rr_state.heap_free[c] = (u64)h;
	unlock(&rr_state.heap_lock);
}

static u64 heap_room(void *p)
{
	struct rr_head *h = (struct rr_head *)p - 1;
	return h->mark == HEAP_PLAIN ? (32UL << h->class_) - HEAP_HEAD : h->class_;
}

/* As malloc, free and realloc, for the log itself. */
void *rr_take(u64 n) { return rr_state.heap ? heap_take(n) : malloc(n); }
void rr_drop(void *p) { if (p && is_private(p)) heap_give(p); else free(p); }
void *rr_retake(void *p, u64 n)
{
	void *q; u64 had;
	if (!rr_state.heap || (p && !is_private(p))) return realloc(p, n);
	if (!p) return heap_take(n);
	had = heap_room(p);
	if (n <= had) return p;
	q = heap_take(n);
	memcpy(q, p, had);
	heap_give(p);
	return q;
}

static void *heap_aligned(u64 align, u64 n)
{
	struct rr_head *h = heap_take(n + align + HEAP_HEAD); u64 at = ((u64)(h + 1) + align - 1) & ~(align - 1);
	h = (struct rr_head *)at - 1; h->class_ = n; h->mark = 0;
	return (void *)at;
}

/* ---- what stands in the place of the program's ---- */
static void *h_malloc(u64 n) { return in_call() ? heap_take(n) : ((void *(*)(u64))rr_state.heap_was[H_MALLOC])(n); }
static void h_free(void *p) { if (is_private(p)) heap_give(p); else ((void (*)(void *))rr_state.heap_was[H_FREE])(p); }
static void *h_calloc(u64 a, u64 b)
{
	void *p;
	if (!in_call() || (b && a > ~0UL / b)) return ((void *(*)(u64, u64))rr_state.heap_was[H_CALLOC])(a, b);
	p = heap_take(a * b);
	return memset(p, 0, a * b);
}
static void *h_realloc(void *p, u64 n)
{
	if (p ? !is_private(p) : !in_call()) return ((void *(*)(void *, u64))rr_state.heap_was[H_REALLOC])(p, n);
	if (p && !n) { heap_give(p); return 0; }
	return rr_retake(p, n);
}
static void *h_memalign(u64 align, u64 n) { return in_call() ? heap_aligned(align, n) : ((void *(*)(u64, u64))rr_state.heap_was[H_MEMALIGN])(align, n); }
static void *h_aligned(u64 align, u64 n) { return in_call() ? heap_aligned(align, n) : ((void *(*)(u64, u64))rr_state.heap_was[H_ALIGNED])(align, n); }
static int h_posix(void **to, u64 align, u64 n)
{
	if (!in_call()) return ((int (*)(void **, u64, u64))rr_state.heap_was[H_POSIX])(to, align, n);
	*to = heap_aligned(align, n);
	return 0;
}
static u64 h_usable(void *p) { return is_private(p) ? heap_room(p) : ((u64 (*)(void *))rr_state.heap_was[H_USABLE])(p); }

/* The function that stands in the place of the i-th, and where its original is put; free comes first. */
void *rr_heap_stub(u32 i)
{
	void *all[H_FUNCTIONS];
	all[H_FREE] = (void *)h_free; all[H_REALLOC] = (void *)h_realloc; all[H_MALLOC] = (void *)h_malloc; all[H_CALLOC] = (void *)h_calloc;
	all[H_MEMALIGN] = (void *)h_memalign; all[H_ALIGNED] = (void *)h_aligned; all[H_POSIX] = (void *)h_posix; all[H_USABLE] = (void *)h_usable;
	return all[i];
}
void *rr_heap_slot(u32 i) { return &rr_state.heap_was[i]; }

/* All are in their places: use them. */
void rr_heap_begin(void)
{
	i64 at = syscall(9, HEAP_AT, HEAP_SIZE, 3, 0x4022, -1, 0);
	if (at > 0 || at < -4095) rr_state.heap = at;
}

/* Where the program's own mappings go: below SETTLED, in both runs. What Frida has left free above is taken. */
#define SETTLED 0x7fffc0000000UL
#define SETTLED_TOP 0x7ffff7ffffffUL
static u64 hexadecimal(const u8 **p)
{
	u64 n = 0;
	for (;; ++*p) {
		if (**p >= '0' && **p <= '9') n = n * 16 + (**p - '0');
		else if (**p >= 'a' && **p <= 'f') n = n * 16 + (**p - 'a' + 10);
		else return n;
	}
}

static void settle(void)
{
	u8 *text; const u8 *p; i64 fd, n, size = 0, room = 1048576; u64 start, end, last = 0;
	rr_state.settled = 1;
	if (!rr_state.heap) return;
	fd = syscall(2, "/proc/self/maps", 0x80000, 0);
	if (fd < 0) return;
	text = pages(room);
	while (size < room - 1 && (n = syscall(0, fd, text + size, room - 1 - size)) > 0) size += n;
	syscall(3, fd);
	for (p = text; p < text + size; ) {
		start = hexadecimal(&p); p++;
		end = hexadecimal(&p);
		while (p < text + size && *p++ != '\n') ;
		if (end <= SETTLED) continue;
		if (start > SETTLED_TOP) break;
		if (last && start > last) syscall(9, last, start - last, 0, 0x104022, -1, 0);
		if (!last && start > SETTLED) syscall(9, SETTLED, start - SETTLED, 0, 0x104022, -1, 0);
		last = end;
	}
	syscall(11, text, room);
}

/* Where a mapping goes that may go anywhere (a wish only): what Frida frees meanwhile is no place for it. */
#define PLACED 0x7ffe00000000UL
void *rr_place(void *at, u64 n, int flags)
{
	if (at || !rr_state.heap || (flags & 0x40) || !n || n >> 40) return at;
	n = (n + 4095) & ~4095UL;
	if (n >= 0x200000) n = (n + 0x1fffff) & ~0x1fffffUL;
	return (void *)((PLACED - fetch_add(&rr_state.placed, n) - n) & (n >= 0x200000 ? ~0x1fffffUL : ~4095UL));
}
