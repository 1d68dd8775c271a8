/* replay.c - replaying one system call: compared with the next event of the log and answered from it.
 *
 * Guarantees: number, all six argument registers, caller and logged input bytes agree with the recording, or the
 * replay stops here and says so; nothing outside the process is touched.
 */
#include "core.h"
#include "debug.h"

static void compare(struct thread *th, const struct rr_event *event, u64 nr, const u64 *args, u64 ip) {
  struct rr_event found = {.task = th->tid, .kind = RR_K_SYSCALL, .nr = (u16)(nr < 65536 ? nr : 65535), .ip = ip};
  for (u32 i = 0; i < 6; i++) found.args[i] = args[i];
  if (event->task != th->tid) park(th, RR_DIV_KIND, &found);
  if (event->nr != found.nr) park(th, RR_DIV_CALL, &found);
  if (event->ip != ip) park(th, RR_DIV_IP, &found);
  for (u32 i = 0; i < 6; i++)
    if (event->args[i] != args[i]) park(th, RR_DIV_ARGS, &found);
  check_inputs(th, event, &found);
}

void replay_expect(struct thread *th, u32 kind) {
  struct rr_event *event = next_event(th);
  struct rr_event found = {.task = th->tid, .kind = (u8)kind};
  if (!event) park(th, RR_DIV_END, NULL);
  if (event->kind != kind || event->task != th->tid) park(th, RR_DIV_KIND, &found);
  consume(th);
}

void replay_release(struct thread *th, u64 nr, const u64 *args, u64 ip) {
  struct rr_event *event = next_event(th);
  compare(th, event, nr, args, ip);
  consume(th);
  pass_turn(th);
  wait_turn(th);
}

static void take_signal(struct thread *th, const struct rr_event *event) {
  struct siginfo_k info;
  const struct rr_region *region = find_region(event, RR_R_INFO);
  struct rr_event found = *event;
  u64 *regs = th->frame->uc.mc.regs;
  found.ip = regs[R_RIP];
  if (!region) park(th, RR_DIV_KIND, &found);
  if (event->ip != regs[R_RIP] || event->args[2] != regs[R_RSP]) park(th, RR_DIV_IP, &found);
  copy_bytes(&info, region + 1, sizeof info);
  u32 place = (u32)event->args[0];
  debug_signal(th, event->nr);
  advance();
  deliver(th, &info, place);
  consumed(th);
}

static void check_checksum(struct thread *th, const struct rr_event *event) {
  u64 bytes = 0, sum = GLOBAL->checksum_every ? checksum_memory(&bytes) : (u64)event->result;
  if (sum != (u64)event->result) {
    struct rr_event found = *event;
    found.result = (s64)sum;
    found.args[0] = bytes;
    park(th, RR_DIV_CHECKSUM, &found);
  }
  consume(th);
}

/* Goes past the events that stand before a call. Returns the call's first own, or NULL when a signal is delivered instead. */
struct rr_event *replay_before(struct thread *th, u64 nr, const u64 *args, u64 ip) {
  for (;;) {
    struct rr_event *event = next_event(th);
    struct rr_event found = {.task = th->tid, .kind = RR_K_SYSCALL, .nr = (u16)nr, .ip = ip};
    if (!event) park(th, RR_DIV_END, NULL);
    for (u32 i = 0; i < 6; i++) found.args[i] = args[i];
    if (event->task != th->tid) park(th, RR_DIV_KIND, &found);
    switch (event->kind) {
      case RR_K_TASK_EXIT: case RR_K_SYSCALL: case RR_K_RELEASE: case RR_K_EXECED: return event;
      case RR_K_DATA:
        check_inputs(th, event, &found);
        apply_outputs(th, event);
        consume(th);
        break;
      case RR_K_YIELD:
        consume(th);
        pass_turn(th);
        wait_turn(th);
        replay_expect(th, RR_K_RESUME);
        break;
      case RR_K_CHECKSUM: check_checksum(th, event); break;
      case RR_K_SIGNAL:
        if (event->args[0] != RR_SIG_ENTRY) park(th, RR_DIV_KIND, &found);
        th->frame->uc.mc.regs[R_RIP] = ip - 2;
        th->frame->uc.mc.regs[R_RAX] = nr;
        take_signal(th, event);
        return NULL;
      case RR_K_DEATH: {
        u32 sig = event->nr;
        apply_outputs(th, event);
        consume(th);
        die_of_signal(th, sig);
      }
      case RR_K_JOIN: replay_join(th); break;
      default: park(th, RR_DIV_KIND, &found);
    }
  }
}

