/* record.c - recording one system call: made for real, its effects logged.
 *
 * Guarantees: the event holds every byte the kernel wrote to the program's memory; a call that may wait lets the
 * other tasks of the domain run meanwhile and writes the program's memory only when it is this task's turn again;
 * what is not known is answered ENOSYS or ENOTTY and reported, never guessed.
 */
#include "core.h"

static int contains(const char *text, const char *part) {
  for (; *text; text++) {
    u32 n = 0;
    while (part[n] && text[n] == part[n]) n++;
    if (!part[n]) return 1;
  }
  return 0;
}

/* Copies of signal masks given to the kernel, without the core's own signals. */
struct masks { u64 mask, pair[2]; };

static void clean_masks(u64 nr, const u64 *args, u64 *kernel_args, struct masks *m) {
  u32 at;
  switch (nr) {
    case RR_NR_rt_sigsuspend: case RR_NR_rt_sigtimedwait: at = 0; break;
    case RR_NR_signalfd: case RR_NR_signalfd4: at = 1; break;
    case RR_NR_ppoll: at = 3; break;
    case RR_NR_epoll_pwait: case RR_NR_epoll_pwait2: at = 4; break;
    case RR_NR_pselect6:
      if (!args[5] || rr_copy(m->pair, (void *)args[5], 16) || !m->pair[0]) return;
      if (rr_copy(&m->mask, (void *)m->pair[0], 8)) return;
      m->mask = real_mask(m->mask);
      m->pair[0] = (u64)&m->mask;
      kernel_args[5] = (u64)m->pair;
      return;
    default: return;
  }
  if (!args[at] || rr_copy(&m->mask, (void *)args[at], 8)) return;
  m->mask = real_mask(m->mask);
  kernel_args[at] = (u64)&m->mask;
}

/* Addresses are not randomised while recording. Whether the program asked for that itself, as some do before they
 * execute themselves again, is kept in a bit without a meaning on x86, which execve and fork hand on as that one. */
#define ADDR_NO_RANDOMIZE 0x40000ul
#define ASKED_FOR 0x80000ul

static u64 made_personality(u64 asked) {
  if ((u32)asked == 0xffffffff) return asked;
  u64 kept = (u64)SYS1(RR_NR_personality, 0xffffffff) & ADDR_NO_RANDOMIZE;
  return (asked & ~ASKED_FOR) | kept | (asked & ADDR_NO_RANDOMIZE ? ASKED_FOR : 0);
}

static s64 shown_personality(s64 real) {
  return (real & ~(s64)(ADDR_NO_RANDOMIZE | ASKED_FOR)) | (real & ASKED_FOR ? ADDR_NO_RANDOMIZE : 0);
}

static void report_once(u32 what, u64 nr, const u64 *args) {
  if (what == RR_REP_UNKNOWN_IOCTL) {
    report(what, args[rr_calls[nr].sub_arg], nr, 0);
    return;
  }
  if (nr < 512) {
    if (space.reported_calls[nr / 32] & (1u << (nr % 32))) return;
    space.reported_calls[nr / 32] |= 1u << (nr % 32);
  }
  report(what, nr, nr < RR_NCALLS && rr_calls[nr].sub ? (u32)args[1] | args[2] << 32 : 0, 0);
}

s64 record_made(struct thread *th, u64 nr, const u64 *args, u64 ip, s64 result) {
  log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
  log_commit(th, result);
  return result;
}

static s64 refuse(struct thread *th, u64 nr, const u64 *args, u64 ip, s64 result, u32 what) {
  if (what) report_once(what, nr, args);
  log_begin(th, RR_K_SYSCALL, nr < 65536 ? (u32)nr : 65535, ip, args);
  th->event.flags |= RR_EF_UNKNOWN;
  log_commit(th, result);
  return result;
}

static int names_hidden_fd(const struct effects *fx, const u64 *args) {
  u32 mask = fx->flags >> RR_CF_FDS_SHIFT;
  for (u32 i = 0; i < 6; i++)
    if (mask & (1u << i) && hidden_fd(args[i])) return 1;
  return 0;
}

