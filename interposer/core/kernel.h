/* kernel.h - the kernel's structures and constants that the core uses, for x86-64, stated here so that the core
 * builds the same wherever it is built. Sources: the kernel's uapi headers.
 */
#ifndef RR_KERNEL_H
#define RR_KERNEL_H

struct timespec { s64 sec, nsec; };
struct iovec { u64 base, len; };
struct msghdr_k { u64 name; u32 namelen; u32 pad0; u64 iov, iovlen, control, controllen; u32 flags; u32 pad1; };
struct mmsghdr_k { struct msghdr_k hdr; u32 len; u32 pad; };
#define RLIMIT_FSIZE 1
#define RLIMIT_STACK 3
#define RLIMIT_NOFILE 7
#define RLIMIT_AS 9
struct rlimit_k { u64 soft, hard; };
struct pollfd_k { s32 fd; short events, revents; };
struct stack_k { u64 sp; s32 flags; u32 pad; u64 size; };
struct sigaction_k { u64 handler, flags, restorer, mask; };
struct siginfo_k {
  s32 signo, error, code, pad;
  union {
    struct { s32 pid, uid; u64 value; } kill;
    struct { u64 addr; } fault;
    struct { u64 call_addr; s32 syscall; u32 arch; } sys;
    u8 bytes[112];
  };
};
_Static_assert(sizeof(struct siginfo_k) == 128, "siginfo");

enum { R_R8, R_R9, R_R10, R_R11, R_R12, R_R13, R_R14, R_R15, R_RDI, R_RSI, R_RBP, R_RBX, R_RDX, R_RAX, R_RCX, R_RSP,
       R_RIP, R_EFLAGS, R_CSGSFS, R_ERR, R_TRAPNO, R_OLDMASK, R_CR2, R_COUNT };
struct mcontext_k { u64 regs[R_COUNT]; u64 fpstate; u64 reserved[8]; };
struct ucontext_k { u64 flags, link; struct stack_k stack; struct mcontext_k mc; u64 sigmask; };
_Static_assert(sizeof(struct mcontext_k) == 256, "mcontext");
_Static_assert(sizeof(struct ucontext_k) == 40 + 256 + 8, "ucontext");
struct sigframe { u64 pretcode; struct ucontext_k uc; struct siginfo_k info; };
_Static_assert(sizeof(struct sigframe) == 440, "sigframe");

struct stat_k { u64 dev, ino, nlink; u32 mode, uid, gid, pad; u64 rdev; s64 size, blksize, blocks; u64 times[6]; s64 unused[3]; };
_Static_assert(sizeof(struct stat_k) == 144, "stat");

#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EDEADLK 35
#define EINTR 4
#define EBADF 9
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EFAULT 14
#define ENODEV 19
#define ENOTDIR 20
#define EINVAL 22
#define ENOTTY 25
#define ENOSYS 38
#define ETIMEDOUT 110

#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_SHARED_VALIDATE 3
#define MAP_TYPE 15
#define MAP_FIXED 16
#define MAP_ANONYMOUS 32
#define MAP_GROWSDOWN 0x100
#define MAP_NORESERVE 0x4000
#define MAP_FIXED_NOREPLACE 0x100000
#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED 2
#define MREMAP_DONTUNMAP 4
#define SHM_RDONLY 010000
#define SHM_REMAP 040000

#define SA_SIGINFO 4ul
#define SA_RESTORER 0x04000000ul
#define SA_ONSTACK 0x08000000ul
#define SA_RESTART 0x10000000ul
#define SA_NODEFER 0x40000000ul
#define SA_RESETHAND 0x80000000ul
#define SIG_DFL 0ul
#define SIG_IGN 1ul
#define SS_ONSTACK 1
#define SS_DISABLE 2
#define SS_AUTODISARM (1 << 31)
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGBUS 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGSEGV 11
#define SIGSTKFLT 16
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGURG 23
#define SIGWINCH 28
#define SIGSYS 31
#define BIT(sig) (1ul << ((sig)-1))
#define SI_TKILL (-6)
#define SI_TIMER (-2)
#define SIGEV_THREAD_ID 4
#define SYS_USER_DISPATCH 2

#define CLONE_VM 0x100ul
#define CLONE_FS 0x200ul
#define CLONE_FILES 0x400ul
#define CLONE_SIGHAND 0x800ul
#define CLONE_PIDFD 0x1000ul
#define CLONE_VFORK 0x4000ul
#define CLONE_PARENT 0x8000ul
#define CLONE_THREAD 0x10000ul
#define CLONE_SYSVSEM 0x40000ul
#define CLONE_SETTLS 0x80000ul
#define CLONE_PARENT_SETTID 0x100000ul
#define CLONE_CHILD_CLEARTID 0x200000ul
#define CLONE_CHILD_SETTID 0x1000000ul
#define CLONE_NS_MASK 0x7e020080ul /* new namespaces (mount, cgroup, uts, ipc, user, pid, net, time) */
#define CLONE_CLEAR_SIGHAND 0x100000000ul

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_WAITERS 0x80000000u
#define FUTEX_OWNER_DIED 0x40000000u
#define FUTEX_TID_MASK 0x3fffffffu

#define PR_GET_DUMPABLE 3
#define PR_SET_DUMPABLE 4
#define PR_GET_TSC 25
#define PR_SET_TSC 26
#define PR_TSC_ENABLE 1
#define PR_TSC_SIGSEGV 2
#define PR_SET_SECCOMP 22
#define PR_GET_SECCOMP 21
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_GET_AUXV 0x41555856
#define PR_SET_PTRACER 0x59616d61
#define PR_GET_TID_ADDRESS 40
#define ARCH_SET_GS 0x1001
#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003
#define ARCH_GET_GS 0x1004
#define ARCH_GET_CPUID 0x1011
#define ARCH_SET_CPUID 0x1012

#define AT_NULL 0
#define AT_IGNORE 1
#define AT_SYSINFO_EHDR 33
#define AT_HWCAP2 26

#define O_CREAT 0100
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCK_MONOTONIC_RAW 4
#define CLOCK_MONOTONIC_COARSE 6
#define MSG_NOSIGNAL 0x4000
#define MSG_DONTWAIT 0x40
#define MSG_CMSG_CLOEXEC 0x40000000
#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define AF_UNIX 1
#define SOCK_SEQPACKET 5
#define SOCK_CLOEXEC 02000000
#define F_DUPFD 0
#define F_DUPFD_CLOEXEC 1030
#define F_SETFD 2
#define F_GETFL 3
#define O_NONBLOCK 04000
#define O_TRUNC 01000
#define O_CLOEXEC 02000000
#define POLLIN 1
#define POLLHUP 16
#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFCHR 0020000
#define S_IFSOCK 0140000
#define S_IFDIR 0040000

#endif
