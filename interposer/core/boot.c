/* boot.c - the core's first moments in a new image, recording (injected) and replaying (executed itself).
 *
 * Guarantees: the program starts with the registers and the stack the kernel gave it, less what would let it
 * bypass the core (vDSO, FSGSBASE); from its first instruction on, every call traps.
 */
#include "core.h"

static u64 *auxv_of(u64 sp) {
  u64 *at = (u64 *)sp;
  at += 1 + *at + 1;
  while (*at) at++;
  return at + 1;
}

static void hide_kernel_hints(u64 *auxv) {
  for (; auxv[0] != AT_NULL; auxv += 2) {
    if (auxv[0] == AT_SYSINFO_EHDR) auxv[0] = AT_IGNORE;
    if (auxv[0] == AT_HWCAP2) auxv[1] &= ~2ul;
  }
}

static int same_text(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

/* The address of __vdso_clock_gettime in the kernel's shared object. */
static u64 find_clock(u64 vdso) {
  const u8 *base = (const u8 *)vdso;
  const u64 *symbols = NULL;
  const char *names = NULL;
  const u32 *hash = NULL;
  u64 phoff = *(const u64 *)(base + 32);
  u16 phnum = *(const u16 *)(base + 56);
  const u64 *dynamic = NULL;
  u64 bias = 0;
  for (u32 i = 0; i < phnum; i++) {
    const u8 *ph = base + phoff + i * 56ul;
    u32 type = *(const u32 *)ph;
    if (type == 1 && !bias) bias = vdso + *(const u64 *)(ph + 8) - *(const u64 *)(ph + 16);
    if (type == 2) dynamic = (const u64 *)(base + *(const u64 *)(ph + 8));
  }
  if (!dynamic) return 0;
  for (; dynamic[0]; dynamic += 2) {
    if (dynamic[0] == 6) symbols = (const u64 *)(bias + dynamic[1]);
    if (dynamic[0] == 5) names = (const char *)(bias + dynamic[1]);
    if (dynamic[0] == 4) hash = (const u32 *)(bias + dynamic[1]);
  }
  u32 count = hash ? hash[1] : 32;
  if (!symbols || !names) return 0;
  for (u32 i = 0; i < count; i++)
    if (same_text(names + *(const u32 *)(symbols + i * 3), "__vdso_clock_gettime")) return bias + symbols[i * 3 + 1];
  return 0;
}

static u64 aux_value(u64 *auxv, u64 type) {
  for (; auxv[0] != AT_NULL; auxv += 2)
    if (auxv[0] == type) return auxv[1];
  return 0;
}

static void map_global(void) {
  s64 got = SYS6(RR_NR_mmap, RR_GLOBAL, RR_GLOBAL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, HIDDEN(RR_FD_GLOBAL), 0);
  if (got != (s64)RR_GLOBAL) fatal("the shared pages cannot be mapped");
  space.late_fault = (GLOBAL->flags & RR_GF_LATE_FAULT) != 0;
  space.no_cpuid_fault = space.late_fault || (GLOBAL->flags & RR_GF_NO_FAULT_CPUID) != 0;
  space.watch_code = (GLOBAL->flags & RR_GF_WATCH_CODE) != 0;
}

static struct thread *first_thread(void) {
  struct thread *th = thread_allocate();
  struct process *process = process_allocate();
  if (!th || !process) fatal("no memory for the first thread");
  th->process = process;
  th->real_tid = th->tid = (u32)SYS0(RR_NR_gettid);
  th->pid = process->pid = (u32)SYS0(RR_NR_getpid);
  process->nthreads = 1;
  th->altstack.flags = SS_DISABLE;
  thread_become(th);
  return th;
}

void trap_instructions(void) {
  SYS2(RR_NR_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
  if (!space.no_cpuid_fault) SYS2(RR_NR_arch_prctl, ARCH_SET_CPUID, 0);
}

void untrap_instructions(void) {
  SYS2(RR_NR_prctl, PR_SET_TSC, PR_TSC_ENABLE);
  if (!space.no_cpuid_fault) SYS2(RR_NR_arch_prctl, ARCH_SET_CPUID, 1);
}

NORETURN void rr_boot_record(u64 entry, u64 sp, u64 fd_base, u64 domain, u64 traps) {
  u64 *auxv = auxv_of(sp);
  space.recording = 1;
  space.fd_base = (u32)fd_base;
  space.domain = (u32)domain;
  map_global();
  u64 vdso = aux_value(auxv, AT_SYSINFO_EHDR);
  if (vdso) space.vdso_clock = find_clock(vdso);
  struct thread *th = first_thread();
  keep_places(RR_FD_CONTROL);
  ring_create(space.domain);
  hide_kernel_hints(auxv);
  SYS4(RR_NR_rt_sigprocmask, 0, NULL, &th->mask, 8);
  signals_install(th->process);
  SYS2(RR_NR_prctl, PR_SET_PTRACER, GLOBAL->tool_pid);
  patch_reserve();
  trap_instructions();
  if (traps) late_fault(th);
  th->time_in = now_coarse();
  log_begin(th, RR_K_EXEC, 0, entry, (u64[6]){entry, sp, th->mask, 0, 0, 0});
  log_commit(th, 0);
  if (GLOBAL->flags & RR_GF_ONE_DOMAIN) record_join(th, entry, RR_SHARE_ALL, -1, 0, 1);
  set_real_mask(real_mask(th->mask));
  thread_dispatch_on();
  rr_start_program(entry, sp);
}

/* ---- replaying ---- */

/* The ring of a domain, and for a new image its boot plan. Returns the plan's bytes. `mapped`: a child that shares
 * the ring it inherited needs only a control socket. */
u64 ring_receive(u32 domain, u32 pid, int want_boot, int mapped) {
  s32 pair[2], fds[2] = {-1, -1};
  if (SYS4(RR_NR_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) fatal("no control socket");
  hide_control(pair[0]);
  struct rr_msg msg = {.type = RR_M_NEED_RING, .a = domain, .b = pid, .c = (u64)want_boot, .d = (u64)mapped};
  if (channel_send(HIDDEN(RR_FD_HELLO), &msg, &pair[1], 1) < 0) fatal("the replayer is gone");
  SYS1(RR_NR_close, pair[1]);
  if (channel_receive(CONTROL, &msg, NULL, 0, fds, 2) < 0 || msg.result || fds[0] < 0) fatal("the replayer has no log for this process");
  if (!mapped) {
    s64 got = SYS6(RR_NR_mmap, RR_RING, RR_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fds[0], 0);
    if (got != (s64)RR_RING) fatal("the log cannot be mapped");
  }
  SYS1(RR_NR_close, fds[0]);
  if (want_boot) {
    if (fds[1] < 0) fatal("the replayer sent no boot plan");
    s64 got = SYS6(RR_NR_mmap, RR_BOOT, (msg.a + PAGE) & ~(PAGE - 1), PROT_READ, MAP_PRIVATE | MAP_FIXED, fds[1], 0);
    if (got != (s64)RR_BOOT) fatal("the boot plan cannot be mapped");
    SYS1(RR_NR_close, fds[1]);
  }
  return msg.a;
}

/* Another domain's ring, and a control socket to go with it. */
s32 ring_ask(u32 domain, u32 pid) {
  s32 pair[2], fd = -1;
  if (SYS4(RR_NR_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) fatal("no control socket");
  struct rr_msg msg = {.type = RR_M_NEED_RING, .a = domain, .b = pid, .d = 1};
  if (channel_send(HIDDEN(RR_FD_HELLO), &msg, &pair[1], 1) < 0) fatal("the replayer is gone");
  SYS1(RR_NR_close, pair[1]);
  hide_control(pair[0]);
  if (channel_receive(CONTROL, &msg, NULL, 0, &fd, 1) < 0 || msg.result || fd < 0) fatal("the replayer has no log for this process");
  return fd;
}

static void boot_map(struct process *process, const struct rr_boot *op) {
  s32 fd = -1;
  u64 offset = 0, flags = (op->flags & 1 ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED | MAP_NORESERVE;
  if (op->file) {
    fd = trace_file(process, op->file, op->off, op->len, op->prot | flags << 32, &offset);
    if (fd < 0) fatal("a file that the program maps is not available");
  } else {
    flags |= MAP_ANONYMOUS;
  }
  if (SYS6(RR_NR_mmap, op->addr, op->len, op->prot, flags, fd, offset) != (s64)op->addr) fatal("the address space cannot be laid out");
  if (fd >= 0 && fd != process->kept_fd) SYS1(RR_NR_close, fd);
}

/* It grows as the kernel lets it, by the recorded program's limit: an overflow comes where it came. */
static void boot_stack(const struct rr_boot *op) {
  u64 at = op->addr, len = op->len, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  if (op->file && op->off && !limit_stack(op->off)) {
    at += len - op->file * PAGE;
    len = op->file * PAGE;
    flags |= MAP_GROWSDOWN;
    space.stack_grows = 1;
  }
  if (SYS6(RR_NR_mmap, at, len, op->prot ? op->prot : PROT_READ | PROT_WRITE, flags, -1, 0) != (s64)at)
    fatal("the stack cannot be laid out");
}

/* Writes bytes whatever the protection: the mapping is private. */
static void boot_write(u64 address, const void *data, u64 len, u32 prot) {
  u64 page = address & ~(PAGE - 1), span = ((address + len + PAGE - 1) & ~(PAGE - 1)) - page;
  if (!(prot & PROT_WRITE)) SYS3(RR_NR_mprotect, page, span, PROT_READ | PROT_WRITE);
  if (rr_copy((void *)address, data, len)) fatal("the address space cannot be filled");
  if (!(prot & PROT_WRITE)) SYS3(RR_NR_mprotect, page, span, prot);
}

/* A CPUID instruction, and those that follow in the plan and lie on its page. The bytes of their steps. */
static u64 boot_patch(const struct rr_boot *op, u64 left) {
  u64 page = op->addr & ~(PAGE - 1), prot = op->prot ? op->prot : PROT_READ | PROT_EXEC, used = 0;
  u8 patched = RR_CPUID_BYTE;
  if (!(prot & PROT_WRITE)) SYS3(RR_NR_mprotect, page, PAGE, PROT_READ | PROT_WRITE);
  boot_write(op->addr, &patched, 1, PROT_WRITE);
  for (const struct rr_boot *next = op + 1; left - used >= sizeof *next; next++, used += sizeof *next) {
    if (next->op != RR_B_PATCH || (next->addr & ~(PAGE - 1)) != page || next->prot != op->prot) break;
    boot_write(next->addr, &patched, 1, PROT_WRITE);
  }
  if (!(prot & PROT_WRITE)) SYS3(RR_NR_mprotect, page, PAGE, prot);
  return used;
}

NORETURN void rr_boot_replay(u64 *stack) {
  const char *fd_base = (const char *)stack[2], *domain = (const char *)stack[3];
  if (stack[0] < 3) fatal("this program is started by rr-py");
  space.fd_base = (u32)parse_number(fd_base);
  space.domain = (u32)parse_number(domain);
  SYS2(RR_NR_munmap, 0, RR_BASE);
  SYS2(RR_NR_munmap, RR_END, 0x7ffffffff000ul - RR_END);
  map_global();
  patch_reserve();
  struct thread *th = first_thread();
  u64 bytes = ring_receive(space.domain, 0, 1, 0), at = 0, entry = 0, sp = 0;
  while (at + sizeof(struct rr_boot) <= bytes) {
    const struct rr_boot *op = (const struct rr_boot *)(RR_BOOT + at);
    at += sizeof *op;
    switch (op->op) {
      case RR_B_MAP: boot_map(th->process, op); break;
      case RR_B_DATA:
        boot_write(op->addr, op + 1, op->len, op->prot ? op->prot : PROT_READ | PROT_WRITE);
        at += (op->len + 7) & ~7ul;
        break;
      case RR_B_STACK: boot_stack(op); break;
      case RR_B_BRK: space.brk = op->addr; break;
      case RR_B_PATCH:
        if (op->addr == RR_CPUID_TRAPS)
          late_fault(th);
        else
          at += boot_patch(op, bytes - at);
        break;
      case RR_B_START: entry = op->addr, sp = op->len; break;
    }
  }
  SYS2(RR_NR_munmap, RR_BOOT, (bytes + PAGE) & ~(PAGE - 1));
  hide_kernel_hints(auxv_of(sp));
  struct rr_event *event = next_event(th);
  if (!event) park(th, RR_DIV_END, NULL);
  if (event->kind != RR_K_EXEC || event->args[0] != entry || event->args[1] != sp)
    park(th, RR_DIV_KIND, &(struct rr_event){.kind = RR_K_EXEC, .args = {entry, sp, 0, 0, 0, 0}});
  SYS1(RR_NR_set_tid_address, &th->alive);
  th->tid = th->pid = event->task;
  th->mask = event->args[2];
  RING->owner = th->tid;
  struct rr_msg msg = {.type = RR_M_TASK, .a = th->tid, .b = th->pid, .c = th->real_tid};
  channel_send(CONTROL, &msg, NULL, 0);
  signals_install(th->process);
  consume(th);
  event = next_event(th);
  if (!event) park(th, RR_DIV_END, NULL);
  if (event->kind == RR_K_JOIN) replay_join(th);
  trap_instructions();
  set_real_mask(real_mask(th->mask));
  thread_dispatch_on();
  rr_start_program(entry, sp);
}