/* Whether this call makes the memory that a client of PulseAudio, or its server, shares with the other side. */
static int pulse_memory(u64 nr, const u64 *args) {
  char name[24];
  u64 at = nr == RR_NR_openat ? args[1] : args[0];
  if (nr == RR_NR_openat && !(args[2] & O_CREAT)) return 0;
  if (nr != RR_NR_openat && nr != RR_NR_memfd_create) return 0;
  const char *wanted = nr == RR_NR_openat ? "/dev/shm/pulse-shm-" : "pulseaudio";
  u32 length = 0, whole = nr == RR_NR_memfd_create;
  while (wanted[length]) length++;
  if (rr_copy(name, (void *)at, length + whole)) return 0;
  for (u32 i = 0; i < length + whole; i++)
    if (name[i] != wanted[i]) return 0;
  return 1;
}

/* Memory that a process outside the recording would write is refused where its user has another way: a client of an X
 * server that gets no System V segment sends its pictures through the socket, one that cannot reach nscd asks for
 * itself, and PulseAudio without memory to share sends the sound through its socket. The error, or 0. */
static s64 shared_outside(u64 nr, const u64 *args) {
  char path[112] = {0};
  if (nr == RR_NR_memfd_create || nr == RR_NR_openat) {
    if (!pulse_memory(nr, args)) return 0;
    report(RR_REP_SHARED_OUTSIDE, RR_NR_memfd_create, 0, 0);
    return nr == RR_NR_openat ? -EACCES : -ENOSYS;
  }
  if (nr == RR_NR_shmget && space.display_client && args[0] == 0) {
    report(RR_REP_SHARED_OUTSIDE, nr, 0, 0);
    return -ENOSYS;
  }
  if (nr != RR_NR_connect || args[2] < 4 || args[2] > 110 || rr_copy(path, (void *)args[1], args[2])) return 0;
  if (*(u16 *)path != AF_UNIX) return 0;
  const char *name = path + 2 + !path[2];
  if (contains(name, ".X11-unix/X")) space.display_client = 1;
  if (!contains(name, "/nscd/socket") || SYS3(RR_NR_faccessat, -100, name, 0) < 0) return 0; /* not running: nothing to say */
  report(RR_REP_SHARED_OUTSIDE, nr, 0, 0);
  return -111; /* ECONNREFUSED */
}

/* Of process_madvise's advice, that which changes what memory holds; kernels before 6.13 know none of it. */
static int discards(u64 advice) { return advice == 4 || advice == 8 || advice == 9 || advice == 24; }

/* Whether this call, of those that may wait in general, can do so now. */
static int can_wait(struct thread *th, u64 nr, const u64 *args, const struct effects *fx) {
  switch (nr) {
    case RR_NR_epoll_wait: case RR_NR_epoll_pwait: return (s32)args[3] != 0;
    case RR_NR_poll: return (s32)args[2] != 0;
    case RR_NR_recvfrom: case RR_NR_sendto: if (args[3] & MSG_DONTWAIT) return 0; break;
    case RR_NR_recvmsg: case RR_NR_sendmsg: if (args[2] & MSG_DONTWAIT) return 0; break;
    case RR_NR_wait4: return !(args[2] & 1);
    case RR_NR_waitid: return !(args[3] & 1);
    case RR_NR_mq_timedsend: case RR_NR_mq_timedreceive: return 1; /* a queue looks like a file, which never waits */
    case RR_NR_open: case RR_NR_openat: case RR_NR_openat2: case RR_NR_creat: return 1; /* of a fifo */
    default: break;
  }
  if (fx->flags & RR_CF_PATH) return 0;
  return fx->block == RR_BLK_WAIT || !(fx->flags & RR_CF_FD) || fd_waits(th, args[0]);
}

/* Whether this output is taken at once: a pipe or terminal that is ready takes a page without waiting. Then the
 * baton is kept, so that nothing, not even the end of the process, comes between the output and its event. */
