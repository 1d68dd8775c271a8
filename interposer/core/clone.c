/* clone.c - a copy of a replaying process: a checkpoint, or what a debugger may spoil.
 *
 * Guarantees: the copy has its own ring, shared page and descriptors to the tool, and all threads of the original,
 * each going on waiting where that one does; the original is not changed.
 */
#include "core.h"
#include "debug.h"

static struct thread *thread_number(u32 index) { return (struct thread *)(RR_THREADS + (u64)index * RR_THREAD_STRIDE); }

static void map_shared(u64 address, u64 size, s32 fd) {
  if (SYS6(RR_NR_mmap, address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != (s64)address)
    fatal("the copy of the process cannot be given its log");
}

static void move_fd(s32 fd, u32 which) {
  if (fd == HIDDEN(which)) return;
  SYS3(RR_NR_dup3, fd, HIDDEN(which), 0);
  SYS1(RR_NR_close, fd);
}

struct shared_range { u64 addr, len, prot; };
static struct shared_range ranges[1024];

/* What the copy shares with the original becomes its own. */
static void make_private(u64 count) {
  for (u64 i = 0; i < count && i < 1024; i++) {
    struct shared_range *range = &ranges[i];
    s64 fresh = SYS6(RR_NR_mmap, 0, range->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh < 0 && fresh > -4096) fatal("no memory for a copy of the process");
    if (!(range->prot & PROT_READ)) SYS3(RR_NR_mprotect, range->addr, range->len, PROT_READ);
    for (u64 at = 0; at < range->len; at += PAGE) {
      const u64 *words = (const u64 *)(range->addr + at);
      u64 first, any = 0;
      if (rr_load64(&first, words)) continue; /* behind the end of a file */
      for (u32 k = 0; k < PAGE / 8; k++) any |= words[k];
      if (any) rr_copy((void *)((u64)fresh + at), words, PAGE);
    }
    SYS3(RR_NR_mprotect, fresh, range->len, range->prot);
    if (SYS5(RR_NR_mremap, fresh, range->len, range->len, MREMAP_MAYMOVE | MREMAP_FIXED, range->addr) != (s64)range->addr)
      fatal("shared memory of a copy of the process cannot be made its own");
  }
}

/* The copy's own ring, page, and descriptors; the tool answers on a new control socket. */
static void receive_own(struct thread *th) {
  s32 pair[2], fds[4] = {-1, -1, -1, -1};
  if (SYS4(RR_NR_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) fatal("no control socket");
  hide_control(pair[0]);
  struct rr_msg msg = {.type = RR_M_NEED_RING, .a = space.domain, .b = th->pid, .d = 2};
  if (channel_send(HIDDEN(RR_FD_HELLO), &msg, &pair[1], 1) < 0) fatal("the replayer is gone");
  SYS1(RR_NR_close, pair[1]);
  if (channel_receive(CONTROL, &msg, ranges, sizeof ranges, fds, 4) < 0 || msg.result || fds[3] < 0) SYS1(RR_NR_exit_group, 0);
  map_shared(RR_RING, RR_RING_SIZE, fds[0]);
  map_shared(RR_GLOBAL, RR_GLOBAL_SIZE, fds[1]);
  SYS1(RR_NR_close, fds[0]);
  move_fd(fds[1], RR_FD_GLOBAL);
  move_fd(fds[2], RR_FD_HELLO);
  move_fd(fds[3], RR_FD_COUNT - 1);
  make_private(msg.a);
}

static void tell_task(struct thread *th) {
  struct rr_msg msg = {.type = RR_M_TASK, .a = th->tid, .b = th->pid, .c = th->real_tid};
  channel_send(CONTROL, &msg, NULL, 0);
}

static int lives(struct thread *th) { return th->in_use && th->tid && __atomic_load_n(&th->alive, __ATOMIC_ACQUIRE); }

#define PATIENCE 3000000000ul

/* Until every other thread sleeps where a copy of it can go on. 0: one does not, or is of another process. */
static int all_wait(struct thread *self) {
  u64 began = now_coarse();
  for (u32 i = 0; i < threads_made(); i++) {
    struct thread *th = thread_number(i);
    if (th == self) continue;
    while (lives(th) && !__atomic_load_n(&th->waiting, __ATOMIC_ACQUIRE)) {
      if (now_coarse() - began > PATIENCE) return 0;
      SYS0(RR_NR_sched_yield);
    }
    if (lives(th) && th->process != self->process) return 0;
  }
  return 1;
}

static void make_threads(struct thread *self) {
  u64 flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_CHILD_CLEARTID;
  for (u32 i = 0; i < threads_made(); i++) {
    struct thread *th = thread_number(i);
    if (th == self || !lives(th)) continue;
    th->reviving = 1;
    u64 stack = (th->resume.rsp - 4096) & ~15ul;
    if (rr_clone(flags, stack, 0, (u64)&th->alive, th->fs_base, th) < 0) fatal("a thread of the copy cannot be made");
    while (__atomic_load_n(&th->reviving, __ATOMIC_ACQUIRE)) SYS0(RR_NR_sched_yield);
  }
}

/* In the new thread: go on where the original waits. */
NORETURN void revive(struct thread *th) {
  thread_become(th);
  th->real_tid = (u32)SYS0(RR_NR_gettid);
  set_real_mask(real_mask(~0ul));
  thread_dispatch_on();
  tell_task(th);
  __atomic_store_n(&th->reviving, 0, __ATOMIC_RELEASE);
  rr_revive(&th->resume);
}

/* Asked for by the tool while `th` is parked. */
void clone_process(struct thread *th) {
  if (!all_wait(th)) {
    DEBUG->reply = -1;
    return;
  }
  s64 made = rr_clone(CLONE_PARENT | SIGCHLD, 0, 0, 0, 0, NULL);
  if (made) {
    DEBUG->reply = (s32)made;
    return;
  }
  SYS0(RR_NR_setsid);
  SYS1(RR_NR_set_tid_address, &th->alive); /* this thread may end before the others */
  receive_own(th);
  th->real_tid = (u32)SYS0(RR_NR_gettid);
  make_threads(th);
  thread_dispatch_on();
  tell_task(th);
}
