"""Text and fields of events: as strace shows them, the same for equal runs, and never an exception."""

from __future__ import annotations

import ctypes
import re
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interfaces.abi import EVENT_DTYPE, Event, Kind, Region, RegionKind
from interfaces.calls import BY_NAME, CALLS
from interfaces.decode import Field, decode_args, format_call, format_event
from interfaces.decode.events import signal_place, signal_sender
from interfaces.decode.field import PlainEvent

MAX = 2**64 - 1
OUT, IN, INFO = RegionKind.OUT, RegionKind.IN, RegionKind.INFO
Part = tuple[int, RegionKind, int, bytes]


def event(name: str, *args: int, result: int = 0, kind: int = Kind.SYSCALL) -> PlainEvent:
    words = tuple(arg & MAX for arg in args) + (0,) * (6 - len(args))
    return PlainEvent(77, kind, BY_NAME[name].number, words, result)


def regions(*parts: Part) -> list[Region]:
    return [Region(addr, kind, arg, data) for addr, kind, arg, data in parts]


STAT = struct.pack("<QQQIIIIQqqq9q", 0x801, 11, 1, 0o100644, 0, 0, 0, 0, 1234, 4096, 8, *range(9))
TTY = STAT[:24] + struct.pack("<I", 0o20620) + STAT[28:40] + struct.pack("<Q", 0x8803) + STAT[48:]
INET = struct.pack("<H", 2) + struct.pack(">H", 80) + bytes([127, 0, 0, 1]) + bytes(8)
INET6 = struct.pack("<H", 10) + struct.pack(">HI", 53, 0) + bytes(15) + b"\1" + bytes(4)
TERMIOS = struct.pack("<IIII", 0x500, 5, 0xBF, 0x8A3B) + bytes(20)
RIGHTS = struct.pack("<QIIiii", 24, 1, 1, 5, 6, 0)

