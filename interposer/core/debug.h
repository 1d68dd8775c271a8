/* debug.h - what a debugger asks of a replaying process, in the ring's control area behind struct rr_ring.
 *
 * Guarantees: the layouts are those of replayer/debugring.py (tests/debug/test_debugring.py compares). The tool
 * writes while a task is parked, the core while none is; `request` and `reply` hand over in between.
 */
#ifndef RR_DEBUG_H
#define RR_DEBUG_H

#define RR_DEBUG_OFF 0x8000u
#define RR_BREAKPOINTS 1024u
#define RR_WATCHES 4u

enum rr_park { /* why a task is parked */
  RR_P_EVENT = 0, /* the event the ring was to stop at */
  RR_P_BREAK = 1, /* a breakpoint is at its pc */
  RR_P_STEP = 2,  /* the steps asked for are done */
  RR_P_WATCH = 3, /* the instruction before its pc has touched a watched place */
  RR_P_CALL_WATCH = 4, /* what the core wrote for the event before has */
  RR_P_TASK = 5,  /* a new thread, before its first instruction: it has no watchpoints yet */
  RR_P_FAULT = 6, /* diverted: a signal that the call would die of */
  RR_P_POKED = 7, /* interrupted where it was */
  RR_P_CALL = 8,  /* diverted: a call that cannot be made there */
  RR_P_SIGNAL = 9, /* a recorded signal is about to be delivered to a handler */
};

enum rr_request {
  RR_Q_NONE = 0,
  RR_Q_CLONE = 1,
  RR_Q_MAP = 2,   /* a page for code of the tool at request_addr; reply: 0, or an error */
  RR_Q_UNMAP = 3, /* and away with it */
};

struct rr_breakpoint {
  u64 addr;     /* sorted by it */
  u8 byte;      /* what the program has there, while inserted */
  u8 inserted;
  u8 soft;      /* arrivals are counted, in soft_hits, and never park the task */
  u8 pad[5];
};

struct rr_watch {
  u64 addr;
  u32 len;  /* 0: none; 1, 2, 4 or 8 */
  u32 kind; /* 1: only writes that change it count; 2: any access */
  u64 value;
};

struct rr_debug {
  u32 enabled;  /* a debugger is there */
  u32 reason;   /* enum rr_park, while a task is parked */
  u64 steps;    /* single steps of task step_tid before it is parked; 0: none */
  u32 step_tid;
  u32 pass;     /* the parked task goes on over the breakpoint at its pc */
  u64 range_start, range_end; /* while stepping: go on inside */
  u64 skip;     /* hits to pass over */
  u64 hits;     /* hits since the tool set it to 0; parks and passed ones */
  u64 hits_event, hits_in_event; /* event_count at the last hit, and hits since it has that value */
  u64 stepped;  /* steps since the tool set it to 0 */
  u32 core_watch; /* a watched place was touched by the core */
  u32 diverted; /* a call made by the debugger: the log is not followed */
  u32 request;  /* enum rr_request */
  s32 reply;
  u32 signal;   /* RR_P_FAULT, RR_P_SIGNAL: which; RR_P_CALL: number of the call */
  u32 nbreak;
  struct rr_watch watches[RR_WATCHES];
  u64 stepped_event, stepped_in_event; /* event_count at the last step, and steps behind it */
  u64 soft_hits;
  u64 stop_signals; /* bit n - 1: the delivery of signal n is a hit */
  u64 request_addr;
  u64 reserved[3];
  struct rr_breakpoint breaks[RR_BREAKPOINTS];
};
_Static_assert(RR_DEBUG_OFF + sizeof(struct rr_debug) <= RR_RING_CTL, "debug area");
_Static_assert(sizeof(struct rr_ring) <= RR_DEBUG_OFF, "ring control and debug area");

#define DEBUG ((volatile struct rr_debug *)(RR_RING + RR_DEBUG_OFF))
static inline int debugging(void) { return !space.recording && DEBUG->enabled; }

void park_for(struct thread *th, u32 reason); /* cursor.c: parks the task until the tool lets it go on */

/* ---- debug.c ---- */
int debug_trap(struct thread *th, struct siginfo_k *info, struct ucontext_k *uc); /* 1: SIGTRAP was the debugger's */
u32 debug_enter(struct thread *th, u64 *regs);              /* the core is entered: 1 if by a step */
void debug_leave(struct thread *th, u64 *regs, u32 stepped); /* control goes back to the program */
void debug_mapped(void);                                     /* mappings have changed */
void debug_event(void);                                      /* an event has happened */
void debug_started(struct thread *th);                       /* a new thread is about to run */
int debug_diverted(struct thread *th, u64 nr, u64 *args);    /* 1: the call was answered without the log */
void debug_request(struct thread *th); /* the tool asks something of the parked task */
void debug_core_watch(struct thread *th); /* the core has touched a watched place */
void debug_parked(void);
void debug_poked(struct thread *th, struct ucontext_k *uc);
void debug_signal(struct thread *th, u32 sig); /* a recorded signal comes next */
int debug_fault(struct thread *th, int sig);                 /* 1: a fault in a diverted call was parked */

/* ---- clone.c ---- */
__attribute__((returns_twice)) int rr_remember(struct resume_point *point); /* 0; 1 in a copy that is revived */
NORETURN void rr_revive(struct resume_point *point);
void clone_process(struct thread *th);
NORETURN void revive(struct thread *th);

#endif
