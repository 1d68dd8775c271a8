/* entry.S - the places where control passes between the program, the kernel and the core.
 *
 * Guarantees: no instruction here touches the program's stack, its vector registers or FS.
 */
#include "core_offsets.h"
        .text

/* Injection jumps here: rdi = program entry, rsi = its stack pointer, rdx = fd base, rcx = domain, r8 = whether CPUID traps from the start.
 * The data segment is already mapped by the injector. */
        .globl rr_entry_record
rr_entry_record:
        leaq boot_stack_top(%rip), %rsp
        andq $-16, %rsp
        xorl %ebp, %ebp
        call rr_boot_record
        ud2

/* The kernel starts the replaying image here. */
        .globl rr_entry_replay
rr_entry_replay:
        movq %rsp, %rdi
        leaq boot_stack_top(%rip), %rsp
        andq $-16, %rsp
        xorl %ebp, %ebp
        call rr_boot_replay
        ud2

/* rr_start_program(entry, sp): the register state the kernel gives a new image. */
        .globl rr_start_program
rr_start_program:
        movq %rsi, %rsp
        movq %rdi, rr_start_target(%rip)
        xorl %eax, %eax
        xorl %ebx, %ebx
        xorl %ecx, %ecx
        xorl %edx, %edx
        xorl %esi, %esi
        xorl %edi, %edi
        xorl %ebp, %ebp
        xorl %r8d, %r8d
        xorl %r9d, %r9d
        xorl %r10d, %r10d
        xorl %r11d, %r11d
        xorl %r12d, %r12d
        xorl %r13d, %r13d
        xorl %r14d, %r14d
        xorl %r15d, %r15d
        jmp *rr_start_target(%rip)

/* Return from a handler that interrupted the program, but not past a signal that has been queued meanwhile. */
        .globl rr_restorer_app, rr_exit_begin, rr_exit_syscall, rr_exit_pending
rr_restorer_app:
rr_exit_begin:
        cmpq $0, %gs:TH_PENDING
        jne rr_exit_pending
        movl $15, %eax
rr_exit_syscall:
        syscall
rr_exit_pending:
        movq %rsp, %rdi
        movq %rsp, %rbx
        subq $136, %rsp
        andq $-16, %rsp
        call rr_late_signals
        movq %rbx, %rsp
        movl $15, %eax
        syscall
        ud2

/* Return from any other handler. */
        .globl rr_restorer
rr_restorer:
        movl $15, %eax
        syscall
        ud2

/* rr_sigreturn_to(frame): leave C code for the context in a frame (struct sigframe *). */
        .globl rr_sigreturn_to
rr_sigreturn_to:
        leaq 8(%rdi), %rsp
        jmp rr_restorer_app

/* long rr_call_interruptible(long nr, const u64 *args): a call that a queued signal prevents from starting.
 * Returns RR_RESTART when it did not start or is to be made again. */
        .globl rr_call_interruptible, rr_int_begin, rr_int_syscall, rr_int_pending
rr_call_interruptible:
        movq %rdi, %rax
        movq %rsi, %rcx
        movq 0(%rcx), %rdi
        movq 8(%rcx), %rsi
        movq 16(%rcx), %rdx
        movq 24(%rcx), %r10
        movq 32(%rcx), %r8
        movq 40(%rcx), %r9
rr_int_begin:
        cmpq $0, %gs:TH_PENDING
        jne rr_int_pending
rr_int_syscall:
        syscall
        ret
rr_int_pending:
        movq $-512, %rax
        ret

/* int rr_copy(void *to, const void *from, u64 bytes): 0, or 1 where memory is missing (some may be copied). Words for
 * what is short, where a string instruction takes longer to begin; from a word that faults on it goes byte by byte. */
        .globl rr_copy, rr_copy_at, rr_copy_fail, rr_copy_load, rr_copy_store, rr_copy_bytes
rr_copy:
        movq %rdx, %rcx
        cmpq $128, %rdx
        ja 2f
        shrq $3, %rcx
        andl $7, %edx
        testq %rcx, %rcx
        je rr_copy_bytes
rr_copy_load:
        movq (%rsi), %rax
