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

void limits_restore(const struct limits *limits) {
  for (u32 i = 0; i < 3; i++)
    if (limits->changed & 1u << i) SYS4(RR_NR_prlimit64, 0, lifted[i], &limits->old[i], NULL);
}
