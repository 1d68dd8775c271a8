/* core.h - the core's own types and the functions its files offer each other. */
#ifndef RR_CORE_H
#define RR_CORE_H

#pragma GCC visibility push(hidden)

#include "abi.h"
#include "core_offsets.h"

#include "effects.h"

#define PAGE 4096ul
#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define NORETURN __attribute__((noreturn))

#include "kernel.h"

/* ---- system calls of the core's own: its text is exempt from dispatch ---- */
static inline s64 sys6(s64 nr, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
  register u64 r10 __asm__("r10") = d;
  register u64 r8 __asm__("r8") = e;
  register u64 r9 __asm__("r9") = f;
  s64 result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#define SYS0(n) sys6(n, 0, 0, 0, 0, 0, 0)
#define SYS1(n, a) sys6(n, (u64)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b) sys6(n, (u64)(a), (u64)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c) sys6(n, (u64)(a), (u64)(b), (u64)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) sys6(n, (u64)(a), (u64)(b), (u64)(c), (u64)(d), 0, 0)
#define SYS5(n, a, b, c, d, e) sys6(n, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), 0)
#define SYS6(n, a, b, c, d, e, f) sys6(n, (u64)(a), (u64)(b), (u64)(c), (u64)(d), (u64)(e), (u64)(f))

/* ---- entry.S ---- */
NORETURN void rr_start_program(u64 entry, u64 sp);
NORETURN void rr_sigreturn_to(struct sigframe *frame);
void rr_fast_entry(void);
void rr_restorer(void);
void rr_restorer_app(void);
s64 rr_call_interruptible(s64 nr, const u64 *args);
int rr_copy(void *to, const void *from, u64 bytes);
s64 rr_strcopy(char *to, const char *from, u64 cap);
int rr_fill(void *to, u64 word, u64 words);
int rr_load64(u64 *to, const void *from);
int rr_touch(void *at);
int rr_equal(const void *a, const void *b, u64 bytes);
s64 rr_clone(u64 flags, u64 stack, u64 ptid, u64 ctid, u64 tls, void *child);
NORETURN void rr_exit_thread(u64 code);
s64 rr_vdso_call(void *function, u64 clock, struct timespec *to);
extern char rr_exit_begin[], rr_exit_syscall[], rr_exit_pending[], rr_int_begin[], rr_int_syscall[], rr_int_pending[];
extern char rr_copy_at[], rr_copy_fail[], rr_strcopy_at[], rr_strcopy_fail[], rr_load64_at[], rr_load64_fail[];
extern char rr_equal_at[], rr_equal_fail[], rr_equal_first[], rr_equal_second[], rr_equal_bytes[], rr_touch_at[], rr_touch_fail[];
extern char rr_copy_load[], rr_copy_store[], rr_copy_bytes[], rr_fill_at[];

/* ---- per process: what threads of one process share (a vfork child has its own) ---- */
#define MAX_SHARED_MAPS 4096
#define FD_CACHE 1024

struct shared_map { /* a live MAP_SHARED mapping, or a private one of a file that may be written */
  u64 addr, len, dev, ino, off;
  u64 size; /* of the file, whole pages */
  u32 writable;
  u32 private;
  u32 file; /* its number in the trace */
  u32 version; /* of the file: writes that were looked at */
  u32 changed; /* since then */
};

#define MAX_CODE 256
struct code_range { u64 from, to; }; /* meant to be executable, and not yet so */

struct process {
  u32 used;
  u32 pid;
  u32 nthreads;
  u32 exiting;
  u32 execing;      /* tid of the thread inside execve, or 0 */
  u32 vforked;      /* its creator waits for its exec or exit, and lets go of this then */
  u32 guest;        /* in the domain of a process that made it: its end is not the domain's */
  u32 undumpable;   /* what the program thinks of PR_SET_DUMPABLE */
  u32 tsc_trapped;  /* what the program thinks of PR_SET_TSC: PR_TSC_SIGSEGV if set by it */
  struct sigaction_k actions[65]; /* the program's own dispositions */
  u8 fd_class[FD_CACHE];          /* enum fd_class */
  u8 fd_waits[FD_CACHE];          /* 0 unknown, 1 a call on it may wait, 2 it never does */
  u32 unmapped[FD_CACHE];         /* = GLOBAL->mapped_generation: no mapping shows this descriptor's file */
  u32 kept_file;    /* replay: the file mapped last (0: none), which is open as kept_fd */
  s32 kept_fd;
  u64 kept_shift;   /* what its offsets differ by in kept_fd */
};

/* per address space: in the core's data, copied by fork */
struct space {
  u64 brk;              /* replay: current break */
  u64 vdso_clock;       /* recording: the kernel's clock_gettime, 0: none */
  u32 fd_base;
  u32 control_fd;       /* normally fd_base + RR_FD_CONTROL; elsewhere where that number cannot be had */
  u32 shares_fds;       /* the descriptor table is another recorded process's, too (CLONE_FILES) */
  u32 recording;        /* 1 recording, 0 replaying */
  u32 domain;
  u32 no_cpuid_fault;
  u32 late_fault;       /* ... until the program makes code: see latefault.c */
  u32 watch_code;       /* CPUID is looked for in code that the program makes */
  u32 ncode;
  struct code_range code[MAX_CODE];
  u32 nshared;          /* entries of `shared` in use */
  u32 map_changes;       /* calls that may have changed which memory is writable; 0: none yet */
  u32 grows_down;        /* the program has a mapping that grows by itself */
  u64 below;             /* the lowest place below the core that was given to what the kernel put into its range */
  u64 writes_seen;        /* of GLOBAL->writes: those that are in the log */
  u32 writable_shared;  /* of them writable, and anonymous ones: decides whether a fork shares the domain */
  u32 display_client;     /* connected to an X server */
  u32 stack_grows;        /* replay: the main stack grows as the kernel lets it */
  u32 reported_calls[16]; /* bit set: call numbers already reported as unknown */
  struct shared_map shared[MAX_SHARED_MAPS];
};

/* ---- per thread: the block at GS base ---- */
#define SIG_QUEUE 64u
#define POKES 8u
struct resume_point { u64 rbx, rbp, r12, r13, r14, r15, rsp, rip; };
struct thread {
  struct thread *self; /* TH_SELF */
  u64 pending;         /* TH_PENDING: entries in `queue` */
  u64 app_sp;          /* TH_APP_SP: the program's stack pointer while a patched call is made */
  u64 fast_sp;         /* TH_FAST_SP: top of the stack for patched calls */
  u64 tail;            /* TH_TAIL: where a patched call goes on */
  u64 gate_ip;         /* TH_GATE_IP: the address after the call that goes through a gate */
  u64 late;            /* TH_LATE: result of a patched call that ends in a trap */
  u32 tid, pid;        /* as the program knows them (recorded ids when replaying) */
  struct process *process;
  struct sigframe *frame; /* of the trap being handled */
  u64 mask;               /* the program's signal mask */
  struct stack_k altstack; /* the program's alternate stack */
  u64 clear_tid;          /* CLONE_CHILD_CLEARTID */
  u64 set_tid;            /* CLONE_CHILD_SETTID */
  u64 robust_head, robust_len;
  u32 alive;              /* cleared by the kernel when the thread is really gone */
  u32 in_use;
  u32 new_process;        /* started by a clone without CLONE_THREAD */
  u32 vforked;            /* its creator waits for its exec or exit */
  u32 creator;
  u32 poked;
  volatile u32 tracer;    /* tid of the task that has attached to this one (futex word) */
  u32 call_restartable;
  u64 child_stack;
  u64 time_in;            /* of the call being made */
  u64 call_mask;          /* the mask a sigsuspend-like call had for its own time */
  u32 suspended;          /* 1: such a call was interrupted, call_mask decides what is delivered */
  u32 real_tid;
  struct rr_event event;  /* under construction */
  u32 event_open;
  u32 event_payload;      /* where its payload starts in the slot */
  u32 event_fills;        /* bytes of its RR_R_FILL regions, unfolded */
  u64 scratch;            /* RR_SCRATCH area of this thread */
  u64 scratch_size;
  u64 poke_ip[POKES], poke_sp[POKES]; /* where the recorder's latest requests to stop found it */
  u64 poke_events, poke_since;        /* since this many events, since this time */
  u64 poke_hash[POKES]; /* of all registers, at every request since then */
  u32 poke_hashes;
  u32 pokes;
  u32 cpuid_traps;      /* late_fault: CPUID traps for this thread */
  u32 timer, timer_armed; /* POSIX timer, its number + 1, that has it look whether it spins */
  u64 timer_wait, timer_events;
  u32 spun, spun_at;    /* it was stopped for spinning, at this place, */
  u32 spun_for;         /* others made events meanwhile, */
  u64 spun_events;      /* and went on when there were so many events */
  u64 held; /* core signals that were sent and that the program blocks: the kernel cannot keep them */
  struct siginfo_k queue[SIG_QUEUE];
  struct siginfo_k held_info[7];
  /* replaying under a debugger */
  struct resume_point resume; /* where a copy of this thread goes on, while `waiting` */
  u64 fs_base;            /* while `waiting` */
  u64 lifted;             /* address of the breakpoint that is out for the step being made */
  u32 waiting;            /* inside wait_turn */
  u32 reviving;
  u32 stepping;           /* the trap flag is set: 1 by the debugger's wish, 2 to get over a breakpoint */
  u32 pass;               /* what debug.c has met already: the breakpoint at the pc (1), a signal (2) */
  u32 pushes_flags;       /* the instruction being stepped is pushf */
};
#define THREAD_STACK_TOP(th) ((u64)(th) + RR_THREAD_STRIDE)
#define THREAD_STACK_SIZE 0x10000ul
#define THREAD_FAST_SIZE 0x10000ul
#define THREAD_SCRATCH(th) ((u64)(th) + 0x4000ul)
#define THREAD_SCRATCH_SIZE (RR_THREAD_STRIDE - THREAD_STACK_SIZE - THREAD_FAST_SIZE - 0x4000ul)
_Static_assert(sizeof(struct thread) <= 0x4000, "thread block");

extern struct space space;
#define GLOBAL ((volatile struct rr_global *)RR_GLOBAL)
#define RING ((volatile struct rr_ring *)RR_RING)
#define HIDDEN(which) ((s32)(space.fd_base + (which)))
#define CONTROL ((s32)space.control_fd)

static inline struct thread *current(void) {
  struct thread *th;
  __asm__("movq %%gs:0, %0" : "=r"(th));
  return th;
}
/* What a completed call leaves: its result, and status flags as the short way through a patched site leaves them (it
 * does not restore them; a program that asked for them would see which way a call took). */
static inline void set_result(u64 *regs, s64 result) {
  regs[R_RAX] = (u64)result;
  regs[R_EFLAGS] = (regs[R_EFLAGS] & ~0x8d5ul) | 0x44ul;
}
static inline int in_core(u64 address) { return address - RR_BASE < RR_END - RR_BASE; }
static inline int in_slots(u64 address) { return address - RR_SLOT_TABLE < RR_SLOT_TABLE_SIZE; }

/* The core's code is not made for the alignment check, which the program may have switched on; a frame puts it back. */
static inline void no_alignment_check(const struct ucontext_k *uc) {
  if (unlikely(uc->mc.regs[R_EFLAGS] & 0x40000)) __asm__ volatile("pushfq; andq $~0x40000, (%%rsp); popfq" : : : "memory", "cc");
}

/* ---- thread.c ---- */
struct thread *thread_allocate(void);
u32 threads_made(void); /* blocks that have ever been used: the first so many */
struct thread *thread_find(u32 tid);   /* of any process of this address space; NULL: it has ended */
void thread_become(struct thread *th); /* GS base and alternate stack of the calling thread */
void thread_dispatch_on(void);         /* SUD for the calling thread */
struct process *process_allocate(void);
void thread_stop_recording(void);
const struct thread *thread_by_tid(const struct thread *th, u32 tid); /* of the same process; NULL: none */
void threads_release_robust(struct thread *th); /* recording: of all threads of the process, into the open event */

void threads_affinity(const u64 *mask, u64 bytes);

/* ---- util.c ---- */
void copy_bytes(void *to, const void *from, u64 bytes);
void clear_bytes(void *to, u64 bytes);
u64 parse_number(const char *text);
char *decimal_before(char *end, u64 value); /* not ended by a zero */
NORETURN void fatal(const char *why);
u64 now_coarse(void);
u64 now_precise(void);
s64 futex_wait(volatile u32 *word, u32 value, u64 timeout_ns);
void futex_wake(volatile u32 *word, u32 count);

/* ---- channel.c ---- */
s64 channel_send(s32 socket, struct rr_msg *msg, const s32 *fds, u32 nfds);
s64 channel_receive(s32 socket, struct rr_msg *msg, void *extra, u64 extra_size, s32 *fds, u32 nfds);
s64 ask(struct rr_msg *msg, const s32 *fds, u32 nfds, void *extra, u64 extra_size);
void report(u32 what, u64 b, u64 c, u64 d);
s32 hide_fd(s32 fd, u32 which, int cloexec);
void hide_control(s32 fd);

/* ---- limits.c ---- */
struct limits { struct rlimit_k old[3]; u32 changed; };
void limits_lift(struct limits *limits);
void limits_restore(const struct limits *limits);
s64 limit_stack(u64 bytes);
void replay_limit(const struct thread *th, u64 nr, const u64 *args);
int tool_alive(void);

/* ---- log.c (recording): an event is begun, given regions, committed ---- */
void log_begin(struct thread *th, u32 kind, u32 nr, u64 ip, const u64 *args);
void log_region(struct thread *th, u32 kind, u32 arg, u64 addr, u64 len);                   /* from program memory */
void log_bytes(struct thread *th, u32 kind, u32 arg, u64 addr, const void *data, u64 len); /* from the core's */
void log_scratch(struct thread *th, u32 arg, u64 addr, const void *data, u64 len); /* to program memory, and log */
void log_string(struct thread *th, u32 arg, u64 addr);
void log_commit(struct thread *th, s64 result);
void log_abandon(struct thread *th);
void log_simple(struct thread *th, u32 nr, u64 ip, const u64 *args, s64 result); /* a whole event without payload */
void log_flush_room(u32 events);
#define RR_SHORT_MAX 16384u
u8 *log_short_room(void); /* where the payload of the next event goes, RR_SHORT_MAX bytes; NULL: nothing is logged */
void log_short(struct thread *th, u32 nr, u64 ip, const u64 *args, s64 result, u64 time_out, u32 payload, u32 flags);
u32 log_short_in(u8 *to, u32 arg, u64 addr, u64 len);  /* the bytes of a region that a call reads, or wrote; 0: memory is missing */
u32 log_short_out(u8 *to, u32 arg, u64 addr, u64 len);
u32 log_short_sequence(u8 *to, u64 number); /* the same for an output's number */
void keep_places(u32 from);
void stop_recording(u32 reason);
static inline int logging(void) { return RING->state == RR_RECORDING; }

/* ---- cursor.c (replaying): the next event ---- */
struct rr_event *next_event(struct thread *th); /* waits for it; NULL: the log ends here */
const u8 *event_payload(const struct rr_event *event);
void consume(struct thread *th);                      /* the event next_event returned is done: both of these */
void advance(void);
void consumed(struct thread *th);                     /* parks the task where the tool wants to stop */
void give_turn(u32 task);
void wait_turn(struct thread *th);                    /* until the next event is this thread's */
void pass_turn(struct thread *th);                    /* wake the owner of the next event */
NORETURN void park(struct thread *th, u32 divergence, const struct rr_event *found);
void apply_outputs(struct thread *th, const struct rr_event *event);
int inputs_agree(const struct rr_event *event);
void check_inputs(struct thread *th, const struct rr_event *event, const struct rr_event *found);
const struct rr_region *find_region(const struct rr_event *event, u32 kind);
void replay_output(struct thread *th, const struct rr_event *event, const u64 *args);

/* ---- baton.c (recording) ---- */
void baton_take(struct thread *th);
void baton_give(struct thread *th);
int task_gone(u32 tid);
void baton_fair(struct thread *th, u64 ip);
int chaos_hands_over(void);
void chaos_hold_back(struct thread *th);
void chaos_give(struct thread *th, u32 grants);
static inline int alone(void) { return RING->ntasks <= 1; }

/* ---- spin.c (recording) ---- */
void spin_arm(struct thread *th);
void spin_disarm(struct thread *th);
void spin_end(struct thread *th);
int spin_asked(struct thread *th, const struct siginfo_k *info, u64 *ran);
void spin_found_nothing(struct thread *th);
int seems_to_spin(struct thread *th, const u64 *regs, u64 ran);
void spin_stopped(struct thread *th, u64 took, u64 bytes, u64 others);

/* ---- together.c: threads that hand over often stay on one processor ---- */
void handed_over(void);
void spread_out(int for_good);
u32 spins(u32 apart);

/* ---- effects.c ---- */
struct effects {
  const struct rr_effect *rows;
  u32 count;
  u32 treat;
  u32 block;
  u32 flags;
  u32 unknown; /* a sub-call that is not known */
  struct rr_effect made; /* storage for a row made from an ioctl's encoding */
};
void effects_of(struct effects *to, u64 nr, const u64 *args);
void log_inputs(struct thread *th, const struct effects *effects, const u64 *args);
u32 save_lengths(const struct effects *effects, const u64 *args, u64 *lengths);
void log_outputs(struct thread *th, const struct effects *effects, const u64 *args, s64 result, const u64 *lengths);

/* ---- scratch.c: blocking calls with other tasks about write elsewhere first ---- */
int scratch_redirect(struct thread *th, const struct effects *effects, u64 *args, u64 *used);
s64 scratch_return(struct thread *th, const struct effects *effects, const u64 *app_args, const u64 *args, s64 result,
                   const u64 *lengths);

/* ---- dispatch.c: one trapped call ---- */
void on_sigsys(int sig, struct siginfo_k *info, struct ucontext_k *uc);

/* ---- patch.c: call sites that no longer trap ---- */
struct fast_frame { u64 flags, nr, ip, args[6]; };
struct fast_result { s64 result; u64 action; };
enum { FAST_DONE = 0, FAST_TRAP = 1, FAST_LATE = 2 };
struct fast_result rr_fast(struct fast_frame *frame);
void patch_reserve(void);
void patch_consider(u64 ip);
u64 patch_resume(u64 ip);    /* where to go on: the tail of the stub if the bytes at ip are patched */
u64 patch_canonical(u64 ip); /* the other way round */
extern u64 gate_trap, gate_late;

/* ---- record.c ---- */
s64 record_plain(struct thread *th, u64 nr, u64 *args, u64 ip);
int holds_up(struct thread *th); /* whether this task waits with the baton, having been alone when it began to */
int record_light(struct thread *th, u64 nr, const u64 *args, u64 ip, s64 *result); /* light.c; 0: to be recorded in full */
void record_call(struct thread *th, u64 nr, u64 *args, u64 ip);
s64 record_made(struct thread *th, u64 nr, const u64 *args, u64 ip, s64 result); /* an event for what was done without the kernel */

/* ---- replay.c ---- */
void replay_call_all(struct thread *th, u64 nr, u64 *args, u64 ip);
void replay_after(struct thread *th); /* signals and preemptions that come next for this thread */
struct rr_event *replay_before(struct thread *th, u64 nr, const u64 *args, u64 ip); /* past checksums, yields, signals */
struct rr_event *replay_match(struct thread *th, u64 nr, const u64 *args, u64 ip); /* its K_SYSCALL, not consumed; NULL: a signal came first */
void replay_release(struct thread *th, u64 nr, const u64 *args, u64 ip); /* its K_RELEASE, then the turn */
void replay_expect(struct thread *th, u32 kind); /* consumes an event of this kind */

/* ---- virtual.c: calls the core answers itself, the same when recording and replaying ---- */
int is_virtual(u64 nr, const u64 *args);
s64 do_virtual(struct thread *th, u64 nr, u64 *args);

/* ---- ptrace.c ---- */
s64 do_ptrace(struct thread *th, const u64 *args);
int waits_for_traced(const u64 *args);
s64 wait_for_traced(const u64 *args);
int held_by_tracer(struct thread *th);

/* ---- transfer.c ---- */
#define CARRY_MAX 0x8000ul
int can_carry(u64 nr, const u64 *args);
s64 carry_in(struct thread *th, u64 nr, const u64 *args);
s64 carry_out(struct thread *th, u64 nr, const u64 *args, s64 got);
void log_carried(struct thread *th, u64 seq, s64 result);

/* ---- signals.c ---- */
void signals_install(struct process *process);
void on_signal(int sig, struct siginfo_k *info, struct ucontext_k *uc);
void on_fault(int sig, struct siginfo_k *info, struct ucontext_k *uc);
void rr_late_signals(struct ucontext_k *uc);
s64 held_take(struct thread *th, const u64 *args); /* rt_sigtimedwait: the signal, 0: none of those */
int deliver_pending(struct thread *th, u32 place); /* record: 1 if a frame was built */
void deliver(struct thread *th, const struct siginfo_k *info, u32 place);
int mask_of_call(u64 nr, const u64 *args, u64 *mask);
u64 real_mask(u64 mask);
void set_real_mask(u64 mask);
s64 do_rt_sigaction(struct thread *th, u64 *args);
s64 do_rt_sigprocmask(struct thread *th, u64 *args);
s64 do_sigaltstack(struct thread *th, u64 *args);
s64 do_rt_sigreturn(struct thread *th);
NORETURN void die_of_signal(struct thread *th, u32 sig);
int default_is_fatal(u32 sig);
void install_one(struct process *process, u32 sig);

/* ---- preempt.c ---- */
void preempt(struct thread *th, struct sigframe *frame, u64 ran);
void replay_state(struct thread *th, const struct rr_event *event); /* registers and pages of a preemption */
void replay_preempt(struct thread *th, const struct rr_event *event);

/* ---- dirty.c ---- */
void dirty_forget(void);
int dirty_watching(void);
int dirty_pages(s32 pagemap, u64 from, u64 to, void (*page)(void *context, u64 address, u64 pages), void *context);
void dirty_watch(s32 pagemap, u64 from, u64 to);

/* ---- join.c ---- */
u32 record_join(struct thread *th, u64 ip, u32 what, s32 fd, u64 id, u64 writable);
void replay_join(struct thread *th);

/* ---- futex.c ---- */
int is_pi_futex(const u64 *args);
s64 record_pi_futex(struct thread *th, u64 *args, u64 ip);
int waits_for_owner(const u64 *args);
s64 wait_owned(struct thread *th, const u64 *args, int *killed);
void take_from_killed(struct thread *th, const u64 *args);
void release_robust(struct thread *th, const struct thread *of);

/* ---- frame.c ---- */
int frame_build(struct thread *th, struct sigframe *frame, const struct siginfo_k *info, const struct sigaction_k *action);
int frame_restore(struct thread *th, struct sigframe *frame, u64 sp);
u64 fpstate_size(const void *fpstate);

/* ---- process.c ---- */
#define RR_SIGNALLED (-513l) /* replay: a signal's frame was built instead of the call */
struct clone_request { u64 flags, stack, ptid, ctid, tls; };
void clone_request(struct clone_request *to, u64 nr, const u64 *args);
s64 record_clone(struct thread *th, u64 nr, u64 *args, u64 ip);
s64 replay_clone(struct thread *th, u64 nr, u64 *args, u64 ip);
s64 record_execve(struct thread *th, u64 nr, u64 *args, u64 ip);
s64 replay_execve(struct thread *th, u64 nr, u64 *args, u64 ip);
NORETURN void record_exit(struct thread *th, u64 nr, u64 *args, u64 ip);
NORETURN void replay_exit(struct thread *th, u64 nr, u64 *args, u64 ip);
NORETURN void rr_child(struct thread *th);

/* ---- memory.c ---- */
int is_memory(u64 nr);
s64 record_memory(struct thread *th, u64 nr, u64 *args, u64 ip);
s64 replay_memory(struct thread *th, u64 nr, u64 *args, const struct rr_event *event);
void replay_length(const struct rr_region *region);
static inline u64 page_up(u64 value) { return (value + PAGE - 1) & ~(PAGE - 1); }

/* ---- filewrites.c ---- */
void shared_lock(struct thread *th, volatile u32 *word);
void shared_unlock(struct thread *th, volatile u32 *word);
void watch_file(const struct stat_k *s);
u32 file_version(const struct stat_k *s);
void log_file_writes(struct thread *th, u64 nr, const u64 *args, s64 result);
void log_writes_of_others(struct thread *th, u64 nr, u64 ip);

/* ---- fds.c ---- */
enum fd_class { FD_UNKNOWN = 0, FD_OUT = 1, FD_ERR = 2, FD_OTHER = 3, FD_MEMORY = 4, FD_FOREIGN_MEMORY = 5 };
u32 fd_class(struct thread *th, u64 fd);
int fd_waits(struct thread *th, u64 fd);
void fd_changed(struct thread *th, u64 fd);
void fd_modes_changed(struct thread *th);
int hidden_fd(u64 fd);
s64 do_close_range(struct thread *th, u64 *args);
s64 hide_in_directory(u64 fd, u8 *entries, s64 bytes);

/* ---- memwrite.c: memory that is written by its name in another interface ---- */
u32 memory_class(struct thread *th, u64 fd, const struct stat_k *s);
int writes_foreign_memory(struct thread *th, u64 nr, const u64 *args, u32 class);
void log_memory_writes(struct thread *th, u64 nr, const u64 *args, s64 result, u32 class);
int write_anyhow(u64 address, const void *data, u64 bytes);

/* ---- counter.c ---- */
u64 time_stamp(u32 *aux); /* recording: RDTSC, and RDTSCP's processor where it is wanted */

/* ---- trap.c ---- */
int emulate_instruction(struct thread *th, struct ucontext_k *uc, int sig);

/* ---- ranges.c ---- */
typedef void (*range_visitor)(void *context, u64 from, u64 to, int shared, int file);
int each_range(range_visitor visit, void *context);
int each_kept_range(range_visitor visit, void *context);

/* ---- jit.c ---- */
u64 jit_protection(const u64 *args);
void jit_mapped(u64 address, const u64 *args);
void jit_forget(u64 address, u64 len);
void jit_settle(u64 address, u64 len);
int jit_fault(const u64 *regs, int sig);
void late_fault(struct thread *th);
void late_fault_call(struct thread *th, u64 nr, const u64 *args);
void late_fault_follow(struct thread *th);

/* ---- checksum.c ---- */
void checksum_event(struct thread *th);
u64 checksum_memory(u64 *bytes);
u64 save_memory(struct thread *th);

/* ---- boot ---- */
NORETURN void rr_boot_record(u64 entry, u64 sp, u64 fd_base, u64 domain, u64 traps);
NORETURN void rr_boot_replay(u64 *stack);
void trap_instructions(void);   /* RDTSC and, where it can be, CPUID */
s32 trace_file(struct process *process, u32 file, u64 offset, u64 length, u64 how, u64 *at);
void read_cpuid(u32 leaf, u32 sub, u64 *out); /* what the recorded program gets: eax, ebx, ecx, edx */
void untrap_instructions(void);
void threads_forget_others(struct thread *self);
void control_create(u32 domain, u32 parent_pid);
void ring_create(u32 domain);
void ring_create_child(u32 domain, u32 parent, u32 parent_pid);
u64 ring_receive(u32 domain, u32 pid, int want_boot, int mapped);
s32 ring_ask(u32 domain, u32 pid);

#pragma GCC visibility pop

#endif
