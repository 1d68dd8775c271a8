"""Names of constants and layouts of structures against the C headers of the machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces.calls import CALLS
from interfaces.layouts import LAYOUTS, SCALARS, size_of
from interfaces.names import ENUMS, FLAGS, enum_text, flags_text
from interfaces.names.ioctls import REQUESTS, request_name
from interfaces.names.network import OPTIONS_OF_LEVEL
from interfaces.names.signals import errno_name, errno_text, signal_name

KERNEL = """
#include <linux/types.h>
#include <asm/ioctls.h>
#include <asm/prctl.h>
#include <asm/termbits.h>
#include <linux/blkpg.h>
#include <linux/bpf.h>
#include <linux/cachefiles.h>
#include <linux/capability.h>
#include <linux/cdrom.h>
#include <linux/eventpoll.h>
#include <linux/fanotify.h>
#include <linux/falloc.h>
#include <linux/fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/futex.h>
#include <linux/hdreg.h>
#include <linux/if_tun.h>
#include <linux/i2c-dev.h>
#include <linux/i2c.h>
#include <linux/in.h>
#include <linux/kcmp.h>
#include <linux/kd.h>
#include <linux/keyctl.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <linux/membarrier.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <linux/mount.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <linux/quota.h>
#include <linux/dqblk_xfs.h>
#include <linux/random.h>
#include <linux/rtc.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <linux/seccomp.h>
#include <linux/serial.h>
#include <linux/sockios.h>
#include <linux/stat.h>
#include <linux/tcp.h>
#include <linux/time.h>
#include <linux/timerfd.h>
#include <linux/timex.h>
#include <linux/udp.h>
#include <linux/uio.h>
#include <linux/userfaultfd.h>
#include <linux/utime.h>
#include <linux/utsname.h>
#include <linux/vt.h>
#include <linux/wait.h>
#include <linux/xattr.h>
#include <asm/msgbuf.h>
#include <asm/resource.h>
#include <asm/sembuf.h>
#include <asm/shmbuf.h>
#include <asm/siginfo.h>
#include <asm/signal.h>
#include <asm/socket.h>
#include <asm/statfs.h>
#include <asm/mman.h>
#include <asm/poll.h>
#include <asm/ldt.h>
#include <drm/drm.h>
"""

TERMIOS2 = "struct termios2 { char bytes[44]; };"

DEVICES = """
#include <linux/wireless.h>
#include <linux/input.h>
#include <linux/uinput.h>
#include <linux/vm_sockets.h>
#include <sound/asound.h>
"""

LIBC = """
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <ustat.h>
#include <utime.h>
"""

KERNEL_STRUCTURES = {
    "timespec": "__kernel_timespec", "itimerspec": "__kernel_itimerspec", "timex": "__kernel_timex",
    "statx": "statx", "statfs": "statfs", "flock": "flock", "f_owner_ex": "f_owner_ex",
    "open_how": "open_how",
    "dqblk": "if_dqblk", "nextdqblk": "if_nextdqblk", "dqinfo": "if_dqinfo", "fs_disk_quota": "fs_disk_quota",
    "fs_quota_stat": "fs_quota_stat", "fs_quota_statv": "fs_quota_statv", "mount_attr": "mount_attr",
    "sched_attr": "sched_attr", "clone_args": "clone_args", "cap_header": "__user_cap_header_struct",
    "cap_data": "__user_cap_data_struct", "user_desc": "user_desc", "futex_waitv": "futex_waitv",
    "stack_t": "sigaltstack", "siginfo": "siginfo", "sigaction": "sigaction", "ipc_perm": "ipc64_perm",
    "shmid_ds": "shmid64_ds", "semid_ds": "semid64_ds", "msqid_ds": "msqid64_ds", "shminfo": "shminfo64",
    "termios": "termios", "termios2": "termios2", "rlimit": "rlimit64", "fsxattr": "fsxattr",
    "file_clone_range": "file_clone_range", "file_dedupe_range": "file_dedupe_range", "fiemap": "fiemap",
    "rtc_time": "rtc_time", "hd_geometry": "hd_geometry", "vt_stat": "vt_stat", "vt_mode": "vt_mode",
    "serial_struct": "serial_struct", "serial_rs485": "serial_rs485", "hd_driveid": "hd_driveid",
    "loop_info": "loop_info", "loop_info64": "loop_info64", "loop_config": "loop_config",
    "drm_version": "drm_version", "drm_unique": "drm_unique", "fscrypt_policy": "fscrypt_policy_v1",
    "verity_digest": "fsverity_digest", "fstrim_range": "fstrim_range", "iwreq": "iwreq",
    "prctl_mm_map": "prctl_mm_map", "seccomp_metadata": "seccomp_metadata",
    "robust_list_head": "robust_list_head",
    "seccomp_notif_sizes": "seccomp_notif_sizes", "sock_filter": "sock_filter", "sock_fprog": "sock_fprog",
    "pkey_info": "keyctl_pkey_query", "ptrace_rseq": "ptrace_rseq_configuration",
}  # fmt: skip

LIBC_STRUCTURES = {
    "timeval": "timeval", "itimerval": "itimerval", "utimbuf": "utimbuf", "tms": "tms", "stat": "stat",
    "iovec": "iovec", "pollfd": "pollfd", "epoll_event": "epoll_event", "file_handle": "file_handle",
    "rusage": "rusage", "utsname": "utsname", "sysinfo": "sysinfo", "sched_param": "sched_param",
    "sigevent": "sigevent", "msghdr": "msghdr", "mmsghdr": "mmsghdr", "linger": "linger", "ucred": "ucred",
    "sembuf": "sembuf", "seminfo": "seminfo", "shm_info": "shm_info", "msginfo": "msginfo",
    "mq_attr": "mq_attr",
    "winsize": "winsize", "timezone": "timezone", "ustat": "ustat",
}  # fmt: skip

RENAMED = {"st_atime": "st_atim", "st_mtime": "st_mtim", "st_ctime": "st_ctim", "shm_tot": "shm_tot"}
OTHER_NAMES = {"timespec", "epoll_event", "termio", "siginfo", "prctl_mm_map", "msginfo", "seminfo", "statfs",
               "rlimit", "user_desc", "sigevent", "ustat", "itimerval", "sockaddr"}  # fmt: skip
"""Layouts whose fields have names of their own; only their sizes are compared."""


def ask(folder: Path, headers: str, questions: list[tuple[str, str, str]]) -> dict[str, int]:
    """Compile and run a program that prints each (label, condition, expression) whose condition holds."""
    usable = "\n".join(line for line in headers.splitlines() if header_exists(line))
    body = []
    for label, condition, expression in questions:
        body.append(f'{condition}\nprintf("%s %lld\\n", "{label}", (long long)({expression}));\n#endif')
    source = folder / "ask.c"
    source.write_text(
        f"{usable}\n#include <stddef.h>\nextern int printf(const char *, ...);\nint main(void) {{\n"
        + "\n".join(body)
        + "\nreturn 0; }\n"
    )
    program = folder / "ask"
    built = subprocess.run(["gcc", "-w", "-o", program, source], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in said.splitlines()}


def preprocessed(headers: str) -> str:
    usable = "\n".join(line for line in headers.splitlines() if header_exists(line))
    command = ["gcc", "-E", "-w", "-xc", "-"]
    return subprocess.run(command, input=usable, capture_output=True, text=True, check=True).stdout


def enumerators(headers: str) -> set[str]:
    """The names that enumerations of the headers define."""
    bodies = re.findall(r"\benum\b[^{;()]*{([^}]*)}", preprocessed(headers))
    return {name for body in bodies for name in re.findall(r"(?:^|,)\s*(?:#[^\n]*\s*)*([A-Z_]\w*)", body)}


def in_header(field: str) -> str:
    return RENAMED.get(field, field)


def header_exists(line: str) -> bool:
    found = re.match(r"#include <(.*)>", line)
    roots = ("/usr/include", "/usr/include/x86_64-linux-gnu")
    return found is None or any(Path(root, found[1]).exists() for root in roots)


def named_values() -> dict[str, set[int]]:
    """Every name of a constant with its value (as 32 unsigned bits)."""
    values: dict[str, set[int]] = {}

    def add(name: str, value: int) -> None:
        values.setdefault(name, set()).add(value & 0xFFFFFFFF)

    for flags in FLAGS.values():
        for name, value in flags.values().items():
            add(name, value)
    for numbers in ENUMS.values():
        for value, name in numbers.items():
            add(name, value)
    for value, name in REQUESTS.items():
        add(name, value)
    for call in CALLS.values():
        if call.selector is not None and not call.selector.pair and call.selector.shift == 0:
            for case in call.cases:
                add(case.name, case.key)
    return values


KERNEL_VALUE_DIFFERS = {"O_LARGEFILE"}
"""glibc on x86-64 has 0 where the kernel has a bit."""


@pytest.mark.parametrize(
    ("headers", "least"),
    [(KERNEL, 600), (LIBC + TERMIOS2, 600), (DEVICES + TERMIOS2, 20)],
    ids=["kernel", "libc", "devices"],
)
def test_constants_have_the_headers_values(headers: str, least: int, tmp_path: Path) -> None:
    values = named_values()
    members = enumerators(headers)
    questions = [
        (name, "#if 1" if name in members else f"#ifdef {name}", name)
        for name in values
        if re.fullmatch(r"[A-Z_][A-Za-z0-9_]*", name)
    ]
    found = {name: value & 0xFFFFFFFF for name, value in ask(tmp_path, headers, questions).items()}
    assert len(found) > least
    wrong = {
        name: (sorted(values[name]), value)
        for name, value in found.items()
        if value not in values[name] and name not in KERNEL_VALUE_DIFFERS
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("headers", "structures"), [(KERNEL, KERNEL_STRUCTURES), (LIBC, LIBC_STRUCTURES)], ids=["kernel", "libc"]
)
def test_layouts_have_the_headers_sizes_and_offsets(
    headers: str, structures: dict[str, str], tmp_path: Path
) -> None:
    seen = preprocessed(headers)
    present = {
        ours: theirs for ours, theirs in structures.items() if re.search(rf"struct {theirs}\s", seen)
    }
    assert len(present) > len(structures) * 2 // 3
    questions = [(name, "#if 1", f"sizeof(struct {theirs})") for name, theirs in present.items()]
    for name, theirs in present.items():
        if name not in OTHER_NAMES:
            questions += [
                (f"{name}.{field.name}", "#if 1", f"offsetof(struct {theirs}, {in_header(field.name)})")
                for field in LAYOUTS[name].fields
                if not field.name.startswith("_")
            ]
    found = ask(tmp_path, headers, questions)
    ours = {name: LAYOUTS[name].size for name in present}
    for name in present:
        ours.update({f"{name}.{field.name}": field.offset for field in LAYOUTS[name].fields})
    wrong = {label: (ours[label], value) for label, value in found.items() if ours[label] != value}
    assert wrong == {}


def test_every_name_a_row_or_a_layout_uses_exists() -> None:
    used = [(arg.type, arg.of) for call in CALLS.values() for arg in call.args]
    used += [(arg.type, arg.of) for call in CALLS.values() for case in call.cases for arg in case.args]
    assert {of for type, of in used if type == "flags"} - set(FLAGS) == set()
    assert {of for type, of in used if type == "enum"} - set(ENUMS) == set()
    fields = [field for layout in LAYOUTS.values() for field in layout.fields]
    assert {field.of for field in fields if field.naming == "|"} - set(FLAGS) == set()
    assert {field.of for field in fields if field.naming == "="} - set(ENUMS) == set()
    assert set(OPTIONS_OF_LEVEL.values()) <= set(ENUMS)


def test_fields_lie_inside_their_layouts_and_do_not_overlap() -> None:
    for layout in LAYOUTS.values():
        end = 0
        for field in layout.fields:
            assert field.offset >= end, layout.name
            end = field.offset + field.count * size_of(field.type)
        assert end <= layout.size
    assert set(LAYOUTS) & set(SCALARS) == set()


@given(st.sampled_from(sorted(FLAGS)), st.integers(0, 2**64 - 1))
def test_flags_text_loses_no_bit(name: str, value: int) -> None:
    known = FLAGS[name].values()
    total = 0
    for part in flags_text(name, value).split("|"):
        total |= known[part] if part in known else int(part, 0)
    assert total == value


@given(st.sampled_from(sorted(ENUMS)), st.integers(-(2**31), 2**32))
def test_enum_text_is_a_name_or_the_number(name: str, value: int) -> None:
    text = enum_text(name, value)
    assert text == ENUMS[name].get(value) or int(text, 0) == value


@pytest.mark.parametrize(
    ("request_number", "text"),
    [
        (0x5401, "TCGETS"), (0xFFFFFFFF00005413, "TIOCGWINSZ"), (0xC04064FF, "_IOWR(0x64, 0xff, 0x40)"),
        (0x80041234, "_IOR(0x12, 0x34, 0x4)"), (0x1299, "_IO(0x12, 0x99)"),
    ],
)  # fmt: skip
def test_ioctl_requests(request_number: int, text: str) -> None:
    assert request_name(request_number) == text


def test_signals_and_errors() -> None:
    assert [signal_name(number) for number in (1, 2, 11, 31, 34, 64, 99)] == [
        "SIGHUP", "SIGINT", "SIGSEGV", "SIGSYS", "SIGRT_2", "SIGRT_32", "99",
    ]  # fmt: skip
    assert errno_name(2) == "ENOENT"
    assert errno_text(2) == "No such file or directory"
    assert errno_name(11) == "EAGAIN"
    assert errno_name(95) in ("EOPNOTSUPP", "ENOTSUP")
    assert errno_name(512) == "ERESTARTSYS"
    assert errno_name(4000) == "4000"
