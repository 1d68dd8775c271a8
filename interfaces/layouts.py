"""Layouts of the kernel's structures: sizes and, where a structure is shown, its fields.

A field list is a C declaration in short: `name:type`, offsets follow from C's alignment rules on x86-64.
A type is a scalar of `SCALARS`, another layout, or either followed by `[n]`; `u32|set` is bits named by a
flag set, `s32=set` a value named by an enumeration. Fields named `_...` are not shown. An opaque layout has
a size only. tests/unit/test_interfaces_layouts.py compares sizes with the C headers.
"""

from __future__ import annotations

from dataclasses import dataclass

SCALARS: dict[str, tuple[int, bool]] = {
    "u8": (1, False), "s8": (1, True), "u16": (2, False), "s16": (2, True), "u32": (4, False),
    "s32": (4, True),
    "u64": (8, False), "s64": (8, True), "x8": (1, False), "x16": (2, False), "x32": (4, False),
    "x64": (8, False),
    "ptr": (8, False), "dev": (8, False), "mode": (4, False), "mode16": (2, False), "fd": (4, True),
    "pid": (4, True),
    "uid": (4, False), "sec": (8, True), "nsec": (8, True), "signo": (4, True), "sigset": (8, False),
    "ticks": (8, True), "ino": (8, False), "be16": (2, False), "be32": (4, False), "rlim": (8, False),
    "char": (1, False), "cpu": (4, False), "waitstatus": (4, True),
}  # fmt: skip
"""Scalar types: bytes, signed. Several mean something: a decoder shows them so, and can hide times."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field at `offset`: `count` values of `type` (a scalar or a layout), named by `of` as `naming` says.

    `naming` is "" (none), "|" (a flag set) or "=" (an enumeration); `array` tells `x[1]` from `x`.
    """

    name: str
    type: str
    offset: int
    count: int = 1
    array: bool = False
    naming: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """A structure: `size` bytes, aligned to `align`; no fields where it is opaque."""

    name: str
    size: int
    align: int
    fields: tuple[Field, ...]


LAYOUTS: dict[str, Layout] = {}


def size_of(type: str) -> int:
    """Bytes of a scalar or layout; KeyError for an unknown name."""
    return SCALARS[type][0] if type in SCALARS else LAYOUTS[type].size


def _align_of(type: str) -> int:
    return SCALARS[type][0] if type in SCALARS else LAYOUTS[type].align


def _parse(text: str, offset: int, packed: bool) -> tuple[Field, int]:
    name, _, type = text.partition(":")
    count, array = 1, type.endswith("]")
    if array:
        type, _, number = type[:-1].partition("[")
        count = int(number)
    naming, of = "", ""
    for mark in "|=":
        if mark in type:
            type, naming, of = (*type.partition(mark),)
    align = 1 if packed else _align_of(type)
    offset = (offset + align - 1) // align * align
    return Field(name, type, offset, count, array, naming, of), align


def layout(name: str, fields: str, *, packed: bool = False, size: int = 0) -> None:
    """Declare a layout; `size` is checked against what the fields add up to."""
    parsed: list[Field] = []
    offset, align = 0, 1
    for text in fields.split():
        one, field_align = _parse(text, offset, packed)
        align = max(align, field_align)
        parsed.append(one)
        offset = one.offset + one.count * size_of(one.type)
    total = (offset + align - 1) // align * align
    if size and total != size:
        raise ValueError(f"{name}: fields add up to {total} bytes, stated are {size}")
    LAYOUTS[name] = Layout(name, total, align, tuple(parsed))


def opaque(**sizes: int) -> None:
    """Declare layouts of which only the size matters."""
    for name, size in sizes.items():
        LAYOUTS[name] = Layout(name, size, 8, ())


# time
layout("timespec", "tv_sec:sec tv_nsec:nsec", size=16)
layout("timeval", "tv_sec:sec tv_usec:nsec", size=16)
layout("timezone", "tz_minuteswest:s32 tz_dsttime:s32", size=8)
layout("itimerval", "it_interval:timeval it_value:timeval", size=32)
layout("itimerspec", "it_interval:timespec it_value:timespec", size=32)
layout("timespec_pair", "atime:timespec mtime:timespec", size=32)
layout("timeval_pair", "atime:timeval mtime:timeval", size=32)
layout("utimbuf", "actime:sec modtime:sec", size=16)
layout("tms", "tms_utime:ticks tms_stime:ticks tms_cutime:ticks tms_cstime:ticks", size=32)
layout(
    "timex",
    "modes:u32|adjtimex offset:ticks freq:s64 maxerror:ticks esterror:ticks status:s32|timestatus "
    "constant:s64 "
    "precision:s64 tolerance:s64 time:timeval tick:s64 ppsfreq:s64 jitter:ticks shift:s32 stabil:s64 "
    "jitcnt:ticks "
    "calcnt:ticks errcnt:ticks stbcnt:ticks tai:s32 _pad:u32[11]",
    size=208,
)