static int written_at_once(u64 nr, const u64 *args) {
  struct pollfd_k ready = {(s32)args[0], 4, 0};
  u64 bytes = args[2];
  if (nr == RR_NR_writev) {
    bytes = 0;
    for (u64 i = 0; i < args[2] && bytes <= PAGE; i++) {
      struct iovec v;
      if (i == 16 || rr_copy(&v, (void *)(args[1] + i * sizeof v), sizeof v)) return 0;
      bytes += v.len;
    }
  } else if (nr != RR_NR_write) {
    return 0;
  }
  return bytes <= PAGE && SYS3(RR_NR_poll, &ready, 1, 0) == 1 && ready.revents & 4;
}

/* A poll that finds something at once need not give up the baton. RR_RESTART: it would wait. */
static s64 poll_once(u64 nr, const u64 *args) {
  u64 now[6];
  for (u32 i = 0; i < 6; i++) now[i] = args[i];
  if (nr == RR_NR_epoll_wait || (nr == RR_NR_epoll_pwait && !args[4]))
    now[3] = 0;
  else
    return RR_RESTART;
  s64 result = sys6((s64)nr, now[0], now[1], now[2], now[3], now[4], now[5]);
  return result ? result : RR_RESTART;
}

static s32 transfer_target(u64 nr, const u64 *args) {
  switch (nr) {
    case RR_NR_sendfile: case RR_NR_vmsplice: return (s32)args[0];
    case RR_NR_tee: return (s32)args[1];
    default: return (s32)args[2];
  }
}

/* Output is numbered across the whole recording; the lock keeps number and effect together. */
static void output_lock(struct thread *th) { shared_lock(th, &GLOBAL->output_lock); }
static void output_unlock(struct thread *th) { shared_unlock(th, &GLOBAL->output_lock); }

int holds_up(struct thread *th) { return !alone() && (RING->baton & 0x7fffffff) == th->real_tid; }

static s64 make(struct thread *th, u64 nr, const u64 *args, u32 block, int *killed) {
  s64 result;
  int owned = nr == RR_NR_futex && waits_for_owner(args);
  if (block == RR_BLK_NEVER) return sys6((s64)nr, args[0], args[1], args[2], args[3], args[4], args[5]);
  do {
    th->poked = 0;
    result = owned ? wait_owned(th, args, killed) : rr_call_interruptible((s64)nr, args);
  } while (result == -EINTR && th->poked && !th->pending && !holds_up(th));
  return result;
}

