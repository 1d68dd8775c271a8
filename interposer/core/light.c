/* light.c - recording the calls that a busy program makes most: one buffer of a file is read or written, or its place asked.
 *
 * Guarantees: the event is the one that record_plain would make. Whatever is not quite ordinary (a mapped file, a long buffer, a
 * descriptor not seen before, one that may make the task wait while there are others) is left to that.
 */
#include "core.h"

#define BUFFER_MAX 8192u /* with its region it fits into RR_SHORT_MAX */
#define IN_MAX 64u       /* as IN_BULK in effects.c */

static int is_write(u64 nr) { return nr == RR_NR_write || nr == RR_NR_pwrite64; }

static int ordinary(struct thread *th, u64 nr, const u64 *args) {
  u64 fd = args[0];
  if (fd >= FD_CACHE || hidden_fd(fd) || GLOBAL->writes != space.writes_seen) return 0;
  if (nr == RR_NR_lseek) return 1;
  if (!alone() && th->process->fd_waits[fd] != 2) return 0;
  if (nr == RR_NR_read || nr == RR_NR_pread64) return args[2] <= BUFFER_MAX;
  u8 class = th->process->fd_class[fd];
  return is_write(nr) && (class == FD_OTHER || class == FD_OUT || class == FD_ERR) &&
         (!GLOBAL->mapped_generation || th->process->unmapped[fd] == GLOBAL->mapped_generation);
}

/* As record_plain does. `again`: the result is none, the call is to be made in full. */
static s64 make(struct thread *th, u64 nr, const u64 *args, int *again) {
  s64 result;
  if (nr == RR_NR_lseek) return sys6((s64)nr, args[0], args[1], args[2], args[3], args[4], args[5]);
  do {
    th->poked = 0;
    result = rr_call_interruptible((s64)nr, args);
  } while (result == -EINTR && th->poked && !th->pending && !holds_up(th));
  *again = th->poked && !th->pending && (result == -EINTR || result == RR_RESTART) && holds_up(th);
  return result;
}

/* 1: recorded, with this result; 0: to be recorded in full. */
int record_light(struct thread *th, u64 nr, const u64 *args, u64 ip, s64 *result) {
  u8 *payload;
  u32 bytes = 0, flags = 0;
  int again = 0;
  if (!ordinary(th, nr, args) || !(payload = log_short_room())) return 0;
  if (is_write(nr)) {
    u8 class = th->process->fd_class[args[0]];
    if (args[1] && args[2]) bytes = log_short_in(payload, 1, args[1], args[2] < IN_MAX ? args[2] : IN_MAX);
    if (class != FD_OTHER) {
      flags = class == FD_OUT ? RR_EF_ECHO_OUT : RR_EF_ECHO_ERR;
      shared_lock(th, &GLOBAL->output_lock);
    }
  }
  *result = make(th, nr, args, &again);
  if (flags) {
    u64 number = *result > 0 && !again ? GLOBAL->output_seq++ : 0;
    shared_unlock(th, &GLOBAL->output_lock);
    if (*result > 0)
      bytes += log_short_sequence(payload + bytes, number);
    else
      flags = 0;
  }
  if (again) return 0;
  u64 time_out = now_coarse();
  if (!is_write(nr) && nr != RR_NR_lseek && *result > 0 && args[1])
    bytes = log_short_out(payload, 1, args[1], (u64)*result < args[2] ? (u64)*result : args[2]);
  log_short(th, (u32)nr, ip, args, *result, time_out, bytes, flags);
  return 1;
}
