"""What a machine needs for recording, one function a check: what was found, what is needed, the fix.

Nothing here changes the state of this process: what must be tried is tried in a forked child.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import re
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KERNEL_NEEDED = (5, 11)
FREE_DISK_WANTED = 1_000_000_000

PR_SET_SYSCALL_USER_DISPATCH = 59
PR_SYS_DISPATCH_ON = 1
PR_SET_TSC = 26
PR_TSC_SIGSEGV = 2
SYS_ARCH_PRCTL = 158
ARCH_SET_CPUID = 0x1012
ADDR_NO_RANDOMIZE = 0x0040000
PERSONALITY_QUERY = 0xFFFFFFFF
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
PTRACE_DETACH = 17


@dataclass(frozen=True)
class Check:
    """One line of the report.

    `state` is 'ok', 'note' (recording works, with what `found` says) or 'fail' (recording cannot work).
    """

    name: str
    state: str
    found: str
    needed: str
    fix: str = ""


def libc() -> ctypes.CDLL:
    """The C library of this process, with errno kept for each call."""
    return ctypes.CDLL(None, use_errno=True)


def in_child(action: Callable[[], int]) -> int:
    """Run `action` in a forked child and return what it returns: 0 or an errno. A child that died: ENOSYS."""
    pid = os.fork()
    if pid == 0:
        code = errno.ENOSYS
        with suppress(BaseException):
            code = action()
        os._exit(min(code, 255))
    status = os.waitpid(pid, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else errno.ENOSYS


def call_errno(function: Callable[..., int], *args: object) -> int:
    """0 if the call succeeds, its errno otherwise."""
    ctypes.set_errno(0)
    return ctypes.get_errno() if function(*args) == -1 else 0


def explain(code: int) -> str:
    return f"{errno.errorcode.get(code, code)} ({os.strerror(code)})"


def check_machine() -> Check:
    system, machine = platform.system(), platform.machine()
    good = system == "Linux" and machine == "x86_64" and sys.maxsize > 2**32
    return Check(
        "machine",
        "ok" if good else "fail",
        f"{system} {machine}",
        "64-bit Linux on x86-64",
        "" if good else "Use an x86-64 machine and a 64-bit Python",
    )


def check_kernel() -> Check:
    release = os.uname().release
    match = re.match(r"(\d+)\.(\d+)", release)
    good = match is not None and (int(match[1]), int(match[2])) >= KERNEL_NEEDED
    return Check(
        "kernel",
        "ok" if good else "fail",
        f"Linux {release}",
        "Linux 5.11 or newer",
        "" if good else "Boot a newer kernel (a container uses its host's)",
    )


def try_user_dispatch() -> int:
    """Turn Syscall User Dispatch on with a selector that lets every call pass."""
    selector = ctypes.c_char(0)
    return call_errno(
        libc().prctl,
        ctypes.c_int(PR_SET_SYSCALL_USER_DISPATCH),
        ctypes.c_ulong(PR_SYS_DISPATCH_ON),
        ctypes.c_ulong(0),
        ctypes.c_ulong(0),
        ctypes.byref(selector),
    )


def check_user_dispatch() -> Check:
    code = in_child(try_user_dispatch)
    if code == 0:
        return Check("syscall user dispatch", "ok", "works", "prctl(PR_SET_SYSCALL_USER_DISPATCH)")
    fix = {
        errno.EPERM: "A seccomp filter refuses it: run the container with a profile that allows prctl",
        errno.EINVAL: "Needs Linux 5.11 or newer; sandboxes that imitate Linux, such as gVisor, lack it",
    }.get(code, "Needs Linux 5.11 or newer, not a sandbox that imitates it")
    return Check("syscall user dispatch", "fail", explain(code), "prctl(PR_SET_SYSCALL_USER_DISPATCH)", fix)


def check_time_stamp_counter() -> Check:
    code = in_child(
        lambda: call_errno(
            libc().prctl,
            ctypes.c_int(PR_SET_TSC),
            ctypes.c_ulong(PR_TSC_SIGSEGV),
            ctypes.c_ulong(0),
            ctypes.c_ulong(0),
            ctypes.c_ulong(0),
        )
    )
    if code == 0:
        return Check("RDTSC trap", "ok", "works", "prctl(PR_SET_TSC)")
    return Check(
        "RDTSC trap",
        "note",
        f"{explain(code)}: RDTSC in the program is not recorded",
        "prctl(PR_SET_TSC)",
        "Programs that read the time-stamp counter may diverge at replay; allow prctl(PR_SET_TSC)",
    )


def check_cpuid() -> Check:
    code = in_child(
        lambda: call_errno(
            libc().syscall, ctypes.c_long(SYS_ARCH_PRCTL), ctypes.c_long(ARCH_SET_CPUID), ctypes.c_ulong(0)
        )
    )
    if code == 0:
        return Check("CPUID trap", "ok", "CPUID faulting works", "nothing")
    return Check(
        "CPUID trap",
        "ok",
        f"no CPUID faulting ({errno.errorcode.get(code, code)}): CPUID instructions are patched instead",
        "nothing",
    )


def try_ptrace() -> int:
    """Seize, interrupt and let go of a child of this process."""
    ptrace = libc().ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    try:
        if code := call_errno(ptrace, PTRACE_SEIZE, child, None, None):
            return code
        if code := call_errno(ptrace, PTRACE_INTERRUPT, child, None, None):
            return code
        os.waitpid(child, 0)
        return call_errno(ptrace, PTRACE_DETACH, child, None, None)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def yama_scope() -> int | None:
    """/proc/sys/kernel/yama/ptrace_scope, None where there is no Yama."""
    try:
        return int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return None


def check_ptrace() -> Check:
    needed = "ptrace of own children, while programs start"
    scope = yama_scope()
    about = "" if scope is None else f" (Yama ptrace_scope {scope})"
    code = in_child(try_ptrace)
    if code == 0:
        return Check("ptrace", "ok", f"allowed on own children{about}", needed)
    if scope is not None and scope >= 2:
        fix = "sysctl kernel.yama.ptrace_scope=1 (3 stays until the next boot)"
    else:
        fix = "A seccomp filter refuses it: docker run --cap-add=SYS_PTRACE, or allow ptrace in its profile"
    return Check("ptrace", "fail", f"{explain(code)}{about}", needed, fix)


def try_personality() -> int:
    personality = libc().personality
    personality.argtypes = [ctypes.c_ulong]
    old = personality(PERSONALITY_QUERY)
    if old == -1:
        return ctypes.get_errno()
    return call_errno(personality, old | ADDR_NO_RANDOMIZE)


def check_personality() -> Check:
    code = in_child(try_personality)
    found = (
        "addresses are fixed while recording"
        if code == 0
        else (f"refused, {explain(code)}: recording with random addresses")
    )
    return Check("address randomisation", "ok", found, "nothing")


def find_container() -> str | None:
    """What kind of container this process is in, as far as one can see from inside."""
    if Path("/.dockerenv").exists():
        return "Docker"
    if Path("/run/.containerenv").exists():
        return "Podman"
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes"
    with suppress(OSError):
        for entry in Path("/proc/1/environ").read_bytes().split(b"\0"):
            if entry.startswith(b"container="):
                return os.fsdecode(entry.removeprefix(b"container=")) or "container"
    with suppress(OSError):
        match = re.search(r"docker|containerd|kubepods|libpod|lxc", Path("/proc/1/cgroup").read_text())
        if match:
            return match[0]
    return None


def seccomp_filtered() -> bool:
    with suppress(OSError):
        return re.search(r"^Seccomp:\s+2$", Path("/proc/self/status").read_text(), re.MULTILINE) is not None
    return False


def check_container() -> Check:
    kind = find_container()
    found = f"{kind} container" if kind else "none"
    if seccomp_filtered():
        found += ", a seccomp filter is active"
    return Check("container", "ok", found, "nothing")


def check_disk(folder: Path) -> Check:
    from rr_py.text import size

    needed = f"{size(FREE_DISK_WANTED)} free, and leave to write, where traces go"
    try:
        free = shutil.disk_usage(folder).free
    except OSError as why:
        return Check("disk", "note", f"{folder}: {why.strerror}", needed, "Record with -o FILE elsewhere")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check("disk", "note", f"{folder} cannot be written", needed, "Record with -o FILE elsewhere")
    good = free >= FREE_DISK_WANTED
    return Check(
        "disk",
        "ok" if good else "note",
        f"{size(free)} free in {folder}",
        needed,
        "" if good else "Free some space, or record with -o FILE elsewhere",
    )


def check_log_memory(octets: int) -> Check:
    from rr_py.text import size

    needed = f"memfd_create and {size(octets)} of shared memory a process"
    try:
        handle = os.memfd_create("rr-py-doctor", os.MFD_CLOEXEC)
        try:
            os.ftruncate(handle, octets)
            with mmap.mmap(handle, octets) as memory:
                memory[0] = memory[octets - 1] = 1
        finally:
            os.close(handle)
    except OSError as why:
        return Check(
            "log memory",
            "fail",
            f"{why.strerror}",
            needed,
            "Raise the memory limit (ulimit -v, ulimit -f), or allow memfd_create",
        )
    return Check("log memory", "ok", f"{size(octets)} mapped", needed)


def check_proc() -> Check:
    try:
        Path("/proc/self/maps").read_bytes()
    except OSError as why:
        return Check("/proc", "fail", f"{why.strerror}", "/proc mounted (read-only is enough)", "Mount /proc")
    return Check("/proc", "ok", "mounted", "/proc mounted (read-only is enough)")


def check_core() -> Check:
    """Whether the compiled parts, the interposer's core and the trace's codec, are where the package has
    them."""
    from interposer import image_path
    from tracefile.planes import check_library

    needed = "the compiled core rr_core and the trace's codec in the package"
    try:
        path = image_path()
        start = Path(path).read_bytes()[:4]
        check_library()
    except Exception as why:
        return Check(
            "core",
            "fail",
            str(why).splitlines()[0],
            needed,
            "Install the wheel again: pip install --force-reinstall rr-py",
        )
    good = start == b"\x7fELF"
    return Check(
        "core",
        "ok" if good else "fail",
        str(path),
        needed,
        "" if good else "Install the wheel again: pip install --force-reinstall rr-py",
    )