static s64 record_once(struct thread *th, u64 nr, u64 *args, u64 ip, int *again) {
  struct effects fx;
  struct masks masks;
  u64 lengths[16], kernel_args[6], area = 0, seq = 0, time_out = 0;
  s64 result;
  int killed = 0;
  effects_of(&fx, nr, args);
  if (fx.treat == RR_T_UNKNOWN) return refuse(th, nr, args, ip, -ENOSYS, RR_REP_UNKNOWN_CALL);
  if (fx.treat == RR_T_REFUSE) return refuse(th, nr, args, ip, -ENOSYS, nr == RR_NR_rseq || nr == RR_NR_clone3 ? 0 : RR_REP_REFUSED);
  if (fx.unknown) return refuse(th, nr, args, ip, nr == RR_NR_ioctl ? -ENOTTY : -EINVAL, RR_REP_UNKNOWN_IOCTL);
  if (names_hidden_fd(&fx, args) || (nr == RR_NR_pidfd_getfd && hidden_fd(args[1]))) return refuse(th, nr, args, ip, -EBADF, 0);
  if (nr == RR_NR_process_madvise && discards(args[3])) return refuse(th, nr, args, ip, -EINVAL, 0);
  if (nr == RR_NR_shmget || nr == RR_NR_connect || nr == RR_NR_memfd_create || (nr == RR_NR_openat && args[2] & O_CREAT)) {
    result = shared_outside(nr, args);
    if (result) return refuse(th, nr, args, ip, result, 0);
  }
  if (nr == RR_NR_rt_sigtimedwait && (result = held_take(th, args))) {
    log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
    log_inputs(th, &fx, args);
    log_outputs(th, &fx, args, result, lengths);
    log_commit(th, result);
    return result;
  }
  u32 class = fx.flags & RR_CF_ECHO ? fd_class(th, args[0]) : FD_OTHER;
  int carries = 0;
  if (fx.flags & RR_CF_XFER) {
    class = fd_class(th, (u64)transfer_target(nr, args));
    carries = class == FD_OUT || class == FD_ERR;
    if (carries && !can_carry(nr, args)) return refuse(th, nr, args, ip, -EINVAL, 0);
  }
  if (writes_foreign_memory(th, nr, args, class)) return refuse(th, nr, args, ip, -EPERM, RR_REP_FOREIGN_WRITE);
  int echo = class == FD_OUT || class == FD_ERR;
  int release = fx.block != RR_BLK_NEVER && !alone() && can_wait(th, nr, args, &fx);
  if (release && echo && written_at_once(nr, args)) release = 0;
  for (u32 i = 0; i < 6; i++) kernel_args[i] = args[i];
  if (fx.flags & RR_CF_MASK) clean_masks(nr, args, kernel_args, &masks);
  if (nr == RR_NR_personality) kernel_args[0] = made_personality(args[0]);
  if (nr == RR_NR_sched_getaffinity || nr == RR_NR_sched_setaffinity) spread_out(1);
  save_lengths(&fx, args, lengths);
  s64 polled = release ? poll_once(nr, args) : RR_RESTART;
  if (polled != RR_RESTART) release = 0;
  int precise = fx.block == RR_BLK_WAIT && polled == RR_RESTART;
  if (precise) th->time_in = now_precise();
  log_begin(th, release ? RR_K_RELEASE : RR_K_SYSCALL, (u32)nr, ip, args);
  log_inputs(th, &fx, args);
  if (release) {
    log_commit(th, 0);
    if (scratch_redirect(th, &fx, kernel_args, &area)) lengths[15] = area;
    baton_give(th);
  }
  s64 carried = carries ? carry_in(th, nr, kernel_args) : 0;
  if (echo) output_lock(th);
  result = carries ? carry_out(th, nr, kernel_args, carried) : polled != RR_RESTART ? polled : make(th, nr, kernel_args, fx.block, &killed);
  if (!release && polled == RR_RESTART && th->poked && !th->pending && (result == -EINTR || result == RR_RESTART) && holds_up(th)) {
    if (echo) output_unlock(th);
    log_abandon(th);
    *again = 1;
    return result;
  }
  if (echo) {
    if (result > 0) seq = GLOBAL->output_seq++;
    output_unlock(th);
  }
  if (precise) time_out = now_precise();
  if (release) {
    baton_take(th);
    if (area) result = scratch_return(th, &fx, args, kernel_args, result, lengths);
    log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
    th->event.flags |= RR_EF_BLOCKED;
  }
  if (result == -EINTR && fx.flags & RR_CF_MASK) th->suspended = (u32)mask_of_call(nr, args, &th->call_mask);
  if (killed) take_from_killed(th, args);
  s64 written = result;
  if (nr == RR_NR_getdents64 && result > 0) result = hide_in_directory(args[0], (u8 *)args[1], result);
  if (nr == RR_NR_rt_sigpending && result >= 0 && th->held && !rr_load64(&seq, (void *)args[0])) {
    seq |= th->held;
    rr_copy((void *)args[0], &seq, 8);
  }
  if (nr == RR_NR_personality && result >= 0) result = shown_personality(result);
  th->event.time_out = precise ? time_out : now_coarse();
  if (precise) th->event.flags |= RR_EF_PRECISE;
  if (result != RR_RESTART) log_outputs(th, &fx, args, result, lengths);
  if (written > result && result >= 0) log_region(th, RR_R_OUT, 1, args[1] + (u64)result, (u64)(written - result));
  if (echo && result > 0) {
    th->event.flags |= class == FD_OUT ? RR_EF_ECHO_OUT : RR_EF_ECHO_ERR;
    if (carries && nr != RR_NR_vmsplice)
      log_carried(th, seq, result);
    else
      log_bytes(th, RR_R_SEQ, 255, 0, &seq, 8);
  }
  if (nr == RR_NR_process_vm_writev || class == FD_MEMORY) log_memory_writes(th, nr, args, result, class);
  if (GLOBAL->mapped_generation && result >= 0) log_file_writes(th, nr, args, result);
  log_commit(th, result);
  if ((nr == RR_NR_fcntl && args[1] == 4) || (nr == RR_NR_ioctl && args[1] == 0x5421)) fd_modes_changed(th); /* F_SETFL, FIONBIO */
  if (nr == RR_NR_close)
    fd_changed(th, args[0]);
  else if ((nr == RR_NR_dup2 || nr == RR_NR_dup3) && result >= 0)
    fd_changed(th, args[1]);
  else if (fx.flags & RR_CF_NEWFD && result >= 0)
    fd_changed(th, (u64)result);
  if (GLOBAL->writes != space.writes_seen) log_writes_of_others(th, nr, ip);
  return result;
}

