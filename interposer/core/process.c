/* process.c - tasks come and go: clone, fork, vfork, execve, exit; recorded and replayed.
 *
 * Guarantees: a new task runs the core before any code of the program, on its own thread block; what the kernel
 * would write at a thread's start and end (tids, robust futexes) is written by the core under the baton, and
 * logged; a forked child gets a log of its own unless it shares writable memory with its parent.
 */
#include "core.h"
#include "debug.h"

void clone_request(struct clone_request *to, u64 nr, const u64 *args) {
  clear_bytes(to, sizeof *to);
  if (nr == RR_NR_fork) {
    to->flags = SIGCHLD;
  } else if (nr == RR_NR_vfork) {
    to->flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
  } else {
    to->flags = args[0];
    to->stack = args[1];
    to->ptid = args[2];
    to->ctid = args[3];
    to->tls = args[4];
  }
}

static u64 block_signals(void) {
  u64 all = ~(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGFPE) | BIT(SIGSYS)), old = 0;
  SYS4(RR_NR_rt_sigprocmask, 2, &all, &old, 8);
  return old;
}

/* A thread block for a child that shares this address space: the trap's frame is copied, so that the child returns
 * to the program by itself. */
static struct thread *prepare_child(struct thread *th, const struct clone_request *want) {
  struct thread *child = thread_allocate();
  if (!child) return NULL;
  child->mask = th->mask;
  child->altstack = want->flags & CLONE_VFORK || !(want->flags & CLONE_VM) ? th->altstack : (struct stack_k){.flags = SS_DISABLE};
  child->creator = th->tid;
  child->new_process = !(want->flags & CLONE_THREAD);
  child->vforked = (want->flags & CLONE_VFORK) != 0;
  child->process = th->process;
  if (child->new_process) {
    child->process = process_allocate();
    if (!child->process) {
      child->alive = 0;
      return NULL;
    }
    copy_bytes((u8 *)child->process + 4, (u8 *)th->process + 4, sizeof *child->process - 4);
    child->process->nthreads = 1;
    child->process->exiting = 0;
    if (want->flags & CLONE_FILES) child->process->kept_file = 0;
    child->process->execing = 0;
    child->process->pid = 0;
    child->process->guest = 1;
    child->process->vforked = child->vforked;
  }
  if (want->flags & CLONE_CHILD_CLEARTID) child->clear_tid = want->ctid;
  if (want->flags & CLONE_CHILD_SETTID) child->set_tid = want->ctid;
  struct sigframe *from = th->frame;
  u64 fpsize = from->uc.mc.fpstate ? fpstate_size((void *)from->uc.mc.fpstate) : 0;
  u64 fp = (THREAD_STACK_TOP(child) - fpsize) & ~63ul;
  struct sigframe *to = (struct sigframe *)(((fp - sizeof *to) & ~15ul) - 8);
  copy_bytes(to, from, sizeof *to);
  if (fpsize) {
    copy_bytes((void *)fp, (void *)from->uc.mc.fpstate, fpsize);
    to->uc.mc.fpstate = fp;
  }
  to->uc.mc.regs[R_RAX] = 0;
  if (want->stack) to->uc.mc.regs[R_RSP] = want->stack;
  child->frame = to;
  return child;
}

static u64 child_stack(struct thread *child) { return ((u64)child->frame - 512) & ~15ul; }

static void log_child(struct thread *th, const struct clone_request *want, s64 result, u32 domain) {
  u64 number = domain;
  if (result > 0 && want->flags & (CLONE_PARENT_SETTID | CLONE_PIDFD) && want->ptid) log_region(th, RR_R_OUT, 2, want->ptid, 4);
  if (result > 0) log_bytes(th, RR_R_DOMAIN, 255, 0, &number, 8);
}

#define KERNEL_FLAGS(flags) ((flags) & ~(CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID))

/* A vfork's child that neither ended nor executed anything before its parent went on was killed. (Its thread block may
 * be somebody else's by then; its process is its own until the parent lets go of it.) */
static int was_killed(const struct process *of) { return !of->exiting && !of->execing; }