# files
layout(
    "stat",
    "st_dev:dev st_ino:ino st_nlink:u64 st_mode:mode st_uid:uid st_gid:uid _pad:u32 st_rdev:dev st_size:s64 "
    "st_blksize:s64 st_blocks:s64 st_atime:timespec st_mtime:timespec st_ctime:timespec _unused:s64[3]",
    size=144,
)
layout("statx_timestamp", "tv_sec:sec tv_nsec:u32 _pad:s32", size=16)
layout(
    "statx",
    "stx_mask:u32|statx stx_blksize:u32 stx_attributes:u64|statx_attr stx_nlink:u32 stx_uid:uid stx_gid:uid "
    "stx_mode:mode16 _pad:u16 stx_ino:ino stx_size:u64 stx_blocks:u64 stx_attributes_mask:u64|statx_attr "
    "stx_atime:statx_timestamp stx_btime:statx_timestamp stx_ctime:statx_timestamp stx_mtime:statx_timestamp "
    "stx_rdev_major:u32 stx_rdev_minor:u32 stx_dev_major:u32 stx_dev_minor:u32 stx_mnt_id:u64 "
    "stx_dio_mem_align:u32 stx_dio_offset_align:u32 _spare:u64[12]",
    size=256,
)
layout(
    "statfs",
    "f_type:s64=fstype f_bsize:s64 f_blocks:u64 f_bfree:ticks f_bavail:ticks f_files:u64 f_ffree:ticks "
    "f_fsid:s32[2] "
    "f_namelen:s64 f_frsize:s64 f_flags:s64|statfs _spare:s64[4]",
    size=120,
)
layout("ustat", "f_tfree:s32 f_tinode:u64 _f_fname:char[6] _f_fpack:char[6]", size=32)
layout("flock", "l_type:s16=locktype l_whence:s16=seek l_start:s64 l_len:s64 l_pid:pid", size=32)
layout("f_owner_ex", "type:s32=fowner pid:pid", size=8)
layout("open_how", "flags:u64|open mode:u64 resolve:u64|resolve", size=24)
layout("iovec", "iov_base:ptr iov_len:u64", size=16)
layout("pollfd", "fd:fd events:s16|poll revents:s16|poll", size=8)
layout("epoll_event", "events:u32|epoll data:x64", packed=True, size=12)
layout("file_handle", "handle_bytes:u32 handle_type:s32", size=8)
layout("file_attr", "fa_xflags:u64 fa_extsize:u32 fa_nextents:u32 fa_projid:u32 fa_cowextsize:u32", size=24)
layout("xattr_args", "value:ptr size:u32 flags:u32|xattr", size=16)
layout("cachestat_range", "off:u64 len:u64", size=16)
layout("cachestat", "nr_cache:u64 nr_dirty:u64 nr_writeback:u64 nr_evicted:u64 nr_recently_evicted:u64",
size=40)
layout("fd_pair", "read:fd write:fd", size=8)
layout("uid_pair", "uid:uid euid:uid", size=8)
layout("dqblk",
"dqb_bhardlimit:u64 dqb_bsoftlimit:u64 dqb_curspace:u64 dqb_ihardlimit:u64 dqb_isoftlimit:u64 "
       "dqb_curinodes:u64 dqb_btime:sec dqb_itime:sec dqb_valid:x32", size=72)  # fmt: skip
layout("nextdqblk",
"dqb_bhardlimit:u64 dqb_bsoftlimit:u64 dqb_curspace:u64 dqb_ihardlimit:u64 dqb_isoftlimit:u64 "
       "dqb_curinodes:u64 dqb_btime:sec dqb_itime:sec dqb_valid:x32 dqb_id:u32", size=72)  # fmt: skip
layout("dqinfo", "dqi_bgrace:u64 dqi_igrace:u64 dqi_flags:x32 dqi_valid:x32", size=24)
opaque(fs_disk_quota=112, fs_quota_stat=80, fs_quota_statv=160, mnt_id_req=32)
layout("mount_attr", "attr_set:x64 attr_clr:x64 propagation:x64 userns_fd:u64", size=32)

