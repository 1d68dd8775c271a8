/* limits.c - resource limits that the program set for itself and that are in the core's way.
 *
 * Guarantees: a limit is raised only as far as the program itself could, for the time of one allocation, and put back.
 */
#include "core.h"

static const u32 lifted[3] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS};

void limits_lift(struct limits *limits) {
  limits->changed = 0;
  for (u32 i = 0; i < 3; i++) {
    if (SYS4(RR_NR_prlimit64, 0, lifted[i], NULL, &limits->old[i]) < 0 || limits->old[i].soft == limits->old[i].hard) continue;
    struct rlimit_k high = {limits->old[i].hard, limits->old[i].hard};
    if (SYS4(RR_NR_prlimit64, 0, lifted[i], &high, NULL) >= 0) limits->changed |= 1u << i;
  }
}

/* Replay: how far the main stack may grow from now on. Not 0: it cannot be set. */
s64 limit_stack(u64 bytes) {
  struct rlimit_k limit;
  s64 result = SYS4(RR_NR_prlimit64, 0, RLIMIT_STACK, NULL, &limit);
  if (result < 0) return result;
  limit.soft = bytes;
  return SYS4(RR_NR_prlimit64, 0, RLIMIT_STACK, &limit, NULL);
}

/* Replay: a call that succeeded has set the limit of the program's own stack. */
void replay_limit(const struct thread *th, u64 nr, const u64 *args) {
  int other = nr == RR_NR_prlimit64 && (u32)args[0] && (u32)args[0] != th->pid;
  u64 resource = nr == RR_NR_prlimit64 ? args[1] : args[0], at = nr == RR_NR_prlimit64 ? args[2] : args[1], bytes;
  if (other || (u32)resource != RLIMIT_STACK || !at || !space.stack_grows) return;
  if (!rr_load64(&bytes, (void *)at)) limit_stack(bytes);
}

void limits_restore(const struct limits *limits) {
  for (u32 i = 0; i < 3; i++)
    if (limits->changed & 1u << i) SYS4(RR_NR_prlimit64, 0, lifted[i], &limits->old[i], NULL);
}
