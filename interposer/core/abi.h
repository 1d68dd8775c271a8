/* abi.h - everything the core shares with Python: addresses, the ring, events, messages.
 *
 * Guarantees: the layouts here are the ones `interfaces/abi.py` states; every size and offset that Python
 * relies on is asserted below, and tests/unit/test_abi.py compares the two. All integers are little-endian.
 *
 * One *ring* belongs to one *domain* (an address space, or several that share writable memory). The baton
 * holder is its only writer (recording) or reader (replaying), so no lock is needed around the log itself.
 */
#ifndef RR_ABI_H
#define RR_ABI_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int s32;
typedef long s64;

#define RR_ABI_VERSION 1u

/* ---- where the core lives; no program is ever placed here by the kernel or by a sanitizer's shadow ---- */
#define RR_BASE 0x7ea000000000ul
#define RR_TEXT RR_BASE                      /* r-x, file offset 0 */
#define RR_DATA (RR_BASE + 0x200000ul)       /* rw-, file offset RR_DATA - RR_BASE is not used: see core.ld */
#define RR_GLOBAL (RR_BASE + 0x800000ul)     /* struct rr_global, shared by the whole recording */
#define RR_RING (RR_BASE + 0x1000000ul)      /* struct rr_ring and the slots of this domain */
#define RR_STUBS (RR_BASE + 0x4000000ul)     /* code that patched call sites go through */
#define RR_BOOT (RR_BASE + 0x2000000ul)      /* replay: the boot plan of a new image (struct rr_boot) */
#define RR_THREADS (RR_BASE + 0x10000000ul)  /* thread blocks */
#define RR_THREAD_STRIDE 0x40000ul
#define RR_MAX_THREADS 32768ul
#define RR_SCRATCH (RR_BASE + 0x400000000ul) /* large scratch buffers */
#define RR_END (RR_BASE + 0x1000000000ul)
/* Pointers to the stubs, where a jump through a 32-bit address reaches them: below 2 GB, under ASan's shadow. */
#define RR_SLOT_TABLE 0x7ffe0000ul
#define RR_SLOT_TABLE_SIZE 0x10000ul

/* ---- hidden descriptors, counted from rr_global.fd_base ---- */
#define RR_FD_HELLO 0   /* SOCK_SEQPACKET, core -> tool, shared by every process; survives exec */
#define RR_FD_IMAGE 1   /* the core's own ELF file; survives exec */
#define RR_FD_GLOBAL 2  /* memfd of struct rr_global; survives exec */
#define RR_FD_CONTROL 3 /* this process's private SOCK_SEQPACKET to the tool; close-on-exec */
#define RR_FD_OUT 4     /* replay: the tool's stdout */
#define RR_FD_ERR 5     /* replay: the tool's stderr */
#define RR_FD_SPARE 6   /* used for a moment (memfd of a new ring, received descriptors) */
#define RR_FD_DIRTY 7   /* recording: the userfaultfd that watches which pages are written; close-on-exec */
#define RR_FD_COUNT 8