LINES: list[tuple[PlainEvent, list[Part], str]] = [
    (event("openat", -100, 0x1000, 0o2000000, result=3), [(0x1000, IN, 1, b"/etc/passwd\0")],
     'openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3'),
    (event("openat", -100, 0x1000, 0o101, 0o644, result=-13), [(0x1000, IN, 1, b"x\0")],
     'openat(AT_FDCWD, "x", O_WRONLY|O_CREAT, 0644) = -1 EACCES (Permission denied)'),
    (event("read", 3, 0x2000, 100, result=5), [(0x2000, OUT, 1, b'h"l\x01\n')],
     r'read(3, "h\"l\1\n", 100) = 5'),
    (event("read", 3, 0x2000, 100), [], 'read(3, "", 100) = 0'),
    (event("read", 3, 0x2000, 100, result=-4), [],
     "read(3, 0x2000, 100) = -1 EINTR (Interrupted system call)"),
    (event("read", 3, 0x2000, 100, result=-512), [],
     "read(3, 0x2000, 100) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)"),
    (event("write", 1, 0x2000, 100, result=100), [(0x2000, IN, 1, b"x" * 64)],
     f'write(1, "{"x" * 32}"..., 100) = 100'),
    (event("fstat", 3, 0x10), [(0x10, OUT, 1, STAT)],
    "fstat(3, {st_mode=S_IFREG|0644, st_size=1234, ...}) = 0"),
    (event("fstat", 0, 0x10), [(0x10, OUT, 1, TTY)],
     "fstat(0, {st_mode=S_IFCHR|0620, st_rdev=makedev(0x88, 0x3), ...}) = 0"),
    (event("newfstatat", -100, 0x10, 0x20, 0x100, result=-2), [(0x10, IN, 1, b"gone\0")],
     'newfstatat(AT_FDCWD, "gone", 0x20, AT_SYMLINK_NOFOLLOW) = -1 ENOENT (No such file or directory)'),
    (event("mmap", 0, 4096, 3, 0x22, -1, result=0x7F0000000000), [],
     "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f0000000000"),
    (event("mprotect", 0x1000, 4096, 0), [], "mprotect(0x1000, 4096, PROT_NONE) = 0"),
    (event("poll", 0x10, 2, -1, result=1), [(0x10, OUT, 0, struct.pack("<ihhihh", 3, 1, 1, 4, 4, 0))],
     "poll([{fd=3, events=POLLIN, revents=POLLIN}, {fd=4, events=POLLOUT, revents=0}], 2, -1) = 1 "
     "([{fd=3, revents=POLLIN}])"),
    (event("poll", 0x10, 1, 5), [(0x10, OUT, 0, struct.pack("<ihh", 3, 1, 0))],
     "poll([{fd=3, events=POLLIN, revents=0}], 1, 5) = 0 (Timeout)"),
    (event("select", 4, 0x10, 0, 0, 0x20, result=1),
     [(0x10, IN, 1, b"\x08" + bytes(7)), (0x20, IN, 4, struct.pack("<qq", 1, 0)),
     (0x10, OUT, 1, b"\x08" + bytes(7)),
      (0x20, OUT, 4, struct.pack("<qq", 0, 5))],
     "select(4, [3], NULL, NULL, {tv_sec=1, tv_usec=0}) = 1 (in [3])"),
    (event("wait4", -1, 0x10, 1, 0, result=99), [(0x10, OUT, 1, struct.pack("<i", 256))],
     "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 1}], WNOHANG, NULL) = 99"),
    (event("wait4", -1, 0x10, 0, 0, result=99), [(0x10, OUT, 1, struct.pack("<i", 0x8B))],
     "wait4(-1, [{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}], 0, NULL) = 99"),
    (event("execve", 0x10, 0x20, 0x30, result=-2),
     [(0x10, IN, 0, b"/bin/ls\0"), (0x99, IN, 1, b"ls\0"), (0xA9, IN, 1, b"-l\0"), (0xB9, IN, 2, b"A=1\0")],
     'execve("/bin/ls", ["ls", "-l"], 0x30 /* 1 vars */) = -1 ENOENT (No such file or directory)'),
    (event("connect", 3, 0x10, 16, result=-111), [(0x10, IN, 1, INET)],
     'connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = '
     "-1 ECONNREFUSED (Connection refused)"),
    (event("bind", 3, 0x10, 28), [(0x10, IN, 1, INET6)],
     'bind(3, {sa_family=AF_INET6, sin6_port=htons(53), sin6_flowinfo=htonl(0), '
     'sin6_addr=inet_pton(AF_INET6, "::1"), sin6_scope_id=0}, 28) = 0'),
    (event("recvfrom", 3, 0x10, 10, 0x20, 0x20, 0x30, result=3),
     [(0x10, OUT, 1, b"abc"), (0x20, OUT, 4, b"\x01\0/tmp/x\0"), (0x30, OUT, 5, struct.pack("<I", 9))],
     'recvfrom(3, "abc", 10, MSG_TRUNC, {sa_family=AF_UNIX, sun_path="/tmp/x"}, [9]) = 3'),
    (event("recvmsg", 3, 0x10, 0, result=4),
     [(0x10, OUT, 1, struct.pack("<QIIQQQQiI", 0, 0, 0, 0x100, 1, 0x300, 24, 0, 0)),
      (0x100, IN, 1, struct.pack("<QQ", 0x200, 10)), (0x200, OUT, 1, b"abcd"), (0x300, OUT, 1, RIGHTS)],
     'recvmsg(3, {msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="abcd", iov_len=10}], msg_iovlen=1, '
     "msg_control=[{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[5, 6]}], "
     "msg_controllen=24, msg_flags=0}, 0) = 4"),
    (event("writev", 1, 0x10, 2, result=5),
     [(0x10, IN, 1, struct.pack("<QQQQ", 0x100, 3, 0x200, 2)), (0x100, IN, 1, b"abc"), (0x200, IN, 1, b"de")],
     'writev(1, [{iov_base="abc", iov_len=3}, {iov_base="de", iov_len=2}], 2) = 5'),
    (event("socket", 2, 0o2000001, 6, result=3), [],
     "socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_TCP) = 3"),
    (event("setsockopt", 3, 1, 2, 0x10, 4), [(0x10, IN, 3, struct.pack("<i", 1))],
     "setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0"),
    (event("getsockopt", 3, 1, 4, 0x10, 0x20),
     [(0x10, OUT, 3, struct.pack("<i", 111)), (0x20, OUT, 4, struct.pack("<I", 4))],
     "getsockopt(3, SOL_SOCKET, SO_ERROR, [ECONNREFUSED], [4]) = 0"),
    (event("epoll_ctl", 4, 1, 5, 0x10), [(0x10, IN, 3, struct.pack("<IQ", 0x80000001, 5))],
     "epoll_ctl(4, EPOLL_CTL_ADD, 5, {events=EPOLLIN|EPOLLET, data=0x5}) = 0"),
    (event("futex", 0x1000, 128, 2), [], "futex(0x1000, FUTEX_WAIT_PRIVATE, 2, NULL) = 0"),
    (event("futex", 0x1000, 129, 1, result=1), [], "futex(0x1000, FUTEX_WAKE_PRIVATE, 1) = 1"),
    (event("fcntl", 3, 3, result=0o102002), [],
     "fcntl(3, F_GETFL) = 0x8402 (flags O_RDWR|O_APPEND|O_LARGEFILE)"),
    (event("fcntl", 3, 2, 1), [], "fcntl(3, F_SETFD, FD_CLOEXEC) = 0"),
    (event("ioctl", 0, 0x5401, 0x10), [(0x10, OUT, 2, TERMIOS)],
     "ioctl(0, TCGETS, {c_iflag=ICRNL|IXON, c_oflag=OPOST|ONLCR, c_cflag=B38400|CS8|CREAD, "
     "c_lflag=ISIG|ICANON|ECHO|ECHOE|ECHOK|ECHOCTL|ECHOKE|IEXTEN, ...}) = 0"),
    (event("ioctl", 0, 0x5413, 0x10), [(0x10, OUT, 2, struct.pack("<HHHH", 24, 80, 0, 0))],
     "ioctl(0, TIOCGWINSZ, {ws_row=24, ws_col=80, ws_xpixel=0, ws_ypixel=0}) = 0"),
    (event("ioctl", 0, 0x541B, 0x10), [(0x10, OUT, 2, struct.pack("<i", 7))], "ioctl(0, FIONREAD, [7]) = 0"),
    (event("ioctl", 0, 0x80041234, 0x10), [(0x10, OUT, 2, b"abcd")],
     'ioctl(0, _IOR(0x12, 0x34, 0x4), "abcd") = 0'),
    (event("rt_sigaction", 2, 0x10, 0, 8),
     [(0x10, IN, 1, struct.pack("<QQQQ", 1, 0x14000000, 0x99, 1 << 16))],
     "rt_sigaction(SIGINT, {sa_handler=SIG_IGN, sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x99, "
     "sa_mask=[CHLD]}, NULL, 8) = 0"),
    (event("rt_sigprocmask", 2, 0x10, 0x20, 8),
     [(0x10, IN, 1, struct.pack("<Q", MAX ^ 0x100)), (0x20, OUT, 2, bytes(8))],
     "rt_sigprocmask(SIG_SETMASK, ~[KILL], [], 8) = 0"),
    (event("kill", 5, 9), [], "kill(5, SIGKILL) = 0"),
    (event("clock_gettime", 1, 0x10), [(0x10, OUT, 1, struct.pack("<qq", 5, 6))],
     "clock_gettime(CLOCK_MONOTONIC, {tv_sec=5, tv_nsec=6}) = 0"),
    (event("nanosleep", 0x10, 0x20), [(0x10, IN, 0, struct.pack("<qq", 1, 0)), (0x20, OUT, 1, bytes(16))],
     "nanosleep({tv_sec=1, tv_nsec=0}, 0x20) = 0"),
    (event("clone", 0x1200011, 0, 0, 0x99, 0, result=5), [],
     "clone(CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, NULL, NULL, 0x99, NULL) = 5"),
    (event("prctl", 15, 0x10), [(0x10, IN, 1, b"worker\0")], 'prctl(PR_SET_NAME, "worker") = 0'),
    (event("prlimit64", 0, 7, 0, 0x10), [(0x10, OUT, 3, struct.pack("<QQ", 1024, MAX))],
     "prlimit64(0, RLIMIT_NOFILE, NULL, {rlim_cur=1*1024, rlim_max=RLIM64_INFINITY}) = 0"),
    (event("pipe2", 0x10, 0o2000000), [(0x10, OUT, 0, struct.pack("<ii", 3, 4))],
     "pipe2([3, 4], O_CLOEXEC) = 0"),
    (event("getdents64", 3, 0x10, 1000, result=24), [(0x10, OUT, 1,
    struct.pack("<QqHB", 5, 1, 24, 8) + b"a.c\0\0")],
     "getdents64(3, 0x10 /* 1 entries */, 1000) = 24"),
    (event("getcwd", 0x10, 100, result=2), [(0x10, OUT, 0, b"/\0")], r'getcwd("/\0", 100) = 2'),
    (event("readlink", 0x10, 0x20, 99, result=3), [(0x10, IN, 0, b"/l\0"), (0x20, OUT, 1, b"abc")],
     'readlink("/l", "abc", 99) = 3'),
    (event("utimensat", 3, 0, 0x10, 0), [(0x10, IN, 2, struct.pack("<qqqq", 0, 0x3FFFFFFF, 0, 0x3FFFFFFE))],
     "utimensat(3, NULL, [UTIME_NOW, UTIME_OMIT], 0) = 0"),
    (event("exit_group", 3), [], "exit_group(3) = ?"),
    (event("umask", 0o22, result=0o77), [], "umask(022) = 077"),
    (event("lseek", 3, -5, 2, result=95), [], "lseek(3, -5, SEEK_END) = 95"),
]  # fmt: skip
NAMES = [line.partition(" = ")[0][:40] for _, _, line in LINES]


