/* What generated stubs and the runtime share. Compiled by Frida's CModule (TinyCC): no libc headers. */
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef int i32; typedef long i64;

struct rr_event { u32 task; u8 kind, flags; u16 nr; u64 ip; u64 args[6]; i64 result; u64 time_in, time_out; u32 payload_off, payload_len; };
struct rr_region { u64 addr; u32 len; u8 kind, arg; u16 full_hi; };

#define RR_LIBCALL 18
#define RR_EXECED 15
enum { RR_L_CALLBACK = 1, RR_L_RETURN = 2, RR_L_PART = 4, RR_L_ERRNO = 8, RR_L_RELEASE = 16, RR_L_ENTER = 32, RR_L_AHEAD = 64, RR_L_SIGNAL = 128 };
enum { RR_R_OUT = 1, RR_R_IN = 2, RR_R_REGS = 5, RR_R_INFO = 6, RR_R_SIZE = 9 };
enum { RR_M_OFF = 0, RR_M_RECORD = 1, RR_M_REPLAY = 3, RR_M_WATCH = 4 };
enum { RR_C_VALUE = 1, RR_C_HANDLE = 2, RR_C_NULL = 4 };

/* Where a signal was delivered: within a logged call, at the end of a call (or the begin of one that is not logged), elsewhere. */
enum { AT_CALL = 0, AT_BOUNDARY = 1, COMPUTING = 2 };
#define HELD 24u
/* `inside`: in the library's own function, where a signal is delivered at once. `points`: calls begun and ended. */
struct rr_thread {
	u64 tcb; u32 id; i32 depth; u8 *buf; u64 len, cap; struct rr_call *call;
	volatile u32 inside, nheld; u32 live_call, gate, resent, injected, has_timer, scheduled; u64 timer, points, since;
	u32 next_where, through; u64 next_point, next_delay, at_due; u8 held[HELD + 1][128];
};
struct rr_call {
	struct rr_thread *t; u64 base; u64 ip, time_in; u64 args[6]; u64 more[10]; u8 cmp[16]; i64 result;
	i32 errno_in, errno_out; u16 nr; u8 nargs, flags; u8 replaying, inside, pad[2]; u64 in_end; u8 *at, *end; struct rr_event *e; struct rr_call *outer; u64 announced; u64 took; u8 *took_from;
};