/* ---- one event: 96 bytes ---- */
enum rr_kind {
  RR_K_SYSCALL = 1,    /* a completed call; result -512 (RR_RESTART): interrupted, will be made again */
  RR_K_RELEASE = 2,    /* a call that may block begins: the task gives up the baton (only with other tasks about) */
  RR_K_SIGNAL = 3,     /* a signal delivered to the task: nr = signo, payload region = siginfo (128 bytes);
                          args[0] = RR_SIG_*, args[1] = handler address, args[2] = frame sp, args[3] = rax of the context */
  RR_K_RDTSC = 4,      /* result = the 64-bit counter; args[0] = 1 for RDTSCP (args[1] = TSC_AUX) */
  RR_K_CPUID = 5,      /* args[0], args[1] = leaf, subleaf; args[2..5] = eax, ebx, ecx, edx */
  RR_K_TASK_START = 6, /* first event of a thread or of a child that shares the domain; args[0] = creator's tid,
                          args[1] = process id, args[2] = 1: a new process, args[3] = 1: a vfork's child */
  RR_K_TASK_EXIT = 7,  /* the thread ends; result = its exit code */
  RR_K_EXEC = 8,       /* first event of a domain that an execve made; args[0] = entry, args[1] = stack pointer */
  RR_K_FORK = 9,       /* first event of a domain that a fork made; args[0] = parent's domain, args[1] = parent's pid */
  RR_K_PREEMPT = 10,   /* stopped between calls: payload = registers and pages; see docs/trace-format.md */
  RR_K_YIELD = 11,     /* fair hand-over at a call */
  RR_K_DATA = 12,      /* payload that did not fit into the same task's next event; result = that event's
                          kind. RR_K_PREEMPT: memory to be written at once, after the event before */
  RR_K_CHECKSUM = 13,  /* result = hash of all writable memory; args[0] = bytes hashed */
  RR_K_DEATH = 14,     /* the process is about to die of signal nr; args[0] = RR_SIG_ENTRY: at the call it makes next */
  RR_K_EXECED = 15,    /* written by the recorder: this task's execve succeeded; args[0] = the new domain */
  RR_K_STOPPED = 16,   /* recording stops here while the program goes on; result = RR_STOP_* */
  RR_K_RESUME = 17,    /* the task got the baton back after YIELD or PREEMPT */
  RR_K_LIBCALL = 18,   /* a library call; see docs/interfaces.md */
  RR_K_JOIN = 19,    /* last event of a process in this log, which it leaves for that of domain args[0], because it will
                        share memory with it; args[1] = process id, args[2] = its tasks */
  RR_K_JOINED = 20,  /* first event of a process that came from domain args[0]; args[1], args[2] as above */
};
#define RR_RESTART (-512l)

enum rr_event_flag {
  RR_EF_PRECISE = 1, /* time_in and time_out are exact (else of the coarse clock, a few ms) */
  RR_EF_ECHO_OUT = 2, /* wrote to the recording's stdout; a region RR_R_SEQ holds the output sequence number */
  RR_EF_ECHO_ERR = 4, /* wrote to the recording's stderr */
  RR_EF_BLOCKED = 8,  /* the result follows an RR_K_RELEASE of the same call */
  RR_EF_UNKNOWN = 16, /* the call is not in the table (or refused by design): the core answered by itself */
  RR_EF_PATCHED = 32, /* came through a patched call site */
};

/* how a signal event relates to the code around it (args[0]) */
enum rr_sig_place {
  RR_SIG_ENTRY = 1, /* before the call the task was about to make: the call is made again after the handler */
  RR_SIG_EXIT = 2,  /* after the call whose event precedes */
  RR_SIG_FAULT = 3, /* a fault of the program's own instruction */
  RR_SIG_PREEMPT = 4, /* at the place the preceding RR_K_PREEMPT describes */
};

struct rr_event {
  u32 task;        /* kernel thread id at recording time */
  u8 kind;         /* enum rr_kind */
  u8 flags;        /* enum rr_event_flag */
  u16 nr;          /* system-call number (signal number for RR_K_SIGNAL and RR_K_DEATH) */
  u64 ip;          /* address after the syscall instruction */
  u64 args[6];
  s64 result;
  u64 time_in;     /* CLOCK_MONOTONIC, ns */
  u64 time_out;
  u32 payload_off; /* from the start of the slot's payload area */
  u32 payload_len; /* whole regions, each padded to 8 */
};
_Static_assert(sizeof(struct rr_event) == 96, "event");

/* ---- payload: a sequence of regions ---- */
enum rr_region_kind {
  RR_R_OUT = 1,   /* memory the call wrote: replay writes it */
  RR_R_IN = 2,    /* memory the call read (maybe a prefix): replay compares it */
  RR_R_FILE = 3,  /* what a mapping shows: struct rr_mapped */
  RR_R_SEQ = 4,   /* u64: position of this output among all echoed outputs of the recording; then, where the
                     call has no buffer of the program's, what it put out */
  RR_R_REGS = 5,  /* RR_K_PREEMPT: struct rr_regs, then the XSAVE image */
  RR_R_INFO = 6,  /* siginfo (128 bytes) */
  RR_R_PATH = 7,  /* the path a descriptor or a name stands for (not compared) */
  RR_R_SIZE = 9,   /* u64: bytes of a System V segment that was attached */
  RR_R_DOMAIN = 8, /* u64: the domain of the child that a clone made (the parent's own: it shares it) */
  RR_R_LENGTH = 10, /* a file that is mapped shared has another length: struct rr_length */
  RR_R_FILL = 11, /* as RR_R_OUT, of memory that holds one word again and again: struct rr_fill */
};
struct rr_region {
  u64 addr; /* in the program's memory; 0 where there is none */
  u32 len;  /* bytes that follow, without padding */
  u8 kind;  /* enum rr_region_kind */
  u8 arg;   /* which argument it belongs to, 255: none */
  u16 full_hi; /* RR_R_IN: see full */
};
_Static_assert(sizeof(struct rr_region) == 16, "region");