# processes
layout("rlimit", "rlim_cur:rlim rlim_max:rlim", size=16)
layout(
    "rusage",
    "ru_utime:timeval ru_stime:timeval ru_maxrss:ticks _ru_ixrss:s64 _ru_idrss:s64 _ru_isrss:s64 "
    "ru_minflt:ticks "
    "ru_majflt:ticks _ru_nswap:s64 ru_inblock:ticks ru_oublock:ticks _ru_msgsnd:s64 _ru_msgrcv:s64 "
    "_ru_nsignals:s64 "
    "ru_nvcsw:ticks ru_nivcsw:ticks",
    size=144,
)
layout(
    "utsname",
    "sysname:char[65] nodename:char[65] release:char[65] version:char[65] machine:char[65] "
    "domainname:char[65]",
    size=390,
)
layout(
    "sysinfo",
    "uptime:ticks loads:ticks[3] totalram:u64 freeram:ticks sharedram:ticks bufferram:ticks "
    "totalswap:u64 "
    "freeswap:ticks procs:u16 _pad:u16 totalhigh:u64 freehigh:u64 mem_unit:u32",
    size=112,
)
layout("sched_param", "sched_priority:s32", size=4)
layout(
    "sched_attr",
    "size:u32 sched_policy:u32=sched sched_flags:x64 sched_nice:s32 sched_priority:u32 sched_runtime:u64 "
    "sched_deadline:u64 sched_period:u64 sched_util_min:u32 sched_util_max:u32",
    size=56,
)
layout(
    "clone_args",
    "flags:u64|clone3 pidfd:ptr child_tid:ptr parent_tid:ptr exit_signal:u64=signal stack:ptr "
    "stack_size:u64 tls:ptr "
    "set_tid:ptr set_tid_size:u64 cgroup:u64",
    size=88,
)
layout("cap_header", "version:x32 pid:pid", size=8)
layout("cap_data", "effective:x32 permitted:x32 inheritable:x32", size=12)
layout("cap_data2", "low:cap_data high:cap_data", size=24)
layout("sock_filter", "code:x16 jt:u8 jf:u8 k:x32", size=8)
layout("sock_fprog", "len:u16 filter:ptr", size=16)
layout("robust_list_head", "list:ptr futex_offset:s64 list_op_pending:ptr", size=24)
layout("user_desc", "entry_number:s32 base_addr:x32 limit:x32 flags:x32", size=16)
layout("prctl_mm_map", "words:x64[13]", size=104)
layout("user_regs", "regs:x64[27]", size=216)
opaque(user_fpregs=512, ptrace_rseq=24, seccomp_metadata=16, seccomp_notif_sizes=6, pkey_info=56,
sud_config=32)
layout("futex_waitv", "val:u64 uaddr:ptr flags:u32|futex2 _reserved:u32", size=24)
layout("perf_event_attr", "type:u32 size:u32 config:x64 sample_period:u64", size=24)

# signals
layout("sigaction", "sa_handler:ptr sa_flags:u64|sa sa_restorer:ptr sa_mask:sigset", size=32)
layout("stack_t", "ss_sp:ptr ss_flags:s32|sigaltstack ss_size:u64", size=24)
layout("siginfo", "si_signo:signo si_errno:s32 si_code:s32 _pad:s32 _fields:u64[14]", size=128)
layout("waitid_info",
"si_signo:signo si_errno:s32 si_code:s32=cld _pad:s32 si_pid:pid si_uid:uid si_status:s32", size=28)
layout("sigevent", "sigev_value:x64 sigev_signo:signo sigev_notify:s32=sigev sigev_tid:pid _pad:s32[11]",
size=64)
layout("sigset_arg", "ss:ptr ss_len:u64", size=16)

# sockets
layout(
    "msghdr",
    "msg_name:ptr msg_namelen:u32 msg_iov:ptr msg_iovlen:u64 msg_control:ptr msg_controllen:u64 "
    "msg_flags:s32|msg",
    size=56,
)
layout("mmsghdr", "msg_hdr:msghdr msg_len:u32", size=64)
layout("linger", "l_onoff:s32 l_linger:s32", size=8)
layout("ucred", "pid:pid uid:uid gid:uid", size=12)

# ipc
layout("ipc_perm",
"key:x32 uid:uid gid:uid cuid:uid cgid:uid mode:u32 seq:u16 _pad2:u16 _unused1:u64 _unused2:u64", size=48)
layout("shmid_ds",
"shm_perm:ipc_perm shm_segsz:u64 shm_atime:sec shm_dtime:sec shm_ctime:sec shm_cpid:pid shm_lpid:pid "
       "shm_nattch:u64 _unused4:u64 _unused5:u64", size=112)  # fmt: skip
layout("semid_ds",
"sem_perm:ipc_perm sem_otime:sec _u2:u64 sem_ctime:sec _u3:u64 sem_nsems:u64 _u4:u64 _u5:u64", size=104)
layout("msqid_ds",
"msg_perm:ipc_perm msg_stime:sec msg_rtime:sec msg_ctime:sec msg_cbytes:u64 msg_qnum:u64 msg_qbytes:u64 "
       "msg_lspid:pid msg_lrpid:pid _u4:u64 _u5:u64", size=120)  # fmt: skip
