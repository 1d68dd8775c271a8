/* jit.c - CPUID in code that a program generates, where the processor cannot make it trap.
 *
 * Anonymous memory that is mapped writable and executable at once is not made executable until somebody runs it: the
 * fault shows that code is there, and CPUID instructions in the 64 kB around are replaced before it runs. Recording
 * and replay do the same at the same instructions, so nothing of it is logged but the CPUIDs themselves.
 * Guarantees: only CPUID with a leaf set right before it is replaced, so that a constant is not mistaken for one. What is
 * generated later in a place that has been run, and what mprotect makes executable, is not looked at.
 */
#include "core.h"

#define CHUNK 0x10000ul
#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)
#define PAGE_FAULT 14u
#define FETCH 16u /* the page fault's error code: an instruction was to be read */
#define LEAVES 0x40u

/* What the kernel is to be asked for in place of these protections. */
u64 jit_protection(const u64 *args) {
  int code = space.watch_code && (args[2] & RWX) == RWX && (args[3] & MAP_TYPE) == MAP_PRIVATE && args[3] & MAP_ANONYMOUS &&
             !(args[3] & MAP_GROWSDOWN) && space.ncode < MAX_CODE;
  return code ? args[2] & ~(u64)PROT_EXEC : args[2];
}

static void executable(u64 from, u64 to) { SYS3(RR_NR_mprotect, from, to - from, RWX); }

/* The program changes this range: it is as the program wants it from then on. */
void jit_forget(u64 address, u64 len) {
  u64 end = address + ((len + PAGE - 1) & ~(PAGE - 1));
  for (u32 i = 0; i < space.ncode; i++) {
    struct code_range *range = &space.code[i], whole = *range;
    if (address >= whole.to || end <= whole.from) continue;
    *range = space.code[--space.ncode];
    i--;
    if (whole.from < address) space.code[space.ncode++] = (struct code_range){whole.from, address};
    if (whole.to <= end) continue;
    if (space.ncode < MAX_CODE)
      space.code[space.ncode++] = (struct code_range){end, whole.to};
    else
      executable(end, whole.to);
  }
}

/* A mapping was made with what jit_protection said. */
void jit_mapped(u64 address, const u64 *args) {
  if (!space.watch_code) return;
  u64 end = address + ((args[1] + PAGE - 1) & ~(PAGE - 1));
  int code = jit_protection(args) != args[2];
  jit_forget(address, args[1]);
  if (!code) return;
  if (space.ncode < MAX_CODE)
    space.code[space.ncode++] = (struct code_range){address, end};
  else
    executable(address, end);
}

/* About to be moved or resized: what it was meant to be. */
void jit_settle(u64 address, u64 len) {
  u64 end = address + len;
  for (u32 i = 0; i < space.ncode; i++)
    if (address < space.code[i].to && end > space.code[i].from) {
      executable(space.code[i].from, space.code[i].to);
      space.code[i--] = space.code[--space.ncode];
    }
}

static u32 word(const u8 *at) { return (u32)at[0] | (u32)at[1] << 8 | (u32)at[2] << 16 | (u32)at[3] << 24; }

static int clears(const u8 *at, u8 reg) { return (at[0] == 0x31 || at[0] == 0x33) && at[1] == (0xc0 | reg << 3 | reg); }

/* Bytes of an instruction that ends at `end` and sets EAX to a leaf, or ECX to a subleaf; 0: there is none. */
static u64 sets(const u8 *start, const u8 *end, u8 reg) {
  if (end - start >= 2 && clears(end - 2, reg)) return 2;
  if (end - start >= 5 && end[-5] == (0xb8 | reg) && (word(end - 4) & 0x3fffffff) < LEAVES) return 5;
  return 0;
}

static int is_cpuid(const u8 *start, const u8 *at) {
  if (at[0] != 0x0f || at[1] != 0xa2) return 0;
  if (sets(start, at, 0)) return 1;
  u64 subleaf = sets(start, at, 1);
  return subleaf && sets(start, at - subleaf, 0);
}

/* 1: the program was about to run code that it has made, and can do so now. */
int jit_fault(const u64 *regs, int sig) {
  if (sig != SIGSEGV || regs[R_TRAPNO] != PAGE_FAULT || !(regs[R_ERR] & FETCH)) return 0;
  for (u32 i = 0; i < space.ncode; i++) {
    struct code_range whole = space.code[i];
    if (regs[R_CR2] < whole.from || regs[R_CR2] >= whole.to) continue;
    u64 from = regs[R_CR2] & ~(CHUNK - 1), to = from + CHUNK;
    if (from < whole.from) from = whole.from;
    if (to > whole.to) to = whole.to;
    executable(from, to);
    jit_forget(from, to - from);
    for (u8 *at = (u8 *)from; at + 1 < (u8 *)to; at++)
      if (is_cpuid((u8 *)from, at)) *at = RR_CPUID_BYTE;
    return 1;
  }
  return 0;
}