/* CPUID (0f a2) becomes cd a2 (INT 0xa2), which is the kernel's alone: a fault of the same length that no program causes,
 * and one that a virtual machine takes without its host, unlike an invalid instruction. */
#define RR_CPUID_BYTE 0xcd
/* Among the recorder's sites and a boot plan's: there may be others, CPUID must trap (RR_GF_LATE_FAULT); in RR_R_FILE, the last offset. */
#define RR_CPUID_TRAPS 0u
#define RR_TRAPS_MARK 0xffffffffu

struct rr_mapped { /* RR_R_FILE */
  u32 file;     /* number in the trace's file table; 0: nothing stored (a device, or anonymous after all) */
  u32 npatches; /* u32 offsets from the mapping's start follow: CPUID instructions (0f a2) replaced (cd a2) */
};

struct rr_length { /* RR_R_LENGTH */
  u32 file; /* number of one of the mappings of that file */
  u32 pad;
  u64 bytes;
};

#define RR_FILL_MIN 64u      /* less is stored as it is */
#define RR_FILL_MAX 65536u   /* bytes of one region */
#define RR_FILLS_MAX 0x2000000u /* bytes of all regions of an event: what a reader may have to unfold */

struct rr_fill { /* RR_R_FILL */
  u64 bytes;
  u64 word;
};
_Static_assert(sizeof(struct rr_fill) == 16, "fill");

/* ---- the ring ---- */
#define RR_SLOTS 8u
#define RR_SLOT_SIZE 0x100000u
#define RR_SLOT_EVENTS 4096u
#define RR_SLOT_EVENTS_OFF 64u
#define RR_SLOT_PAYLOAD_OFF (RR_SLOT_EVENTS_OFF + RR_SLOT_EVENTS * 96u)
#define RR_SLOT_PAYLOAD_MAX (RR_SLOT_SIZE - RR_SLOT_PAYLOAD_OFF)
#define RR_RING_CTL 0x10000u
#define RR_RING_SIZE (RR_RING_CTL + RR_SLOTS * RR_SLOT_SIZE)

enum rr_slot_state { RR_SLOT_FREE = 0, RR_SLOT_OPEN = 1, RR_SLOT_SEALED = 2 };

struct rr_slot { /* first 64 bytes of each slot */
  u32 state;        /* futex: whoever waits for a change waits here */
  u32 nevents;      /* published last, with release order: events [0, nevents) are whole */
  u32 payload_used; /* published before nevents */
  u32 last;         /* replay: 1: no slot follows this one, the log ends here */
  u64 first_event;  /* number of events[0] in the domain */
  u64 sequence;     /* slot number since the start: slot index = sequence % RR_SLOTS */
  u8 pad[32];
};
_Static_assert(sizeof(struct rr_slot) == 64, "slot");

enum rr_ring_state {
  RR_RECORDING = 1,
  RR_UNRECORDED = 2, /* set by the recorder or by the core: the program goes on, nothing is logged */
  RR_REPLAYING = 3,
};

#define RR_TURN_WORDS 4096u

