"""Record a program: from the command to the finished trace."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from interfaces import abi
from interfaces.allocator import keep_freed_memory
from interfaces.errors import ExitStatus
from interposer import image, kernel, launch, ptrace, surroundings
from interposer.channel import Channel
from interposer.errors import Gone, InjectError, LaunchError
from interposer.shared import GlobalPage
from recorder import images, settings
from recorder.errors import RecordError
from recorder.files import FileTable
from recorder.options import RecordOptions, RecordResult
from recorder.supervisor import Supervisor
from recorder.terminal import Signals
from tracefile import TraceWriteError, TraceWriter

_SLICE_NS = 20_000_000
_FIRST_DOMAIN = 1


def record(options: RecordOptions) -> RecordResult:
    """Run `options.command` and record it with all it starts, until everything recorded has ended.

    The calling thread must be the only one that waits for children of this process. Raises, before the
    program has run a single instruction: RecordError or UnsupportedError when this machine cannot record,
    LaunchError when the program cannot be executed, TraceWriteError when the trace cannot be created. From
    then on nothing is raised: what goes wrong is in the result, and the program is never harmed.
    """
    if not options.command:
        raise RecordError("no program to record", "Name one.", ExitStatus.CANNOT_RUN)
    if not options.has_user_dispatch():
        if error := surroundings.inside_a_recording():
            raise error
        raise RecordError(
            f"this kernel ({os.uname().release}) has no Syscall User Dispatch; "
            "recording needs Linux 5.11 or newer",
            "Use a newer kernel.",
        )
    keep_freed_memory()
    core_image = image.load()
    page = GlobalPage()
    hello, theirs = Channel.pair(credentials=True)
    image_fd = os.open(core_image.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        environment = os.environ if options.env is None else options.env
        cwd = str(options.cwd) if options.cwd is not None else None
        added = settings.needed(options.command[0], environment, cwd)
        if added:
            words = " ".join(f"{name}={value}" for name, value in added.items())
            options.notify(f"{words} is set: the program's threads would wait for each other by spinning")
        command = launch.Command(tuple(options.command), {**environment, **added}, cwd)
        try:
            child = launch.fork(command, [theirs.fileno(), image_fd, page.fd])
        finally:
            theirs.close()
        try:
            cpuid = _cpuid_flags()
            _fill(page, options, child.fd_base, cpuid)
            writer = _create(options, page)
        except BaseException:
            child.abandon()
            raise
        can_trap = abi.GlobalFlag.LATE_FAULT in cpuid
        core = images.Core(core_image, child.fd_base, abi.FD_IMAGE, bool(cpuid), can_trap)
        with _subreaper():
            return _record(options, child, writer, core, hello, page)
    finally:
        os.close(image_fd)
        hello.close()
        page.close()


def _record(
    options: RecordOptions,
    child: launch.Launch,
    writer: TraceWriter,
    core: images.Core,
    hello: Channel,
    page: GlobalPage,
) -> RecordResult:
    files = FileTable(writer)
    with Signals() as signals:
        supervisor = Supervisor(writer, files, core, hello, signals, options.notify, page)
        try:
            _start(child, writer, files, core, supervisor)
        except BaseException:
            writer.abandon()
            with suppress(OSError):
                writer.path.unlink()
            raise
        status = supervisor.run(child.pid)
    problem = supervisor.problem
    code = os.waitstatus_to_exitcode(status)
    try:
        if not problem:
            files.finish()
        writer.close({"status": status, "time_ns": time.time_ns(), "problem": problem})
    except TraceWriteError as error:
        if not problem:
            problem = error.message
            options.notify(f"{error.message}. {error.remedy}")
    return RecordResult(
        trace=writer.path,
        status=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        complete=not problem,
        problem=problem,
        processes=len(writer.pids),
        events=writer.events,
        size=writer.bytes_written,
    )


def _start(
    child: launch.Launch, writer: TraceWriter, files: FileTable, core: images.Core, supervisor: Supervisor
) -> None:
    """Let the child exec and put the core into its image. On any error the child is ended."""
    registers = child.start()
    try:
        with images.memory_of(child.pid) as memory:
            new = images.examine(
                child.pid, registers, _FIRST_DOMAIN, images.Parent(0, None), files, core, memory, {}
            )
            privilege = images.lost_privilege(new)
            images.carry(new, core, memory)
        writer.add_domain(new.start())
        supervisor.expect(child.pid, _FIRST_DOMAIN)
        if privilege:
            supervisor.tell(_FIRST_DOMAIN, child.pid, privilege)
        ptrace.detach(child.pid)
    except InjectError as error:
        child.kill()
        raise LaunchError(
            f"{child.command.argv[0]}: {error.message}", error.remedy, ExitStatus.CANNOT_RUN
        ) from None
    except Gone:
        child.kill()
        raise LaunchError(
            f"{child.command.argv[0]}: killed before it started", "Try again.", ExitStatus.CANNOT_RUN
        ) from None
    except BaseException:
        child.kill()
        raise


def _create(options: RecordOptions, page: GlobalPage) -> TraceWriter:
    meta = _meta(options, page)
    if options.trace is None:
        return TraceWriter.create_numbered(Path.cwd(), meta)
    return TraceWriter.create(options.trace, meta)


def _fill(page: GlobalPage, options: RecordOptions, fd_base: int, cpuid: abi.GlobalFlag) -> None:
    """Tell every recorded process how this recording is done."""
    fields = page.fields
    fields.mode = abi.RingState.RECORDING
    fields.tool_pid = os.getpid()
    fields.fd_base = fd_base
    fields.next_domain = _FIRST_DOMAIN + 1
    fields.checksum_every = options.checksum_every or 0
    fields.slice_ns = _SLICE_NS
    if options.chaos is not None:
        fields.seed = options.chaos or int.from_bytes(os.urandom(7), "little") + 1
    flags = cpuid
    if os.environ.get("RR_PY_PATCH") == "0":
        flags |= abi.GlobalFlag.NO_PATCH
    if options.one_domain:
        flags |= abi.GlobalFlag.ONE_DOMAIN
    fields.flags = flags
    with suppress(OSError):
        out = os.fstat(1)
        fields.out_dev, fields.out_ino, fields.out_rdev = out.st_dev, out.st_ino, out.st_rdev
    with suppress(OSError):
        err = os.fstat(2)
        fields.err_dev, fields.err_ino, fields.err_rdev = err.st_dev, err.st_ino, err.st_rdev


def _meta(options: RecordOptions, page: GlobalPage) -> Mapping[str, Any]:
    """What the trace says of the recording as a whole."""
    system = os.uname()
    machine = _processor()
    return {
        "version": options.version,
        "abi": abi.ABI_VERSION,
        "command": list(options.command),
        "cwd": str(options.cwd) if options.cwd is not None else os.getcwd(),
        "time_ns": time.time_ns(),
        "monotonic_ns": time.monotonic_ns(),
        "hostname": system.nodename,
        "kernel": f"{system.sysname} {system.release}",
        "cpu": machine.get("cpu_model", ""),
        "machine": machine,
        "checksum_every": options.checksum_every or 0,
        "one_domain": options.one_domain,
        "chaos_seed": int(page.fields.seed),
        "flags": int(page.fields.flags),
        "stdout": [page.fields.out_dev, page.fields.out_ino, page.fields.out_rdev],
        "stderr": [page.fields.err_dev, page.fields.err_ino, page.fields.err_rdev],
    }


def _cpuid_flags() -> abi.GlobalFlag:
    """How CPUID is recorded here: by a trap, by replacing the instruction, or by both.

    In a virtual machine each CPUID costs the host microseconds, and so does each switch between a task that
    has the trap and one that has not.
    """
    if not kernel.has_cpuid_faulting():
        return abi.GlobalFlag.NO_FAULT_CPUID | abi.GlobalFlag.WATCH_CODE
    virtual = "hypervisor" in _processor().get("cpu_flags", "").split()
    return abi.GlobalFlag.LATE_FAULT if virtual else abi.GlobalFlag(0)


@lru_cache(maxsize=1)
def _processor() -> Mapping[str, str]:
    found: dict[str, str] = {}
    wanted = {"model name": "cpu_model", "flags": "cpu_flags"}
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            key = wanted.get(name.strip())
            if key:
                found[key] = value.strip()
            if len(found) == len(wanted):
                break
    return found


@contextmanager
def _subreaper() -> Iterator[None]:
    """Orphans of the program become our children meanwhile, so that their ends are seen."""
    before = kernel.is_subreaper()
    kernel.set_subreaper(True)
    try:
        yield
    finally:
        kernel.set_subreaper(before)