extern int rr_enter(struct rr_call *c, u32 nr, u64 ip);
extern int rr_enter_ordered(struct rr_call *c, u32 nr, u64 ip);
extern int rr_enter_callback(struct rr_call *c, u32 nr, u64 ip);
extern int rr_enter_anywhere(struct rr_call *c, u32 nr, u64 ip);
extern int rr_fork(struct rr_call *c, void *orig);
extern int rr_orders(int fd);
extern int rr_swallows(int fd);
extern i64 rr_size(const void *from, i64 n, int vector);
extern i64 rr_output(u32 nr, void *orig, int fd, const void *from, i64 n, int vector, u64 ip);
extern int rr_spawned(void);
extern void *rr_knock(struct rr_call *c, const void *path);
extern void rr_stays(void *knock);
extern void rr_image(u32 task, u32 domain, u64 mask, u64 errors, u64 kind);
extern void rr_starts(struct rr_call *c);
extern void rr_end_process(struct rr_call *c);
extern int rr_enter_end(struct rr_call *c, u32 nr, u64 ip);
extern void rr_waited(struct rr_call *c, i64 pid, int *status);
extern void rr_exec(struct rr_call *c);
extern void rr_opened(struct rr_call *c, const char *path, int fd);
extern void rr_held(struct rr_call *c);
extern int rr_sigaction(struct rr_call *c, u32 nr, void *function, int s, const void *to, void *old);
extern int rr_foreign_sigaction(void *function, int s, const void *to, void *old);
extern void *rr_signal(struct rr_call *c, u32 nr, void *function, int s, void *handler, u64 flags);
extern int rr_siginterrupt(struct rr_call *c, u32 nr, void *function, int s, int interrupts);
extern const void *rr_mask(int how, const void *set, u64 *room);
extern void rr_trap(u64 at, u32 kind, u32 nr, u32 length, u32 where, u32 size);
extern void rr_sigmask(struct rr_call *c, int how, const u64 *set);
extern void rr_timer_value(struct rr_call *c, const u64 *event);
extern void rr_jump(const u64 *saved);
extern void rr_thread_ends(void);
extern void rr_in(struct rr_call *c, int arg, const void *p, u64 n);
extern void rr_in_string(struct rr_call *c, int arg, const char *s);
extern void rr_in_strings(struct rr_call *c, int arg, char **s, i64 n);
extern void rr_out(struct rr_call *c, int arg, void *p, u64 n);
extern void *rr_ret(struct rr_call *c, int arg, const void *p, u64 n, int role);
extern char *rr_ret_string(struct rr_call *c, int arg, const char *s, int role);
extern void rr_advance_pointer(struct rr_call *c, int arg, u8 **p, u8 *before);
extern void rr_refuse(int code);
extern u64 rr_kept(const void *p, u64 n);
extern void rr_broken(struct rr_call *c);
extern void rr_open(struct rr_call *c);
extern void rr_shut(struct rr_call *c);
extern void rr_line(struct rr_call *c, int arg, char **to, u64 *room, i64 n);
extern void rr_stream(struct rr_call *c, int arg, void *f);
extern void rr_stream_enter(struct rr_call *c, void *f);
extern void rr_stream_begun(struct rr_call *c);
extern void rr_stream_answered(struct rr_call *c);
extern void rr_live_stream(void *f);
extern void rr_forget(void *f);
extern void rr_dup(struct rr_call *c, int from, int to);
extern void rr_fd_mark(int fd, int is);
extern void rr_freopen(void *f);
extern void rr_scanned(struct rr_call *c, int arg, const char *format, void *list, i64 done);
extern void rr_in_vector(struct rr_call *c, int arg, const void *v, i64 n);
extern void rr_out_vector(struct rr_call *c, int arg, const void *v, i64 n, i64 all);
extern void rr_out_strings(struct rr_call *c, int arg, char ***s);
extern void rr_out_blocks(struct rr_call *c, int arg, char ***s, i64 each);
extern int rr_refused(i64 number);
extern void rr_by_number(struct rr_call *c, i64 number, i64 a, i64 b, void *event, i64 result);
extern void rr_remember(u64 key, void *p);
extern void rr_remembered(struct rr_call *c, int arg, u64 key);
extern void *rr_through(void);
extern void rr_through_end(void *thread);
extern void rr_addresses(struct rr_call *c, int arg, void *list);
extern void *rr_mapped(struct rr_call *c, int arg, void *at, u64 n, int protection, int flags, int fd, i64 offset);
extern void rr_epoll_ctl(struct rr_call *c, void *event);
extern void rr_epoll_wait(struct rr_call *c, void *events, i64 n);
extern void *rr_standard_input(void);
extern void *rr_standard_output(void);
extern void rr_put_strings(struct rr_call *c, int arg, char **s, i64 n);
extern void rr_begin(struct rr_call *c);
extern i64 rr_answer(struct rr_call *c);
extern void rr_leave(struct rr_call *c);
extern void rr_release(struct rr_call *c);
extern void rr_live_enter(struct rr_call *c);
extern void rr_live_leave(struct rr_call *c);
extern void rr_data(struct rr_call *c, int arg, void *p);
extern void *rr_translate(u64 recorded);
extern void rr_end(struct rr_call *c);
extern void rr_replay_end(struct rr_call *c, int handle);
extern int rr_create(struct rr_call *c, void *orig, void *thread, void *attr, void *run, void *arg);
extern void rr_callback_enter(struct rr_call *c, int slot);
extern void rr_callback_leave(struct rr_call *c);
extern void rr_replay_begin(struct rr_call *c, struct rr_event *e);
extern void *rr_region_of(struct rr_event *e, int arg, u64 *n);
extern void *rr_strings_of(struct rr_event *e, int arg);
extern int rr_callback_slot(void *p, void **fns, int most, u32 nr);
extern int rr_fd_is_output(int fd);
extern int rr_is_output(void *stream);
extern int rr_is_standard(void *stream);
extern u64 strlen(const char *);
extern u64 strnlen(const char *, u64);
extern u64 wcslen(const int *);
extern u64 *rr_more_of(struct rr_event *e);
extern void *rr_take(u64 n);
extern void rr_drop(void *p);
extern void *rr_retake(void *p, u64 n);
extern void *rr_heap_stub(u32 i);
extern void *rr_heap_slot(u32 i);
extern void rr_heap_begin(void);
extern void *rr_place(void *at, u64 n, int flags);
extern void *malloc(u64);
extern void free(void *);
extern void *memcpy(void *, const void *, u64);
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define is_output(s) rr_is_output((void *)(s))
#define stdout_is_output() rr_is_output((void *)0)
#define standard_input() rr_standard_input()
#define standard_output() rr_standard_output()
#define is_standard(s) rr_is_standard((void *)(s))
#define fd_is_output(fd) rr_fd_is_output(fd)