struct rr_ring { /* the first RR_RING_CTL bytes */
  u32 magic, version;
  u32 domain;
  u32 state;           /* enum rr_ring_state */
  u64 event_count;     /* events published (recording) or consumed (replaying) */
  u64 sequence;        /* slot being written or read */
  /* the baton */
  u32 baton;           /* 0: free; else the holder's tid, bit 31: tasks wait for it (futex word) */
  u32 last_holder;     /* tid that had it last */
  u32 grants;          /* counts hand-overs to another task */
  u32 ntasks;          /* tasks of the domain that live */
  u64 held_since;      /* CLOCK_MONOTONIC coarse ns, when the holder took it */
  u32 stopped_tasks;   /* recording: tasks that were preempted and want to go on */
  u32 pending_signals; /* recording: signals queued in the core that no call has come along to deliver */
  u64 pending_since;
  u64 one_domain;      /* the recorder's --one-domain */
  /* how it ended */
  u32 death_signal;    /* signal the process is about to die of, 0: none */
  u32 exit_code;
  u32 exited;          /* 1: exit_group reached */
  u32 stop_reason;     /* enum rr_stop */
  /* replay: where to pause, and what happened */
  u64 stop_at;         /* pause the task that has consumed this many events; ~0: never */
  u32 stopped;         /* futex: 1 while a task is parked at stop_at */
  u32 stopped_tid;
  u32 diverged;        /* enum rr_divergence */
  u32 diverged_tid;
  struct rr_event found; /* what the program did instead of the event that was next */
  u64 diverged_event;  /* number of the expected event */
  u64 diverged_regs;   /* address of the parked task's saved ucontext */
  u32 waiting_output;  /* replay: 1 while a task waits for its turn to write output */
  u32 owner;           /* replay: the task whose event is next (futex words: turn[]) */
  u64 waiting_seq;     /* the output sequence number it waits for */
  u64 checksum_every;  /* recording: hash writable memory after every so many events; 0: never */
  u64 wanting;         /* recording with --chaos: tasks that ask for the baton */
  u64 spin_patience;   /* recording: how long a task may have the baton before it looks whether it spins, ns; 0: it does not */
  u64 stops;           /* recording: events that preemptions made */
  u64 reserved[5];
  u32 turn[RR_TURN_WORDS]; /* replay: futex words, index = task % RR_TURN_WORDS; recording: tasks that have not ended in order */
};
_Static_assert(sizeof(struct rr_ring) <= RR_RING_CTL, "ring control");

enum rr_divergence {
  RR_DIV_NONE = 0,
  RR_DIV_CALL = 1,     /* another call than recorded */
  RR_DIV_ARGS = 2,     /* other arguments */
  RR_DIV_IP = 3,       /* from another place */
  RR_DIV_INPUT = 4,    /* other bytes where the call's input is */
  RR_DIV_FAULT = 5,    /* the program faults where the recorded one did not, or elsewhere */
  RR_DIV_CHECKSUM = 6, /* writable memory differs */
  RR_DIV_MEMORY = 7,   /* the address space cannot be laid out as recorded */
  RR_DIV_END = 8,      /* the log ended and the program goes on (an incomplete trace) */
  RR_DIV_KIND = 9,     /* something else than a call was next */
};

enum rr_stop {
  RR_STOP_NONE = 0,
  RR_STOP_RECORDER = 1, /* the recorder is gone */
  RR_STOP_DISK = 2,     /* the trace cannot be written */
  RR_STOP_REQUEST = 3,
};

/* ---- the page all processes of a recording share ---- */
#define RR_FILE_WRITES 16u
struct rr_file_write { /* bytes [from, to) of a file, which has `size` bytes now */
  u64 dev, ino, from, to, size;
};

struct rr_global {
  u32 magic, version;
  u32 mode;            /* enum rr_ring_state: RR_RECORDING or RR_REPLAYING */
  u32 tool_pid;
  u32 fd_base;         /* first hidden descriptor */
  u32 next_domain;     /* fetch-and-add; the first program's domain is 1 */
  u64 output_seq;      /* recording: next output number (fetch-and-add under output_lock);
                          replaying: the number whose turn it is (futex on the low word) */
  u32 output_lock;     /* recording: 0 or a tid; taken for a bounded time. Replaying: how many wait for their turn */
  u32 flags;           /* enum rr_global_flag */
  u64 out_dev, out_ino, out_rdev; /* the tool's stdout; ino 0: closed or not to be echoed */
  u64 err_dev, err_ino, err_rdev;
  u64 checksum_every;
  u64 slice_ns;        /* how long a task may keep the baton at calls while others wait */
  u64 replay_echo;     /* replaying: bit 0 stdout, bit 1 stderr are echoed; 0: nobody waits for a turn */
  u64 seed;            /* --chaos: start of the schedule's random numbers; 0: no chaos */
  u64 tsc_start, tsc_start_ns; /* recording: a reading of the time stamp counter, and of CLOCK_MONOTONIC_RAW then */
  u64 tsc_rate;                /* ticks a nanosecond, times 2^32; 0: not known yet */
  u64 reserved[13];
  /* recording: files that some process maps, and what was written to them */
  u32 mapped_generation; /* how many different files have been mapped */
  u32 writes_lock;       /* 0 or a tid; taken for a bounded time */
  u64 writes;            /* all so far; the latest stay in file_writes */
  struct rr_file_write file_writes[RR_FILE_WRITES];
};
_Static_assert(sizeof(struct rr_global) <= 4096, "global");

