/* cpuid.c - what a recorded program gets for CPUID.
 *
 * Guarantees: answers leave out what cannot be trapped: RDRAND, RDSEED, RDPID, TSX, WAITPKG, RDPRU, and FSGSBASE
 * (the GS base is the core's). A virtual machine needs microseconds for each CPUID, and every dynamic program makes
 * dozens at its start: answers that are the same on all processors are asked for once in a recording, and kept
 * behind struct rr_global for all its processes.
 */
#include "core.h"

struct answer { /* published by state, which is written last */
  u32 state;    /* 0: free, 1: being written, 2: there */
  u32 leaf, sub;
  u32 out[4];
};
#define KNOWN ((struct answer *)(RR_GLOBAL + 1280))
#define NKNOWN ((4096 - 1280) / sizeof(struct answer))
_Static_assert(sizeof(struct rr_global) <= 1280, "the answers lie behind the fields");

static void execute(u32 leaf, u32 sub, u32 *out) {
  if (!space.no_cpuid_fault) SYS2(RR_NR_arch_prctl, ARCH_SET_CPUID, 1);
  __asm__ volatile("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "a"(leaf), "c"(sub));
  if (!space.no_cpuid_fault) SYS2(RR_NR_arch_prctl, ARCH_SET_CPUID, 0);
  if (leaf == 1) out[2] &= ~(1u << 30);
  if (leaf == 7 && sub == 0) {
    out[1] &= ~(1u << 0 | 1u << 4 | 1u << 11 | 1u << 18);
    out[2] &= ~(1u << 22 | 1u << 5);
    out[3] &= ~(1u << 11);
  }
  if (leaf == 0x80000008) out[1] &= ~(1u << 4);
}

/* 0: the answer depends on the processor or the moment; 1: on the leaf alone; 2: on the subleaf too. */
static int kept(u32 leaf) {
  switch (leaf) {
    case 0: case 2: case 0x16: return 1;
    case 4: case 7: case 0xd: case 0x14: case 0x18: case 0x19: case 0x8000001d: return 2;
    default: return leaf >= 0x80000000 && leaf <= 0x8000000a;
  }
}

void read_cpuid(u32 leaf, u32 sub, u64 *out) {
  u32 words[4];
  int kind = kept(leaf);
  if (kind == 1) sub = 0;
  struct answer *free = NULL;
  for (u32 i = 0; kind && i < NKNOWN; i++) {
    struct answer *one = &KNOWN[i];
    u32 state = __atomic_load_n(&one->state, __ATOMIC_ACQUIRE);
    if (state == 2 && one->leaf == leaf && one->sub == sub) {
      for (u32 k = 0; k < 4; k++) out[k] = one->out[k];
      return;
    }
    if (state == 0) {
      free = one;
      break;
    }
  }
  execute(leaf, sub, words);
  for (u32 k = 0; k < 4; k++) out[k] = words[k];
  u32 none = 0;
  if (!free || !__atomic_compare_exchange_n(&free->state, &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
  free->leaf = leaf;
  free->sub = sub;
  for (u32 k = 0; k < 4; k++) free->out[k] = words[k];
  __atomic_store_n(&free->state, 2, __ATOMIC_RELEASE);
}