rr_copy_store:
        movq %rax, (%rdi)
        addq $8, %rsi
        addq $8, %rdi
        decq %rcx
        jne rr_copy_load
        testl %edx, %edx
        je 3f
rr_copy_bytes:
        leaq (%rdx,%rcx,8), %rcx
2:      cld
rr_copy_at:
        rep movsb
3:      xorl %eax, %eax
        ret
rr_copy_fail:
        movl $1, %eax
        ret

/* int rr_fill(void *to, u64 word, u64 words): writes the word so often; 0, or 1 where memory is missing. */
        .globl rr_fill, rr_fill_at
rr_fill:
        movq %rsi, %rax
        movq %rdx, %rcx
        cld
rr_fill_at:
        rep stosq
        xorl %eax, %eax
        ret

/* long rr_strcopy(char *to, const char *from, u64 cap): bytes copied with the final NUL, cap if there is none, -1. */
        .globl rr_strcopy, rr_strcopy_at, rr_strcopy_fail
rr_strcopy:
        xorl %eax, %eax
1:      cmpq %rdx, %rax
        jae 2f
rr_strcopy_at:
        movb (%rsi,%rax), %cl
        movb %cl, (%rdi,%rax)
        incq %rax
        testb %cl, %cl
        jne 1b
2:      ret
rr_strcopy_fail:
        movq $-1, %rax
        ret

/* int rr_load(u64 *to, const void *from): 8 bytes, guarded. int rr_store(void *to, u64 value, int bytes) likewise. */
        .globl rr_load64, rr_load64_at, rr_load64_fail
rr_load64:
rr_load64_at:
        movq (%rsi), %rax
        movq %rax, (%rdi)
        xorl %eax, %eax
        ret
rr_load64_fail:
        movl $1, %eax
        ret

/* int rr_touch(void *at): 0 where a byte can be written (it keeps its value, whoever else writes), 1 where not. */
        .globl rr_touch, rr_touch_at, rr_touch_fail
rr_touch:
rr_touch_at:
        lock orb $0, (%rdi)
        xorl %eax, %eax
        ret
rr_touch_fail:
        movl $1, %eax
        ret

/* int rr_equal(const void *a, const void *b, u64 bytes): 1 same, 0 different, 2 where memory is missing. By words, and
 * from one that faults on byte by byte. */
        .globl rr_equal, rr_equal_at, rr_equal_fail, rr_equal_first, rr_equal_second, rr_equal_bytes
rr_equal:
        movq %rdx, %rcx
        shrq $3, %rcx
        andl $7, %edx
        testq %rcx, %rcx
        je rr_equal_bytes
rr_equal_first:
        movq (%rdi), %rax
rr_equal_second:
        cmpq (%rsi), %rax
        jne 2f
        addq $8, %rsi
        addq $8, %rdi
        decq %rcx
        jne rr_equal_first
        testl %edx, %edx
        je 1f
rr_equal_bytes:
        leaq (%rdx,%rcx,8), %rcx
        cld
        cmpq %rax, %rax
rr_equal_at:
        repe cmpsb
        jne 2f
1:      movl $1, %eax
        ret
2:      xorl %eax, %eax
        ret
rr_equal_fail:
        movl $2, %eax
        ret

/* long rr_clone(u64 flags, u64 stack, u64 parent_tid, u64 child_tid, u64 tls, struct thread *child)
 * The child of a clone with a stack starts in rr_child(child) on that stack; otherwise both return here. */
        .globl rr_clone
rr_clone:
        pushq %rbx
        movq %r9, %rbx
        movq %rcx, %r10
        movl $56, %eax
        syscall
        testq %rax, %rax
        jne 1f
        testq %rbx, %rbx
        je 1f
        movq %rbx, %rdi
        xorl %ebp, %ebp
        call rr_child
        ud2
1:      popq %rbx
        ret

/* void rr_thread_gone(u32 *baton_free, u64 code): exit without touching the stack again. */
        .globl rr_exit_thread
rr_exit_thread:
        movl $60, %eax
        syscall
        ud2

/* u64 rr_vdso_call(fn, clock, timespec *): the kernel's code may use xmm registers; they belong to the program. */
        .globl rr_vdso_call