/* ---- behind it: files whose answer to RR_M_MAP_FILE holds as long as their status is the same, so that each is
 * asked for once. The recorder adds to them; `count` is published last. ---- */
#define RR_FILES (RR_GLOBAL + 0x1000ul)
#define RR_FILES_MAX 512u
#define RR_FILE_SITES_MAX 16384u
#define RR_GLOBAL_SIZE 0x20000u

struct rr_known_file {
  u64 dev, ino, size;
  u64 mtime, mtime_nsec, ctime, ctime_nsec;
  u32 file;   /* its number in the trace */
  u32 flags;  /* enum rr_known_flag */
  u32 nsites; /* CPUID instructions: file offsets, ascending, from sites[first_site] on */
  u32 first_site;
};
_Static_assert(sizeof(struct rr_known_file) == 72, "known file");

enum rr_known_flag {
  RR_KF_CODE = 1,   /* the answer holds for executable mappings, too */
  RR_KF_OWN = 2,    /* no file of the system's */
  RR_KF_SHARED = 4, /* it holds for shared mappings that cannot be written, of a descriptor that cannot either: nobody shares what
                       passes through them, and RR_M_SHARE need not be asked; without it, for private mappings */
};

struct rr_known_files {
  u32 count;
  u32 nsites;
  struct rr_known_file files[RR_FILES_MAX];
  u32 sites[RR_FILE_SITES_MAX];
};

/* ---- replaying, in the same place: files that the tool keeps open, so that RR_M_NEED_FILE need not be asked. It adds to
 * them; `count` is published last. ---- */
#define RR_OFFERS_MAX 64u

struct rr_offer {
  u32 file;  /* its number in the trace */
  u32 fd;    /* the tool's descriptor */
  u64 shift; /* what is to be added to an offset in the file */
};

struct rr_offers {
  u64 count;
  struct rr_offer offers[RR_OFFERS_MAX];
};
_Static_assert(sizeof(struct rr_offer) == 16, "offer");
_Static_assert(sizeof(struct rr_offers) <= sizeof(struct rr_known_files), "offers");

/* ---- behind those: for each hash of device and inode 0 where nobody has mapped such a file, else 1 and the writes to it ---- */
#define RR_FILE_VERSIONS (RR_GLOBAL + 0x1b000ul)
#define RR_FILE_HASHES 4096u
_Static_assert(sizeof(struct rr_known_files) + 0x1000 <= 0x1b000, "known files");
_Static_assert(0x1b000 + RR_FILE_HASHES * 4 <= RR_GLOBAL_SIZE, "versions");

enum rr_global_flag {
  RR_GF_NO_PATCH = 1,   /* RR_PY_PATCH=0 */
  RR_GF_ONE_DOMAIN = 2,
  RR_GF_NO_FAULT_CPUID = 4, /* ARCH_SET_CPUID does not work here: CPUID sites are patched instead */
  RR_GF_WATCH_CODE = 8, /* ... and in code that the program makes: see jit.c */
  RR_GF_LATE_FAULT = 32,   /* CPUID sites are patched, and CPUID traps once the program makes code: see latefault.c */
  RR_GF_STAMP = 16,     /* replaying: what the program writes is marked with process and event */
};

#define RR_RING_MAGIC 0x676e7272u   /* "rrng" */
#define RR_GLOBAL_MAGIC 0x6c677272u /* "rrgl" */

