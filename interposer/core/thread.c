/* thread.c - thread blocks: allocation, and making one the calling thread's own.
 *
 * Guarantees: after thread_become the GS base points at the block and every handler runs on the block's own
 * stack; after thread_dispatch_on every system call outside the core's text traps.
 */
#include "core.h"

_Static_assert(offsetof(struct thread, self) == TH_SELF, "core_offsets.h");
_Static_assert(offsetof(struct thread, pending) == TH_PENDING, "core_offsets.h");
_Static_assert(offsetof(struct thread, app_sp) == TH_APP_SP, "core_offsets.h");
_Static_assert(offsetof(struct thread, fast_sp) == TH_FAST_SP, "core_offsets.h");
_Static_assert(offsetof(struct thread, tail) == TH_TAIL, "core_offsets.h");
_Static_assert(offsetof(struct thread, gate_ip) == TH_GATE_IP, "core_offsets.h");
_Static_assert(offsetof(struct thread, late) == TH_LATE, "core_offsets.h");

static u32 blocks_made;
static struct process processes[64];
static volatile u32 allocating;

extern char __executable_start[];

static struct thread *block(u32 index) { return (struct thread *)(RR_THREADS + (u64)index * RR_THREAD_STRIDE); }

struct thread *thread_allocate(void) {
  struct thread *th = NULL;
  while (__atomic_exchange_n(&allocating, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
  for (u32 i = 0; i < blocks_made && !th; i++) {
    struct thread *old = block(i);
    if (old->in_use && !__atomic_load_n(&old->alive, __ATOMIC_ACQUIRE)) th = old;
  }
  if (!th && blocks_made < RR_MAX_THREADS) {
    th = block(blocks_made);
    s64 got = SYS6(RR_NR_mmap, th, RR_THREAD_STRIDE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (got == (s64)th)
      blocks_made++;
    else
      th = NULL;
  }
  if (th) {
    u64 scratch = th->scratch, scratch_size = th->scratch_size;
    clear_bytes(th, offsetof(struct thread, queue));
    th->scratch = scratch;
    th->scratch_size = scratch_size;
    th->self = th;
    th->fast_sp = THREAD_STACK_TOP(th) - THREAD_STACK_SIZE;
    th->in_use = 1;
    th->alive = 1;
  }
  __atomic_store_n(&allocating, 0, __ATOMIC_RELEASE);
  return th;
}

/* All live threads of this process may run where the mask says. */
void threads_affinity(const u64 *mask, u64 bytes) {
  for (u32 i = 0; i < blocks_made; i++) {
    struct thread *th = block(i);
    if (th->in_use && th->real_tid && __atomic_load_n(&th->alive, __ATOMIC_ACQUIRE))
      SYS3(RR_NR_sched_setaffinity, th->real_tid, bytes, mask);
  }
}

u32 threads_made(void) { return blocks_made; }

/* After a fork: only the calling thread's block is in use. */
void threads_forget_others(struct thread *self) {
  allocating = 0;
  for (u32 i = 0; i < blocks_made; i++)
    if (block(i) != self) block(i)->alive = 0;
  for (u32 i = 0; i < 64; i++)
    if (&processes[i] != self->process) processes[i].used = 0;
}

const struct thread *thread_by_tid(const struct thread *th, u32 tid) {
  for (u32 i = 0; i < blocks_made; i++) {
    const struct thread *of = block(i);
    if (of->in_use && of->alive && of->process == th->process && of->tid == tid) return of;
  }
  return NULL;
}

void threads_release_robust(struct thread *th) {
  for (u32 i = 0; i < blocks_made; i++) {
    const struct thread *of = block(i);
    if (of->in_use && of->alive && of->process == th->process) release_robust(th, of);
  }
}

/* Whether any thread of it lives. One that a vfork made is its parent's to let go of. */
static int process_lives(const struct process *process) {
  if (process->vforked) return 1;
  for (u32 i = 0; i < blocks_made; i++)
    if (block(i)->in_use && block(i)->process == process && __atomic_load_n(&block(i)->alive, __ATOMIC_ACQUIRE)) return 1;
  return 0;
}

struct process *process_allocate(void) {
  int full = 1;
  for (u32 i = 0; i < 64 && full; i++) full = processes[i].used;
  for (u32 i = 0; i < 64 && full; i++)
    if (!process_lives(&processes[i])) processes[i].used = 0;
  for (u32 i = 0; i < 64; i++)
    if (!__atomic_exchange_n(&processes[i].used, 1, __ATOMIC_ACQ_REL)) {
      clear_bytes((u8 *)&processes[i] + 4, sizeof processes[i] - 4);
      return &processes[i];
    }
  return NULL;
}

struct thread *thread_find(u32 tid) {
  for (u32 i = 0; i < blocks_made; i++)
    if (block(i)->in_use && block(i)->alive && block(i)->tid == tid) return block(i);
  return NULL;
}

void thread_become(struct thread *th) {
  struct stack_k stack = {.sp = THREAD_STACK_TOP(th) - THREAD_STACK_SIZE, .size = THREAD_STACK_SIZE};
  if (SYS2(RR_NR_arch_prctl, ARCH_SET_GS, th) < 0) fatal("the GS base cannot be set");
  SYS2(RR_NR_sigaltstack, &stack, NULL);
}

void thread_dispatch_on(void) {
  if (SYS5(RR_NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, 1, RR_TEXT, RR_DATA - RR_TEXT, 0) < 0)
    fatal("the kernel has no Syscall User Dispatch (Linux 5.11 or newer is needed)");
}
