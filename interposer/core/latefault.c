/* latefault.c - from when on CPUID traps in a virtual machine.
 *
 * There, a task for which it traps costs the host microseconds whenever the processor goes over to another task, and
 * what files have of CPUID instructions is replaced as they are mapped. So the trap is set once the program makes other
 * memory executable: from that call on, code may have CPUID instructions that nobody has looked for.
 * Guarantees: from that call on every thread of the address space traps before it runs the program's code again, in
 * recording and in replay.
 */
#include "core.h"

#define SHM_EXEC 0100000

static int makes_code(u64 nr, const u64 *args) {
  switch (nr) {
    case RR_NR_mprotect: case RR_NR_pkey_mprotect: return (args[2] & PROT_EXEC) != 0;
    case RR_NR_mmap: return args[2] & PROT_EXEC && (args[3] & MAP_ANONYMOUS || (args[3] & MAP_TYPE) != MAP_PRIVATE);
    case RR_NR_shmat: return (args[2] & SHM_EXEC) != 0;
    default: return 0;
  }
}

static void trap_from_now(struct thread *th) {
  th->cpuid_traps = 1;
  trap_instructions();
}

/* Code that nobody has searched is there, or will be. */
void late_fault(struct thread *th) {
  if (!space.late_fault || !space.no_cpuid_fault) return;
  space.no_cpuid_fault = 0;
  trap_from_now(th);
}

/* A call that changes memory, before it is made. */
void late_fault_call(struct thread *th, u64 nr, const u64 *args) {
  if (space.late_fault && makes_code(nr, args)) late_fault(th);
}

/* The thread goes on after others have run. */
void late_fault_follow(struct thread *th) {
  if (unlikely(space.late_fault && !space.no_cpuid_fault && !th->cpuid_traps)) trap_from_now(th);
}
