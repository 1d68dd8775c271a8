/* trap.c - RDTSC and CPUID, which trap: made, logged, fed back.
 *
 * Guarantees: what the program learns from either is in the log.
 */
#include "core.h"

static struct rr_event *expect(struct thread *th, u32 kind, u64 ip) {
  struct rr_event *event = next_event(th);
  struct rr_event found = {.task = th->tid, .kind = (u8)kind, .ip = ip};
  if (!event) park(th, RR_DIV_END, NULL);
  if (event->kind != kind || event->ip != ip) park(th, RR_DIV_KIND, &found);
  return event;
}

/* 1 if the instruction at the program's IP was one of these and is done. */
int emulate_instruction(struct thread *th, struct ucontext_k *uc, int sig) {
  u64 *regs = uc->mc.regs, ip = regs[R_RIP];
  u8 code[3] = {0};
  if (sig != SIGSEGV) return 0;
  if (rr_copy(code, (void *)ip, 2)) return 0;
  if (sig == SIGSEGV && code[0] == 0x0f && code[1] == 0x01 && rr_copy(code, (void *)ip, 3)) return 0;
  int rdtsc = sig == SIGSEGV && code[0] == 0x0f && code[1] == 0x31;
  int rdtscp = sig == SIGSEGV && code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9;
  int cpuid = sig == SIGSEGV && (code[0] == 0x0f || code[0] == RR_CPUID_BYTE) && code[1] == 0xa2;
  if ((rdtsc || rdtscp) && th->process->tsc_trapped) return 0;
  if (rdtsc || rdtscp) {
    u64 value, aux;
    if (space.recording) {
      u32 cpu = 0;
      value = time_stamp(rdtscp ? &cpu : NULL);
      aux = cpu;
      log_begin(th, RR_K_RDTSC, 0, ip, (u64[6]){(u64)rdtscp, aux, 0, 0, 0, 0});
      log_commit(th, (s64)value);
    } else {
      struct rr_event *event = expect(th, RR_K_RDTSC, ip);
      value = (u64)event->result;
      aux = event->args[1];
      advance();
    }
    regs[R_RAX] = value & 0xffffffff;
    regs[R_RDX] = value >> 32;
    if (rdtscp) regs[R_RCX] = aux;
    regs[R_RIP] = ip + (rdtscp ? 3 : 2);
    if (!space.recording) consumed(th);
    return 1;
  }
  if (!cpuid) return 0;
  u64 out[4];
  u32 leaf = (u32)regs[R_RAX], sub = (u32)regs[R_RCX];
  if (space.recording) {
    read_cpuid(leaf, sub, out);
    log_begin(th, RR_K_CPUID, 0, ip, (u64[6]){leaf, sub, out[0], out[1], out[2], out[3]});
    log_commit(th, 0);
  } else {
    struct rr_event *event = expect(th, RR_K_CPUID, ip);
    if (event->args[0] != leaf || event->args[1] != sub)
      park(th, RR_DIV_ARGS, &(struct rr_event){.task = th->tid, .kind = RR_K_CPUID, .ip = ip, .args = {leaf, sub, 0, 0, 0, 0}});
    for (u32 i = 0; i < 4; i++) out[i] = event->args[2 + i];
    advance();
  }
  regs[R_RAX] = out[0];
  regs[R_RBX] = out[1];
  regs[R_RCX] = out[2];
  regs[R_RDX] = out[3];
  regs[R_RIP] = ip + 2;
  if (!space.recording) consumed(th);
  return 1;
}
