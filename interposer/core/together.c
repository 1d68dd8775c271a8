/* together.c - threads of a domain that hand the baton over often are kept on one processor.
 *
 * Only one of them runs at a time, and waking a thread on another processor costs several times what switching to it
 * on the same one does. Guarantees: nothing of it shows: children and new images start with the program's own mask,
 * and a program that asks for its mask, or sets one, gets its own way from then on.
 */
#include "core.h"

#define MASK_WORDS 16
#define SAMPLE 256u
#define OFTEN_NS 60000000ul
#define SELDOM_NS 1000000000ul

static u64 own_mask[MASK_WORDS];
static u64 sample_start;
static u32 count, together, never;

u32 spins(u32 apart) { return together ? 0 : apart; }

static void gather(void) {
  u64 mask[MASK_WORDS] = {0};
  u32 cpu = 0;
  s64 bytes = SYS3(RR_NR_sched_getaffinity, 0, sizeof own_mask, own_mask);
  if (bytes <= 0 || SYS3(RR_NR_getcpu, &cpu, NULL, NULL) < 0 || cpu >= 64 * MASK_WORDS) {
    never = 1;
    return;
  }
  mask[cpu / 64] = 1ul << (cpu % 64);
  together = 1;
  threads_affinity(mask, sizeof mask);
}

/* Everywhere again; `for_good`: the program cares where it runs. */
void spread_out(int for_good) {
  if (for_good) never = 1;
  if (!together) return;
  together = 0;
  count = 0;
  threads_affinity(own_mask, sizeof own_mask);
}

/* The baton (or the turn) went to another thread. Called by the one that has it now. */
void handed_over(void) {
  if (never || ++count % SAMPLE) return;
  u64 now = now_coarse();
  u64 took = now - sample_start;
  sample_start = now;
  if (!together && took < OFTEN_NS)
    gather();
  else if (together && took > SELDOM_NS)
    spread_out(0);
}