s64 record_plain(struct thread *th, u64 nr, u64 *args, u64 ip) {
  s64 result;
  int again;
  do {
    again = 0;
    result = record_once(th, nr, args, ip, &again);
  } while (again);
  return result;
}

#define LARGE_NS 20000000ul

/* Every so many events; where memory is so large that this takes long, no more than a quarter of the time. */
static void maybe_checksum(struct thread *th) {
  static u64 last, ended, took;
  if (!RING->checksum_every || RING->event_count - last < RING->checksum_every) return;
  u64 began = now_precise();
  if (took > LARGE_NS && began - ended < 3 * took) return;
  last = RING->event_count;
  checksum_event(th);
  ended = now_precise();
  took = ended - began;
}

void record_call(struct thread *th, u64 nr, u64 *args, u64 ip) {
  u64 *regs = th->frame->uc.mc.regs;
  s64 result;
  if (th->pending) {
    regs[R_RIP] = ip - 2;
    regs[R_RAX] = nr;
    if (deliver_pending(th, RR_SIG_ENTRY)) return;
    regs[R_RIP] = ip;
  }
  if (!alone()) baton_fair(th, ip);
  maybe_checksum(th);
  switch (nr) {
    case RR_NR_clone: case RR_NR_fork: case RR_NR_vfork:
      if (nr != RR_NR_clone || !(args[0] & CLONE_THREAD)) spread_out(0);
      result = record_clone(th, nr, args, ip);
      break;
    case RR_NR_clone3: result = refuse(th, nr, args, ip, -ENOSYS, 0); break;
    case RR_NR_execve: case RR_NR_execveat:
      spread_out(0);
      result = record_execve(th, nr, args, ip);
      break;
    case RR_NR_exit: case RR_NR_exit_group: record_exit(th, nr, args, ip);
    case RR_NR_rt_sigreturn:
      record_made(th, nr, args, ip, 0);
      do_rt_sigreturn(th);
      return;
    case RR_NR_close_range: result = record_made(th, nr, args, ip, do_close_range(th, args)); break;
    default:
      if (nr == RR_NR_futex && is_pi_futex(args)) {
        result = record_pi_futex(th, args, ip);
      } else if (is_memory(nr)) {
        result = record_memory(th, nr, args, ip);
      } else if (is_virtual(nr, args)) {
        struct effects fx;
        u64 lengths[16];
        effects_of(&fx, nr, args);
        save_lengths(&fx, args, lengths);
        log_begin(th, RR_K_SYSCALL, (u32)nr, ip, args);
        log_inputs(th, &fx, args);
        result = do_virtual(th, nr, args);
        log_outputs(th, &fx, args, result, lengths);
        log_commit(th, result);
      } else {
        result = record_plain(th, nr, args, ip);
      }
  }
  if (result == RR_RESTART) {
    regs[R_RIP] = ip - 2;
    regs[R_RAX] = nr;
  } else {
    set_result(regs, result);
  }
}