/* The call's K_SYSCALL (or what stands for it), its K_RELEASE done; NULL when a signal is delivered instead. */
struct rr_event *replay_match(struct thread *th, u64 nr, const u64 *args, u64 ip) {
  for (;;) {
    struct rr_event *event = replay_before(th, nr, args, ip);
    if (!event || event->kind == RR_K_EXECED) return event;
    compare(th, event, nr, args, ip);
    if (event->kind != RR_K_RELEASE) return event;
    apply_outputs(th, event);
    consume(th);
    if (nr == RR_NR_execve || nr == RR_NR_execveat) continue;
    pass_turn(th);
    wait_turn(th);
  }
}

/* What comes between this call and the program's next instruction. */
void replay_after(struct thread *th) {
  for (;;) {
    struct rr_event *event = next_event(th);
    if (!event) park(th, RR_DIV_END, NULL);
    if (event->task != th->tid) return;
    if (event->kind == RR_K_SIGNAL && (event->args[0] == RR_SIG_EXIT || event->args[0] == RR_SIG_PREEMPT)) {
      take_signal(th, event);
    } else if (event->kind == RR_K_PREEMPT) {
      replay_preempt(th, event);
    } else if (event->kind == RR_K_DATA && event->result == RR_K_PREEMPT) {
      replay_state(th, event);
    } else if (event->kind == RR_K_DEATH) {
      if (event->args[0] == RR_SIG_ENTRY) return;
      u32 sig = event->nr;
      if ((BIT(sig) & (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGFPE))) && event->ip != th->frame->uc.mc.regs[R_RIP])
        return;
      apply_outputs(th, event);
      consume(th);
      die_of_signal(th, sig);
    } else {
      return;
    }
  }
}

static void answer(u64 *regs, u64 nr, u64 ip, s64 result) {
  if (result == RR_RESTART) {
    regs[R_RIP] = ip - 2;
    regs[R_RAX] = nr;
  } else {
    set_result(regs, result);
  }
}

void replay_call_all(struct thread *th, u64 nr, u64 *args, u64 ip) {
  u64 *regs = th->frame->uc.mc.regs;
  s64 result;
  switch (nr) {
    case RR_NR_clone: case RR_NR_fork: case RR_NR_vfork:
      result = replay_clone(th, nr, args, ip);
      if (result == RR_SIGNALLED) goto out;
      break;
    case RR_NR_execve: case RR_NR_execveat:
      result = replay_execve(th, nr, args, ip);
      if (result == RR_SIGNALLED) goto out;
      break;
    case RR_NR_exit: case RR_NR_exit_group: replay_exit(th, nr, args, ip);
    default: {
      struct rr_event *event = replay_match(th, nr, args, ip);
      if (!event) goto out;
      result = event->result;
      if (nr == RR_NR_rt_sigreturn) {
        advance();
        do_rt_sigreturn(th);
        consumed(th);
        goto out;
      }
      if (is_memory(nr))
        result = replay_memory(th, nr, args, event), debug_mapped();
      else if (is_virtual(nr, args) && !(event->flags & RR_EF_UNKNOWN))
        do_virtual(th, nr, args);
      else if (nr == RR_NR_prctl && args[0] == 15)
        SYS2(RR_NR_prctl, 15, args[1]);
      else if ((nr == RR_NR_setrlimit || nr == RR_NR_prlimit64) && result >= 0)
        replay_limit(th, nr, args);
      apply_outputs(th, event);
      if (event->flags & (RR_EF_ECHO_OUT | RR_EF_ECHO_ERR)) replay_output(th, event, args);
      if (result == -EINTR) th->suspended = (u32)mask_of_call(nr, args, &th->call_mask);
      answer(regs, nr, ip, result);
      consume(th);
      goto out;
    }
  }
  answer(regs, nr, ip, result);
out:
  replay_after(th);
  th->suspended = 0;
}
