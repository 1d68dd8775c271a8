/* transfer.c - sendfile, splice, copy_file_range and vmsplice to the recording's own output: made of reads and writes,
 * since what the kernel moves by itself could not be echoed by a replay.
 *
 * Guarantees: nothing is read that is not written, or it is put back; a short count where the kernel would have moved
 * more in one call.
 */
#include "core.h"

static u8 *carried(struct thread *th) { return (u8 *)THREAD_SCRATCH(th) + THREAD_SCRATCH_SIZE - CARRY_MAX; }

/* Where the arguments have: the descriptor read from, the pointer to its offset (0: its position), the count. */
static void source_of(u64 nr, const u64 *args, u64 *fd, u64 *offset, u64 *count) {
  int sendfile = nr == RR_NR_sendfile;
  *fd = sendfile ? args[1] : args[0];
  *offset = sendfile ? args[2] : args[1];
  *count = sendfile ? args[3] : args[4];
}

/* Can this call be made so? Not where it names a place in the output, and not tee, which leaves its source as it is. */
int can_carry(u64 nr, const u64 *args) {
  if (nr == RR_NR_sendfile || nr == RR_NR_vmsplice) return 1;
  return (nr == RR_NR_splice || nr == RR_NR_copy_file_range) && !args[3];
}

/* Reads what is to be written. Bytes, 0 at the end of file, or an error. */
s64 carry_in(struct thread *th, u64 nr, const u64 *args) {
  u64 fd, pointer, count, offset = 0;
  if (nr == RR_NR_vmsplice) return 1;
  source_of(nr, args, &fd, &pointer, &count);
  u64 call[6] = {fd, (u64)carried(th) + 8, count < CARRY_MAX - 8 ? count : CARRY_MAX - 8, 0, 0, 0};
  if (!pointer) return rr_call_interruptible(RR_NR_read, call);
  if (rr_load64(&offset, (void *)pointer)) return -EFAULT;
  call[3] = offset;
  return rr_call_interruptible(RR_NR_pread64, call);
}

/* Writes `got` bytes and moves the source to where the kernel would have left it. The call's result. */
s64 carry_out(struct thread *th, u64 nr, const u64 *args, s64 got) {
  u64 fd, pointer, count, offset = 0;
  if (nr == RR_NR_vmsplice) return SYS3(RR_NR_writev, args[0], args[1], args[2]);
  if (got <= 0) return got;
  source_of(nr, args, &fd, &pointer, &count);
  s64 result = SYS3(RR_NR_write, nr == RR_NR_sendfile ? args[0] : args[2], carried(th) + 8, got), done = result > 0 ? result : 0;
  if (!pointer) {
    if (done < got && SYS3(RR_NR_lseek, fd, done - got, 1) < 0) /* a pipe takes nothing back */
      while (done < got) {
        s64 n = SYS3(RR_NR_write, args[2], carried(th) + 8 + done, got - done);
        if (n == -EAGAIN || n == -EINTR) continue;
        if (n <= 0) break;
        result = done += n;
      }
  } else if (!rr_load64(&offset, (void *)pointer)) {
    offset += (u64)done;
    rr_copy((void *)pointer, &offset, 8);
  }
  return result;
}

/* The region that says what came out, and as the how many-th of all outputs. */
void log_carried(struct thread *th, u64 seq, s64 result) {
  *(u64 *)carried(th) = seq;
  log_bytes(th, RR_R_SEQ, 255, 0, carried(th), 8 + (u64)result);
}