@pytest.mark.parametrize(("one", "parts", "line"), LINES, ids=NAMES)
def test_calls_are_shown_as_strace_shows_them(one: PlainEvent, parts: list[Part], line: str) -> None:
    assert format_call(one, regions(*parts)) == line
    assert format_event(one, regions(*parts)) == line


@pytest.mark.parametrize(("one", "parts", "line"), LINES, ids=NAMES)
def test_the_deterministic_form_has_no_addresses(one: PlainEvent, parts: list[Part], line: str) -> None:
    high = 0x7FFF00000000
    moved = [(addr + high, kind, arg, data) for addr, kind, arg, data in parts]
    shown = {addr for addr, _, _, _ in parts}
    args = tuple(arg + high if arg in shown else arg for arg in one.args)
    text = format_call(PlainEvent(1, one.kind, one.nr, args, one.result), regions(*moved), deterministic=True)
    assert "0x7fff" not in text


def test_the_deterministic_form_is_the_same_for_two_runs() -> None:
    def run(base: int, pid: int, time: int) -> list[str]:
        return [
            format_event(one, parts, deterministic=True)
            for one, parts in (
                (event("mmap", 0, 4096, 3, 0x22, -1, result=base), regions()),
                (event("getpid", result=pid), regions()),
                (event("wait4", pid, base, 0, 0, result=pid), regions((base, OUT, 1, bytes(4)))),
                (event("clock_gettime", 0, base), regions((base, OUT, 1, struct.pack("<qq", time, time)))),
                (event("getrandom", base, 8, 0, result=8), regions((base, OUT, 0, struct.pack("<q", time)))),
                (event("kill", pid, 15), regions()),
                (event("time", 0, result=time), regions()),
                (PlainEvent(pid, Kind.RDTSC, 0, (0,) * 6, time), regions()),
                (PlainEvent(pid, Kind.TASK_START, 0, (pid, pid, 0, 0, 0, 0), 0), regions()),
                (PlainEvent(pid, Kind.FORK, 0, (1, pid, 0, 0, 0, 0), 0), regions()),
                (PlainEvent(pid, Kind.EXEC, 0, (base, base, 0, 0, 0, 0), 0), regions()),
            )
        ]

    assert run(0x7F1200000000, 1234, 99) == run(0x7F3400000000, 567, 10**9)