static void forget_killed(const struct process *of) {
  u32 held = RING->baton;
  if (!was_killed(of)) return;
  __atomic_fetch_sub((u32 *)&RING->ntasks, of->nthreads, __ATOMIC_ACQ_REL);
  if (of->pid && (held & 0x7fffffff) == of->pid) {
    __atomic_compare_exchange_n(&((struct rr_ring *)RR_RING)->baton, &held, 0u, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (held & 0x80000000) futex_wake(&RING->baton, 0x7fffffff);
  }
}

static void log_killed(struct thread *th, const struct process *of) {
  if (!was_killed(of) || !of->pid) return;
  log_begin(th, RR_K_DEATH, SIGKILL, 0, (u64[6]){RR_SIG_ENTRY, 0, 0, 0, 0, 0});
  th->event.task = of->pid;
  log_commit(th, 0);
}

static s64 record_thread(struct thread *th, u64 nr, u64 *args, u64 ip, const struct clone_request *want) {
  int waits = (want->flags & CLONE_VFORK) != 0;
  struct thread *child = prepare_child(th, want);
  if (!child) return record_made(th, nr, args, ip, -EAGAIN);
  struct process *process = child->process;
  __atomic_fetch_add((u32 *)&RING->ntasks, 1, __ATOMIC_ACQ_REL);
  if (!child->new_process) th->process->nthreads++;
  if (waits) {
    log_begin(th, RR_K_RELEASE, (u32)nr, ip, args);
    log_commit(th, 0);
  }
  u64 old = block_signals();
  if (waits) baton_give(th);
  u64 flags = KERNEL_FLAGS(want->flags) | CLONE_CHILD_CLEARTID;
  s64 result = rr_clone(flags, child_stack(child), want->ptid, (u64)&child->alive, want->tls, child);
  if (result < 0) {
    __atomic_fetch_sub((u32 *)&RING->ntasks, 1, __ATOMIC_ACQ_REL);
    if (child->new_process)
      child->process->used = 0;
    else
      th->process->nthreads--;
    child->alive = 0;
  }
  if (waits) {
    u32 held = RING->baton;
    if (result > 0 && process->execing && (held & 0x7fffffff) == process->pid && !logging()) RING->baton = 0;
    if (result > 0) forget_killed(process);
    baton_take(th);
    if (result > 0) log_killed(th, process);
    if (result > 0) process->used = 0;
  }
  set_real_mask(old);
  log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
  if (waits) th->event.flags |= RR_EF_BLOCKED;
  log_child(th, want, result, space.domain);
  log_commit(th, result);
  return result;
}

static void begin_process(struct thread *th, const struct clone_request *want) {
  th->real_tid = (u32)SYS0(RR_NR_gettid);
  th->pending = 0;
  th->held = 0;
  th->robust_head = 0;
  th->timer = th->timer_armed = 0;
  th->clear_tid = want->flags & CLONE_CHILD_CLEARTID ? want->ctid : 0;
  th->set_tid = want->flags & CLONE_CHILD_SETTID ? want->ctid : 0;
  th->process->nthreads = 1;
  th->process->exiting = 0;
  th->process->execing = 0;
  space.shares_fds = (want->flags & CLONE_FILES) != 0;
  threads_forget_others(th);
  dirty_forget();
  thread_dispatch_on();
  if (want->stack) th->frame->uc.mc.regs[R_RSP] = want->stack;
}

static void write_set_tid(struct thread *th) {
  if (th->set_tid && !rr_copy((void *)th->set_tid, &th->tid, 4)) log_region(th, RR_R_OUT, 255, th->set_tid, 4);
  th->set_tid = 0;
}

static s64 record_fork(struct thread *th, u64 nr, u64 *args, u64 ip, const struct clone_request *want) {
  int same = space.writable_shared || GLOBAL->flags & RR_GF_ONE_DOMAIN;
  u32 domain = same ? space.domain : __atomic_fetch_add((u32 *)&GLOBAL->next_domain, 1, __ATOMIC_ACQ_REL);
  u32 parent_domain = space.domain, parent_pid = th->pid, parent_tid = th->tid;
  if (same) __atomic_fetch_add((u32 *)&RING->ntasks, 1, __ATOMIC_ACQ_REL);
  u64 old = block_signals();
  s64 result = rr_clone(KERNEL_FLAGS(want->flags) & ~CLONE_VFORK, 0, want->ptid, 0, want->tls, NULL);
  if (result == 0) {
    begin_process(th, want);
    th->process->guest = (u32)same;
    th->tid = th->real_tid;
    th->pid = (u32)SYS0(RR_NR_getpid);
    space.domain = domain;
    if (same) {
      control_create(domain, parent_pid);
      baton_take(th);
    } else {
      u32 recording = RING->state;
      ring_create_child(domain, parent_domain, parent_pid);
      if (recording != RR_RECORDING) stop_recording(RING->stop_reason);
    }
    th->time_in = now_coarse();
    log_begin(th, same ? RR_K_TASK_START : RR_K_FORK, (u32)nr, ip,
              (u64[6]){same ? parent_tid : parent_domain, same ? th->pid : parent_pid, same, 0, th->mask, 0});
    write_set_tid(th);
    log_commit(th, 0);
    set_real_mask(old);
    return 0;
  }
  if (result < 0 && same) __atomic_fetch_sub((u32 *)&RING->ntasks, 1, __ATOMIC_ACQ_REL);
  log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
  log_child(th, want, result, domain);
  log_commit(th, result);
  set_real_mask(old);
  return result;
}

s64 record_clone(struct thread *th, u64 nr, u64 *args, u64 ip) {
  struct clone_request want;
  clone_request(&want, nr, args);
  return want.flags & CLONE_VM ? record_thread(th, nr, args, ip, &want) : record_fork(th, nr, args, ip, &want);
}

/* A thread's, or a vfork child's, first moment: on its own stack, in C. */
NORETURN void rr_child(struct thread *th) {
  if (th->reviving) revive(th);
  thread_become(th);
  th->real_tid = (u32)SYS0(RR_NR_gettid);
  if (space.recording) {
    th->tid = th->real_tid;
    th->pid = (u32)SYS0(RR_NR_getpid);
    if (th->new_process) th->process->pid = th->pid;
    thread_dispatch_on();
    baton_take(th);
    th->time_in = now_coarse();
    log_begin(th, RR_K_TASK_START, 0, th->frame->uc.mc.regs[R_RIP],
              (u64[6]){th->creator, th->pid, th->new_process, th->vforked, th->mask, 0});
    write_set_tid(th);
    log_commit(th, 0);
    th->frame->uc.sigmask = real_mask(th->mask);
  } else {
    struct rr_msg msg = {.type = RR_M_TASK, .a = th->tid, .b = th->pid, .c = th->real_tid};
    channel_send(CONTROL, &msg, NULL, 0);
    thread_dispatch_on();
    wait_turn(th);
    struct rr_event *event = next_event(th);
    if (!event) park(th, RR_DIV_END, NULL);
    if (event->kind != RR_K_TASK_START || event->task != th->tid)
      park(th, RR_DIV_KIND, &(struct rr_event){.task = th->tid, .kind = RR_K_TASK_START});
    apply_outputs(th, event);
    consume(th);
    th->frame->uc.sigmask = real_mask(th->mask);
    replay_after(th);
    debug_started(th);
    debug_leave(th, th->frame->uc.mc.regs, 0);
  }
  th->frame->uc.mc.regs[R_RIP] = patch_resume(th->frame->uc.mc.regs[R_RIP]);
  rr_sigreturn_to(th->frame);
}

/* ---- replaying a clone: the task is made, everything it is told comes from the log ---- */

static s64 replay_thread(struct thread *th, u64 nr, u64 *args, u64 ip, const struct clone_request *want) {
  struct rr_event *event;
  struct thread *child = NULL;
  int waits = (want->flags & CLONE_VFORK) != 0;
  u64 flags = (want->flags & (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS)) |
              CLONE_CHILD_CLEARTID;
  if (!(want->flags & CLONE_THREAD)) flags |= CLONE_PARENT | SIGCHLD;
  if (waits) {
    event = replay_before(th, nr, args, ip);
    if (!event) return RR_SIGNALLED;
    if (event->kind == RR_K_RELEASE) {
      replay_release(th, nr, args, ip);
      event = next_event(th);
      if (event && event->kind == RR_K_TASK_START) {
        child = prepare_child(th, want);
        if (!child) fatal("too many threads to replay");
        child->tid = event->task;
        child->pid = (u32)event->args[1];
        if (rr_clone(flags, child_stack(child), 0, (u64)&child->alive, want->tls, child) < 0) fatal("a replayed child cannot be made");
        struct process *process = child->process;
        give_turn(child->tid);
        wait_turn(th);
        process->used = 0;
      }
    }
  }
  event = replay_match(th, nr, args, ip);
  if (!event) return RR_SIGNALLED;
  s64 result = event->result;
  if (result > 0 && !waits) {
    child = prepare_child(th, want);
    if (!child) fatal("too many threads to replay");
    child->tid = (u32)result;
    child->pid = child->new_process ? (u32)result : th->pid;
    if (rr_clone(flags, child_stack(child), 0, (u64)&child->alive, want->tls, child) < 0) fatal("a replayed thread cannot be made");
  }
  apply_outputs(th, event);
  consume(th);
  return result;
}

static s64 replay_fork(struct thread *th, u64 nr, u64 *args, u64 ip, const struct clone_request *want) {
  struct rr_event *event = replay_match(th, nr, args, ip);
  if (!event) return RR_SIGNALLED;
  s64 result = event->result;
  const struct rr_region *region = find_region(event, RR_R_DOMAIN);
  u32 domain = region ? (u32) * (const u64 *)(region + 1) : 0;
  int same = domain == space.domain;
  if (result <= 0) {
    consume(th);
    return result;
  }
  s64 made = rr_clone(CLONE_PARENT | SIGCHLD, 0, 0, 0, 0, NULL);
  if (made < 0) fatal("a replayed child cannot be made");
  if (made > 0) {
    apply_outputs(th, event);
    consume(th);
    return result;
  }
  begin_process(th, want);
  SYS1(RR_NR_set_tid_address, &th->alive);
  th->tid = th->pid = (u32)result;
  space.domain = domain;
  ring_receive(domain, th->pid, 0, same);
  if (same)
    wait_turn(th);
  event = next_event(th);
  if (!same) {
    if (event) th->tid = th->pid = event->task; /* its number in its own namespace */
    RING->owner = th->tid;
  }
  if (!event) park(th, RR_DIV_END, NULL);
  if (event->kind != (same ? RR_K_TASK_START : RR_K_FORK))
    park(th, RR_DIV_KIND, &(struct rr_event){.task = th->tid, .kind = RR_K_FORK});
  apply_outputs(th, event);
  consume(th);
  if (same) debug_started(th);
  return 0;
}

s64 replay_clone(struct thread *th, u64 nr, u64 *args, u64 ip) {
  struct clone_request want;
  clone_request(&want, nr, args);
  return want.flags & CLONE_VM ? replay_thread(th, nr, args, ip, &want) : replay_fork(th, nr, args, ip, &want);
}

/* ---- execve ---- */

/* What is queued goes back to the kernel, where it waits as long as signals are blocked. */
static void return_pending(struct thread *th) {
  for (u64 i = 0; i < th->pending; i++)
    SYS4(RR_NR_rt_tgsigqueueinfo, th->pid, th->real_tid, th->queue[i].signo, &th->queue[i]);
  th->pending = 0;
}

/* The error with which the call fails if no such file exists, else 0. Who searches PATH tries many names, and being
 * traced for each would take longer than all the rest: this answers as the kernel would have at this moment. */
static s64 no_such_program(u64 nr, const u64 *args) {
  struct stat_k s;
  s64 found = nr == RR_NR_execve ? SYS2(RR_NR_stat, args[0], &s) : 0;
  return found == -ENOENT || found == -ENOTDIR ? found : 0;
}

s64 record_execve(struct thread *th, u64 nr, u64 *args, u64 ip) {
  struct effects fx;
  s64 missing = no_such_program(nr, args);
  effects_of(&fx, nr, args);
  if (missing) {
    log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
    log_inputs(th, &fx, args);
    log_commit(th, missing);
    return missing;
  }
  u32 domain = __atomic_fetch_add((u32 *)&GLOBAL->next_domain, 1, __ATOMIC_ACQ_REL);
  log_begin(th, RR_K_RELEASE, (u32)nr, ip, args);
  log_inputs(th, &fx, args);
  log_commit(th, 0);
  log_flush_room(3);
  th->process->execing = th->tid;
  /* No signal may be taken from here on: the new image could not be told of it. The recorder gives the image the mask. */
  u64 mask = th->mask & real_mask(~0ul);
  block_signals();
  return_pending(th);
  struct rr_msg msg = {.type = RR_M_EXEC, .a = domain, .b = th->process->nthreads, .c = mask, .d = 1};
  s64 answer = logging() ? ask(&msg, NULL, 0, NULL, 0) : -1;
  int traced = answer == 0;
  if (answer == -ESRCH) stop_recording(RR_STOP_RECORDER);
  if (!traced) set_real_mask(mask);
  spin_end(th);
  untrap_instructions(); /* whether the new image will have a core to answer is not known yet */
  s64 result = sys6((s64)nr, args[0], args[1], args[2], args[3], args[4], args[5]);
  trap_instructions();
  if (traced) {
    msg = (struct rr_msg){.type = RR_M_EXEC_FAILED, .result = (s32)result};
    ask(&msg, NULL, 0, NULL, 0);
  }
  set_real_mask(real_mask(th->mask));
  th->process->execing = 0;
  log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
  th->event.flags |= RR_EF_BLOCKED;
  log_commit(th, result);
  return result;
}

static char *decimal(char *end, u64 value) {
  *--end = 0;
  return decimal_before(end, value);
}

s64 replay_execve(struct thread *th, u64 nr, u64 *args, u64 ip) {
  struct rr_event *event = replay_match(th, nr, args, ip);
  if (!event) return RR_SIGNALLED;
  if (event->kind != RR_K_EXECED) {
    s64 result = event->result;
    consume(th);
    return result;
  }
  char base[24], domain[24];
  const char *argv[] = {"rr_core", decimal(base + 24, space.fd_base), decimal(domain + 24, event->args[0]), NULL};
  const char *envp[] = {NULL};
  consume(th);
  pass_turn(th);
  SYS5(RR_NR_execveat, HIDDEN(RR_FD_IMAGE), "", argv, envp, 0x1000);
  fatal("the core cannot be executed again");
}

/* ---- the end of a thread or a process ---- */

static void forward_pending(struct thread *th) {
  for (u64 i = 0; i < th->pending; i++)
    SYS3(RR_NR_rt_sigqueueinfo, th->pid, th->queue[i].signo, &th->queue[i]);
  th->pending = 0;
}

NORETURN void record_exit(struct thread *th, u64 nr, u64 *args, u64 ip) {
  u32 zero = 0;
  int whole = nr == RR_NR_exit_group || th->process->nthreads == 1;
  log_begin(th, nr == RR_NR_exit_group ? RR_K_SYSCALL : RR_K_TASK_EXIT, (u32)nr, ip, args);
  if (nr == RR_NR_exit_group)
    threads_release_robust(th);
  else
    release_robust(th, th);
  th->robust_head = 0;
  u64 word = nr == RR_NR_exit ? th->clear_tid : 0;
  if (word && !rr_copy((void *)word, &zero, 4)) log_region(th, RR_R_OUT, 255, word, 4);
  log_commit(th, (s64)args[0]);
  block_signals();
  spin_end(th);
  if (!whole) forward_pending(th);
  if (word) futex_wake((volatile u32 *)word, 1);
  u32 ending = nr == RR_NR_exit_group ? th->process->nthreads : 1;
  if (whole) {
    th->process->exiting = th->tid;
    if (!th->process->guest) {
      RING->exit_code = (u32)args[0];
      RING->exited = 1;
    }
  }
  if (!whole) th->process->nthreads--;
  __atomic_fetch_sub((u32 *)&RING->ntasks, ending, __ATOMIC_ACQ_REL);
  baton_give(th);
  if (nr == RR_NR_exit) rr_exit_thread(args[0]);
  for (;;) SYS1(RR_NR_exit_group, args[0]);
}

NORETURN void replay_exit(struct thread *th, u64 nr, u64 *args, u64 ip) {
  struct rr_event *event = replay_match(th, nr, args, ip);
  if (!event) {
    replay_after(th);
    debug_leave(th, th->frame->uc.mc.regs, 0);
    rr_sigreturn_to(th->frame);
  }
  apply_outputs(th, event);
  consume(th);
  if (nr == RR_NR_exit) {
    th->tid = 0; /* no debugger shows it any more, though the kernel takes a moment to end it */
    pass_turn(th);
    rr_exit_thread(args[0]);
  }
  pass_turn(th);
  for (;;) SYS1(RR_NR_exit_group, args[0]);
}