layout("sembuf", "sem_num:u16 sem_op:s16 sem_flg:s16|semop", size=6)
layout("seminfo", "values:s32[10]", size=40)
layout("shminfo", "shmmax:u64 shmmin:u64 shmmni:u64 shmseg:u64 shmall:u64 _unused:u64[4]", size=72)
layout("shm_info", "used_ids:s32 shm_tot:u64 shm_rss:u64 shm_swp:u64 swap_attempts:u64 swap_successes:u64",
size=48)
layout("msginfo", "values:s32[7] msgseg:u16", size=32)
layout("mq_attr", "mq_flags:s64|open mq_maxmsg:s64 mq_msgsize:s64 mq_curmsgs:s64 _reserved:s64[4]", size=64)

# terminals
layout("termios",
"c_iflag:u32|iflag c_oflag:u32|oflag c_cflag:u32|cflag c_lflag:u32|lflag c_line:u8 c_cc:x8[19]", size=36)
layout("termios2",
"c_iflag:u32|iflag c_oflag:u32|oflag c_cflag:u32|cflag c_lflag:u32|lflag c_line:u8 c_cc:x8[19] "
       "c_ispeed:u32 c_ospeed:u32", size=44)  # fmt: skip
layout("termio",
"c_iflag:u16|iflag c_oflag:u16|oflag c_cflag:u16|cflag c_lflag:u16|lflag c_line:u8 c_cc:x8[8]", size=18)
layout("winsize", "ws_row:u16 ws_col:u16 ws_xpixel:u16 ws_ypixel:u16", size=8)

# devices and file systems behind ioctl
layout("ifreq", "ifr_name:char[16] ifr_data:x64[3]", size=40)
layout("ifconf", "ifc_len:s32 ifc_buf:ptr", size=16)
layout("fsxattr",
"fsx_xflags:x32 fsx_extsize:u32 fsx_nextents:u32 fsx_projid:u32 fsx_cowextsize:u32 _pad:u8[8]", size=28)
layout("file_clone_range", "src_fd:s64 src_offset:u64 src_length:u64 dest_offset:u64", size=32)
layout("file_dedupe_range", "src_offset:u64 src_length:u64 dest_count:u16 _reserved1:u16 _reserved2:u32",
size=24)
layout("fiemap",
"fm_start:u64 fm_length:u64 fm_flags:x32 fm_mapped_extents:u32 fm_extent_count:u32 _reserved:u32", size=32)
layout("rtc_time",
"tm_sec:s32 tm_min:s32 tm_hour:s32 tm_mday:s32 tm_mon:s32 tm_year:s32 tm_wday:s32 tm_yday:s32 tm_isdst:s32",
       size=36)  # fmt: skip
layout("hd_geometry", "heads:u8 sectors:u8 cylinders:u16 start:u64", size=16)
layout("vt_stat", "v_active:u16 v_signal:u16 v_state:u16", size=6)
layout("vt_sizes", "v_rows:u16 v_cols:u16 v_scrollsize:u16", size=6)
layout("kbentry", "kb_table:u8 kb_index:u8 kb_value:x16", size=4)
layout("kbsentry", "kb_func:u8 kb_string:u8[512]", size=513)
layout("kbdiacrs", "kb_cnt:u32 kbdiacr:u8[768]", size=772)
layout("kbdiacrsuc", "kb_cnt:u32 kbdiacruc:u32[768]", size=3076)
layout("kbkeycode", "scancode:u32 keycode:u32", size=8)
layout("kbd_repeat", "delay:s32 period:s32", size=8)
layout("unimapdesc", "entry_ct:u16 entries:ptr", size=16)
layout("unimapinit", "advised_hashsize:u16 advised_hashstep:u16 advised_hashlevel:u16", size=6)
layout("uniscrnmap", "map:x16[256]", size=512)
layout("console_cmap", "map:x8[48]", size=48)
layout("vt_mode", "mode:u8 waitv:u8 relsig:s16 acqsig:s16 frsig:s16", size=8)
opaque(
    serial_struct=72, serial_rs485=32, hd_driveid=512, loop_info=168, loop_info64=232, loop_config=304,
    arpreq=68,
    rtentry=120, iwreq=32, sg_io_hdr=88, drm_version=64, drm_unique=16, verity_digest=4, fscrypt_policy=12,
    fscrypt_policy_ex=8, fscrypt_salt=16, fstrim_range=24, file_handle_max=136, name_128=128, name_256=256,
    bytes_8=8, bytes_16=16, bytes_24=24, bytes_32=32, bytes_64=64, bytes_80=80, bytes_96=96, bytes_260=260,
    bytes_312=312, iovec_header=8,
)  # fmt: skip