rr_vdso_call:
        pushq %rbp
        movq %rsp, %rbp
        subq $256, %rsp
        andq $-16, %rsp
        movaps %xmm0, 0(%rsp)
        movaps %xmm1, 16(%rsp)
        movaps %xmm2, 32(%rsp)
        movaps %xmm3, 48(%rsp)
        movaps %xmm4, 64(%rsp)
        movaps %xmm5, 80(%rsp)
        movaps %xmm6, 96(%rsp)
        movaps %xmm7, 112(%rsp)
        movq %rdi, %rax
        movq %rsi, %rdi
        movq %rdx, %rsi
        call *%rax
        movaps 0(%rsp), %xmm0
        movaps 16(%rsp), %xmm1
        movaps 32(%rsp), %xmm2
        movaps 48(%rsp), %xmm3
        movaps 64(%rsp), %xmm4
        movaps 80(%rsp), %xmm5
        movaps 96(%rsp), %xmm6
        movaps 112(%rsp), %xmm7
        leave
        ret

/* int rr_remember(struct resume_point *): 0 now, 1 each time rr_revive(point) goes back there on the same stack. */
        .globl rr_remember, rr_revive
rr_remember:
        movq %rbx, 0(%rdi)
        movq %rbp, 8(%rdi)
        movq %r12, 16(%rdi)
        movq %r13, 24(%rdi)
        movq %r14, 32(%rdi)
        movq %r15, 40(%rdi)
        leaq 8(%rsp), %rax
        movq %rax, 48(%rdi)
        movq (%rsp), %rax
        movq %rax, 56(%rdi)
        xorl %eax, %eax
        ret
rr_revive:
        movq 0(%rdi), %rbx
        movq 8(%rdi), %rbp
        movq 16(%rdi), %r12
        movq 24(%rdi), %r13
        movq 32(%rdi), %r14
        movq 40(%rdi), %r15
        movq 48(%rdi), %rsp
        movl $1, %eax
        jmp *56(%rdi)

/* A patched call site's stub comes here: rcx = address after the call, r11 = where to go on, rax = number, on the
 * thread's own stack for this. */
        .globl rr_fast_entry
rr_fast_entry:
        movq %r11, %gs:TH_TAIL
        pushfq
        popq %r11
        pushq %r9
        pushq %r8
        pushq %r10
        pushq %rdx
        pushq %rsi
        pushq %rdi
        pushq %rcx
        pushq %rax
        pushq %r11
        movq %rsp, %rdi
        testl $0x40000, %r11d
        jne 3f
        subq $8, %rsp
        cld
        call rr_fast
        movl %edx, %r11d
        addq $8, %rsp
        movq 0(%rsp), %rcx
        testl %r11d, %r11d
        jne 1f
        movq %rcx, %r11
        movq 16(%rsp), %rcx
        movq 24(%rsp), %rdi
        movq 32(%rsp), %rsi
        movq 40(%rsp), %rdx
        movq 48(%rsp), %r10
        movq 56(%rsp), %r8
        movq 64(%rsp), %r9
        movq %gs:TH_APP_SP, %rsp
        jmp *%gs:TH_TAIL
/* With the alignment check on, C code would fault: a trap takes care of it. */
3:      movl $1, %r11d
/* Through a trap after all: to make the call (FAST_TRAP), or because something is to be done behind it (FAST_LATE). */
1:      movq %rax, %gs:TH_LATE
        movq 16(%rsp), %rdi
        movq %rdi, %gs:TH_GATE_IP
        movq gate_trap(%rip), %rcx
        cmpl $2, %r11d
        jne 2f
        movq gate_late(%rip), %rcx
2:      popfq
        popq %rax
        popq %rdi
        popq %rdi
        popq %rsi
        popq %rdx
        popq %r10
        popq %r8
        popq %r9
        movq %gs:TH_APP_SP, %rsp
        jmp *%rcx

        .data
        .balign 8
rr_start_target:
        .quad 0
        .balign 64
        .fill 65536, 1, 0
boot_stack_top:
        .section .note.GNU-stack,"",@progbits