def information(signo: int, code: int, *words: int) -> list[Region]:
    data = struct.pack("<iiii", signo, 0, code, 0) + b"".join(word.to_bytes(4, "little") for word in words)
    return [Region(0, INFO, 255, data.ljust(128, b"\0"))]


@pytest.mark.parametrize(
    ("one", "parts", "line"),
    [
        (PlainEvent(1, Kind.SIGNAL, 2, (2, 0, 0, 0, 0, 0), 0), information(2, 0, 55, 1000),
         "--- SIGINT {si_signo=SIGINT, si_code=SI_USER, si_pid=55, si_uid=1000} ---"),
        (PlainEvent(1, Kind.SIGNAL, 11, (3, 0, 0, 0, 0, 0), 0), information(11, 1, 0x10),
         "--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x10} ---"),
        (PlainEvent(1, Kind.SIGNAL, 17, (1, 0, 0, 0, 0, 0), 0), information(17, 1, 55, 0, 3),
         "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=55, si_uid=0, si_status=3, "
         "si_utime=0, si_stime=0} ---"),
        (PlainEvent(1, Kind.SIGNAL, 14, (1, 0, 0, 0, 0, 0), 0), information(14, 0x80),
         "--- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL} ---"),
        (PlainEvent(1, Kind.SIGNAL, 40, (1, 0, 0, 0, 0, 0), 0), information(40, -1, 5, 6, 7),
         "--- SIGRT_8 {si_signo=SIGRT_8, si_code=SI_QUEUE, si_pid=5, si_uid=6, "
         "si_value={int=7, ptr=0x7}} ---"),
        (PlainEvent(1, Kind.SIGNAL, 2, (2, 0, 0, 0, 0, 0), 0), [], "--- SIGINT ---"),
        (PlainEvent(1, Kind.RDTSC, 0, (0,) * 6, 12), [], "RDTSC = 12"),
        (PlainEvent(1, Kind.RDTSC, 0, (1, 3, 0, 0, 0, 0), 12), [], "RDTSCP = 12, 0x3"),
        (PlainEvent(1, Kind.CPUID, 0, (1, 0, 3, 4, 5, 6), 0), [],
         "CPUID(0x1, 0x0) = {eax=0x3, ebx=0x4, ecx=0x5, edx=0x6}"),
        (PlainEvent(9, Kind.TASK_START, 0, (7, 7, 0, 0, 0, 0), 0), [], "+++ thread 9 starts, made by 7 +++"),
        (PlainEvent(9, Kind.TASK_START, 0, (7, 9, 1, 0, 0, 0), 0), [], "+++ process 9 starts, made by 7 +++"),
        (PlainEvent(9, Kind.TASK_EXIT, 0, (0,) * 6, 3), [], "+++ thread exits with 3 +++"),
        (PlainEvent(9, Kind.FORK, 0, (2, 7, 0, 0, 0, 0), 0), [], "+++ forked from process 7 (domain 2) +++"),
        (PlainEvent(9, Kind.DEATH, 11, (1, 0, 0, 0, 0, 0), 0), [], "+++ killed by SIGSEGV (core dumped) +++"),
        (PlainEvent(9, Kind.EXECED, 59, (4, 0, 0, 0, 0, 0), 0), [],
         "+++ execve succeeded: goes on as domain 4 +++"),
        (PlainEvent(9, Kind.STOPPED, 0, (0,) * 6, 2), [], "+++ recording stops here: DISK +++"),
        (PlainEvent(9, Kind.CHECKSUM, 0, (4096, 0, 0, 0, 0, 0), -1), [],
         "CHECKSUM of 4096 bytes = 0xffffffffffffffff"),
        (PlainEvent(9, Kind.RELEASE, 0, (3, 0x2000, 9, 0, 0, 0), 0), [],
        "read(3, 0x2000, 9 <unfinished ...>"),
        (PlainEvent(9, Kind.YIELD, 0, (0,) * 6, 0), [], "YIELD"),
        (PlainEvent(9, 200, 0, (0,) * 6, 0), [], "event of kind 200"),
        (PlainEvent(9, Kind.SYSCALL, 999, (1, 0, 0, 0, 0, 0), -38), [],
         "syscall_0x3e7(0x1, 0, 0, 0, 0, 0) = -1 ENOSYS (Function not implemented)"),
    ],
)  # fmt: skip
def test_other_events(one: PlainEvent, parts: list[Region], line: str) -> None:
    assert format_event(one, parts) == line