/* ---- messages; one datagram each, fixed size, descriptors by SCM_RIGHTS ---- */
enum rr_msg_type {
  /* core -> recorder */
  RR_M_HELLO_EXEC = 1, /* on RR_FD_HELLO; fds: ring memfd, control socket. a = domain */
  RR_M_HELLO_FORK = 2, /* same, from a forked child. a = domain, b = parent's domain, c = parent's pid, d = 1: same domain (no ring fd) */
  RR_M_SEALED = 3,     /* recording: a = sequence of the sealed slot. No answer */
  RR_M_EXEC = 4,       /* a = new domain, b = tasks of the domain that end when it succeeds;
                          answered when the caller is seized: result 0, or -1: cannot trace, exec unrecorded */
  RR_M_EXEC_FAILED = 5,/* the recorder detaches; answered after */
  RR_M_MAP_FILE = 6,   /* fd: the mapped file. a = address, b = length, c = file offset, d = prot | flags << 32;
                          answered: a = file number, b = npatches, d = 1: it is no file of the system's and may change; then npatches u32 file offsets of CPUID instructions in the same datagram */
  RR_M_REPORT = 7,     /* something the user must know. a = enum rr_report, b, c, d = details. No answer */
  RR_M_DEATH = 8,      /* about to die of signal a (also when replaying). No answer */
  RR_M_IMAGE_UNSAFE = 9,
  RR_M_SHARE = 10,     /* memory is about to be shared. a = enum rr_share, b = its identifier, c = 1: writable (| bytes << 1),
                          d = 1: other processes live in this domain; fd: the mapped object. Answered: a = the domain to
                          join, with an fd of its ring; or without an fd: stay. b = file number of a System V segment */
  RR_M_JOINED = 11,    /* the process has left its domain for domain a. No answer */
  /* core -> replayer */
  RR_M_NEED_RING = 16, /* on RR_FD_HELLO with fd: control socket. a = domain, b = recorded pid, c = 1: needs a boot plan too;
                          answered on the control socket with fds: ring memfd, [boot plan memfd, a = its bytes] */
  RR_M_NEED_FILE = 17, /* a = file number, b = file offset, c = length (0: the file of shared mappings as it is), d = prot | flags << 32; answered with fd and
                          a = offset to map it at; result != 0: not available */
  RR_M_STUCK = 18,     /* diverged, or stopped at stop_at, or the log ended: see the ring. No answer */
  RR_M_TASK = 19,      /* a = recorded tid, b = recorded pid, c = real tid: a task began to replay. No answer */
};

struct rr_msg {
  u32 type;
  s32 result;
  u32 pid, tid; /* kernel ids of the sender (in the sender's namespace) */
  u64 a, b, c, d;
};
_Static_assert(sizeof(struct rr_msg) == 48, "message");

enum rr_share { RR_SHARE_FILE = 1, RR_SHARE_SYSV = 2, RR_SHARE_ALL = 3 /* --one-domain: a new image */ };

enum rr_report {
  RR_REP_UNKNOWN_CALL = 1,   /* b = number: answered ENOSYS */
  RR_REP_UNKNOWN_IOCTL = 2,  /* b = request, option or command, c = call: its effect is not known; answered ENOTTY or EINVAL */
  RR_REP_SHARED_OUTSIDE = 3, /* b = address: memory shared with processes outside the recording */
  RR_REP_SHARED_LATE = 4,    /* b = inode, c = the other domain */
  RR_REP_REFUSED = 5,        /* b = number: refused by design (io_uring, rseq is silent) */
  RR_REP_SECCOMP = 6,        /* the program installed a seccomp filter: accepted, not applied */
  RR_REP_GS = 7,             /* the program wanted the GS base */
  RR_REP_COMPAT = 8,         /* a 32-bit system call */
  RR_REP_PTRACE = 9,
  RR_REP_FOREIGN_WRITE = 10, /* b = number: it was to write into the memory of another process; answered EPERM */
};

/* ---- replay: how to lay out a new image; a memfd mapped at RR_BOOT ---- */
enum rr_boot_op {
  RR_B_MAP = 1,  /* map len bytes at addr with prot; file = number or 0 (anonymous), off = offset in it */
  RR_B_DATA = 2, /* copy len bytes that follow (padded to 8) to addr */
  RR_B_STACK = 3,/* the main stack: [addr, addr + len), private; growing from its last `file` pages to the limit `off` where
                    that is not 0 and can be set here */
  RR_B_BRK = 4,  /* addr = the program break */
  RR_B_PATCH = 5,/* addr: a CPUID instruction, its first byte becomes RR_CPUID_BYTE */
  RR_B_START = 6,/* addr = entry, len = stack pointer; last */
};
struct rr_boot {
  u32 op;
  u32 prot;
  u32 file;
  u32 flags; /* 1: MAP_SHARED */
  u64 addr, len, off;
};
_Static_assert(sizeof(struct rr_boot) == 40, "boot");

#endif
