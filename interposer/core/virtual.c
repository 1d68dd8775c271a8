/* virtual.c - calls about state that the core keeps for the program: signals, thread registration, a few prctls.
 *
 * Guarantees: the same code answers when recording and when replaying, from the same state, so both agree.
 */
#include "core.h"

static int virtual_prctl(u64 option) {
  switch (option) {
    case PR_SET_TSC: case PR_GET_TSC: case PR_SET_SECCOMP: case PR_GET_SECCOMP: case PR_SET_SYSCALL_USER_DISPATCH:
    case PR_SET_DUMPABLE: case PR_GET_DUMPABLE: case PR_SET_PTRACER: case PR_GET_AUXV: case PR_GET_TID_ADDRESS: return 1;
    default: return 0;
  }
}

int is_virtual(u64 nr, const u64 *args) {
  switch (nr) {
    case RR_NR_rt_sigaction: case RR_NR_rt_sigprocmask: case RR_NR_sigaltstack: case RR_NR_set_tid_address:
    case RR_NR_set_robust_list: case RR_NR_get_robust_list: case RR_NR_arch_prctl: return 1;
    case RR_NR_prctl: return virtual_prctl(args[0]);
    case RR_NR_seccomp: return args[0] <= 1;
    case RR_NR_ptrace: return 1;
    case RR_NR_wait4: return waits_for_traced(args);
    default: return 0;
  }
}

static s64 do_arch_prctl(struct thread *th, u64 *args) {
  u64 zero = 0;
  (void)th;
  switch (args[0]) {
    case ARCH_SET_GS:
      if (space.recording) report(RR_REP_GS, 0, 0, 0);
      return -EPERM;
    case ARCH_GET_GS: return rr_copy((void *)args[1], &zero, 8) ? -EFAULT : 0;
    case ARCH_GET_CPUID: return 1;
    case ARCH_SET_CPUID: return args[1] ? 0 : -19;
    default: return SYS2(RR_NR_arch_prctl, args[0], args[1]);
  }
}

static s64 do_prctl(struct thread *th, u64 *args) {
  switch (args[0]) {
    case PR_SET_TSC:
      if (args[1] != PR_TSC_ENABLE && args[1] != PR_TSC_SIGSEGV) return -EINVAL;
      th->process->tsc_trapped = args[1] == PR_TSC_SIGSEGV;
      return 0;
    case PR_GET_TSC: {
      u32 value = th->process->tsc_trapped ? PR_TSC_SIGSEGV : PR_TSC_ENABLE;
      return rr_copy((void *)args[1], &value, 4) ? -EFAULT : 0;
    }
    case PR_SET_SECCOMP:
      if (space.recording) report(RR_REP_SECCOMP, 0, 0, 0);
      return 0;
    case PR_SET_SYSCALL_USER_DISPATCH: case PR_GET_AUXV: return -EINVAL;
    case PR_GET_TID_ADDRESS: return rr_copy((void *)args[1], &th->clear_tid, 8) ? -EFAULT : 0;
    case PR_SET_DUMPABLE:
      if (args[1] > 1) return -EINVAL;
      th->process->undumpable = !args[1];
      return 0;
    case PR_GET_DUMPABLE: return !th->process->undumpable;
    default: return 0; /* PR_GET_SECCOMP, PR_SET_PTRACER */
  }
}

static s64 do_get_robust_list(struct thread *th, u64 *args) {
  u64 size = 24;
  const struct thread *of = (u32)args[0] == 0 || (u32)args[0] == th->tid ? th : thread_by_tid(th, (u32)args[0]);
  if (!of) return -ESRCH;
  return rr_copy((void *)args[2], &size, 8) || rr_copy((void *)args[1], &of->robust_head, 8) ? -EFAULT : 0;
}

s64 do_virtual(struct thread *th, u64 nr, u64 *args) {
  switch (nr) {
    case RR_NR_rt_sigaction: return do_rt_sigaction(th, args);
    case RR_NR_rt_sigprocmask: return do_rt_sigprocmask(th, args);
    case RR_NR_sigaltstack: return do_sigaltstack(th, args);
    case RR_NR_set_tid_address: th->clear_tid = args[0]; return th->tid;
    case RR_NR_set_robust_list:
      if (args[1] != 24) return -EINVAL;
      th->robust_head = args[0];
      return 0;
    case RR_NR_get_robust_list: return do_get_robust_list(th, args);
    case RR_NR_arch_prctl: return do_arch_prctl(th, args);
    case RR_NR_prctl: return do_prctl(th, args);
    case RR_NR_seccomp:
      if (space.recording) report(RR_REP_SECCOMP, 0, 0, 0);
      return args[1] & 8 ? -EINVAL : 0; /* no notification descriptor */
    case RR_NR_ptrace: return do_ptrace(th, args);
    case RR_NR_wait4: return wait_for_traced(args);
    default: return -ENOSYS;
  }
}