def test_where_a_signal_came_in_and_from_whom() -> None:
    one = PlainEvent(1, Kind.SIGNAL, 2, (2, 0, 0, 0, 0, 0), 0)
    assert signal_place(one) == "exit"
    assert signal_sender(information(2, 0, 55, 0)) == 55
    assert signal_sender(information(11, 1, 55, 0)) is None
    assert signal_sender([]) is None


def test_fields_are_a_tree_with_all_that_the_text_leaves_out() -> None:
    fields = decode_args(event("fstat", 3, 0x10), regions((0x10, OUT, 1, STAT)))
    assert [field.name for field in fields] == ["fd", "statbuf"]
    assert fields[0] == Field("fd", "fd", "3")
    inner = {child.name: child for child in fields[1].children}
    assert inner["st_uid"].value == "0"
    assert inner["st_mtime"].children[0] == Field("tv_sec", "sec", "2")


def test_a_directory_is_a_list_of_its_entries() -> None:
    entry = struct.pack("<QqHB", 5, 1, 24, 4) + b"src\0\0"
    fields = decode_args(event("getdents64", 3, 0x10, 99, result=48), regions((0x10, OUT, 1, entry * 2)))
    assert len(fields[1].children) == 2
    assert fields[1].children[0].children[-1] == Field("d_name", "string", '"src"')


def test_output_that_was_logged_in_two_pieces_is_one() -> None:
    parts = regions((0x1000, OUT, 1, b"hello "), (0x1006, OUT, 1, b"world"))
    assert format_call(event("read", 3, 0x1000, 99, result=11), parts) == 'read(3, "hello world", 99) = 11'


def test_strings_sets_how_much_is_shown() -> None:
    parts = regions((0x1000, OUT, 1, b"0123456789"))
    one = event("read", 3, 0x1000, 99, result=10)
    assert format_call(one, parts, strings=4) == 'read(3, "0123"..., 99) = 10'
    assert format_call(one, parts, strings=10) == 'read(3, "0123456789", 99) = 10'


def test_rows_of_an_event_array_and_structures_are_events_too() -> None:
    array = np.zeros(1, EVENT_DTYPE)
    array[0]["kind"], array[0]["nr"], array[0]["result"] = Kind.SYSCALL, BY_NAME["getpid"].number, 42
    assert format_call(array[0]) == "getpid() = 42"
    structure = Event(kind=Kind.SYSCALL, nr=BY_NAME["getpid"].number, result=42)
    assert ctypes.sizeof(structure) == 96
    assert format_event(structure) == "getpid() = 42"


def test_a_hostile_trace_is_decoded_in_bounded_time() -> None:
    million = 1 << 20
    full = regions((0x1000, IN, 1, b"\xff" * million), (0x1000, OUT, 1, b"\xff" * million))
    assert len(format_call(event("select", MAX, 0x1000, 0, 0, 0, result=1), full)) < 20_000
    tiny = regions(*((0x1000 + i, OUT, 1, b"x") for i in range(20_000)))
    assert "..." in format_call(event("read", 3, 0x1000, MAX, result=20_000), tiny)
    header = struct.pack("<QQ", 0x1000, 16) * 1000
    many = event("readv", 3, 0x1000, MAX, result=2**40)
    assert len(format_call(many, regions((0x1000, IN, 1, header)))) < 20_000


ADDRESSES = st.sampled_from([0, 0x10, 0x1000, 0x1008, 0x2000, MAX - 8, 0x5401, 0x5413])
WORDS = st.one_of(st.integers(0, MAX), st.integers(0, 600), ADDRESSES)
MEMORY = st.lists(
    st.builds(
        Region,
        ADDRESSES,
        st.sampled_from(RegionKind),
        st.integers(0, 6),
        st.one_of(st.binary(max_size=300), st.binary(min_size=8, max_size=16).map(lambda data: data * 20)),
    ),
    max_size=6,
)
SELECTORS = sorted({case.key for call in CALLS.values() for case in call.cases})


@settings(max_examples=1500, deadline=None)
@given(
    st.one_of(st.sampled_from(sorted(CALLS)), st.integers(0, 65535)),
    st.lists(WORDS, min_size=6, max_size=6),
    st.one_of(st.just(None), st.sampled_from(SELECTORS)),
    st.integers(-(2**63), 2**63 - 1) | st.integers(-600, 4096),
    st.one_of(st.sampled_from(Kind), st.integers(0, 255)),
    MEMORY,
    st.booleans(),
    st.integers(0, 64),
)
def test_anything_decodes(
    number: int, args: list[int], selector: int | None, result: int, kind: int, memory: list[Region],
    deterministic: bool, strings: int,
) -> None:  # fmt: skip
    call = CALLS.get(number)
    if selector is not None and call is not None and call.selector is not None:
        args[call.selector.arg] = selector
    one = PlainEvent(1, kind, number, tuple(args), result)
    text = format_event(one, memory, deterministic=deterministic, strings=strings)
    line = format_call(one, memory, deterministic=deterministic, strings=strings)
    fields = decode_args(one, memory, deterministic=deterministic, strings=strings)
    assert "\n" not in text + line
    assert text.isascii() or number == 0
    assert re.fullmatch(r"\w+\(.*\) = .*", line)
    assert all(isinstance(field, Field) for field in fields)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_call_and_case_decodes(data: st.DataObject) -> None:
    args = data.draw(st.lists(WORDS, min_size=6, max_size=6))
    memory = data.draw(MEMORY)
    result = data.draw(st.integers(-600, 4096))
    for call in CALLS.values():
        for key in [None, *(case.key for case in call.cases)]:
            words = list(args)
            if key is not None and call.selector is not None:
                words[call.selector.arg] = key << call.selector.shift
            assert format_call(PlainEvent(1, Kind.SYSCALL, call.number, tuple(words), result), memory)
