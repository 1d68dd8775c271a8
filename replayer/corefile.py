"""Core files of a recorded process at an event, as the kernel would have written them there.

Threads, registers with their vector state, auxiliary vector, mapped files and memory are the recorded ones;
the core's own range and threads do not show. gdb, lldb, pystack and drgn open the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from interfaces.abi import Kind
from replayer.corelayout import hidden
from replayer.errors import NothingToReplayError, ReplayError
from replayer.memory import PAGE, Mapping, Memory, MemoryFault
from replayer.session import Paused, Session
from replayer.threadstate import FXSAVE_SIZE, ThreadState
from tracefile import DomainInfo, TraceReader

_NT_PRSTATUS, _NT_FPREGSET, _NT_PRPSINFO, _NT_AUXV = 1, 2, 3, 6
_NT_X86_XSTATE, _NT_SIGINFO, _NT_FILE = 0x202, 0x53494749, 0x46494C45
_PT_LOAD, _PT_NOTE = 1, 4
_MANY_SEGMENTS = 0xFFFF
_PIECE = 1 << 20
_LARGE_FILE = 32 << 20
_SIGNALS = (Kind.DEATH, Kind.SIGNAL)


@dataclass(frozen=True, slots=True)
class CoreWritten:
    """What was written: bytes of memory held, threads, and paths of large unchanged files left out."""

    size: int
    threads: int
    left_out: tuple[str, ...]


def write_core(session: Session, pause: Paused, path: Path) -> CoreWritten:
    """Write the core file; ReplayError when `path` exists or cannot be written, MemoryFault never."""
    mappings = [one for one in pause.mappings() if not hidden(one.start) and "r" in one.prot]
    kept = [one for one in mappings if not _left_out(one)]
    info = session.reader.domains[session.domain]
    notes = _notes(session.reader, info, pause, mappings)
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            size = _write(file, notes, mappings, kept, pause._open())
    except FileExistsError:
        raise ReplayError(f"{path} exists", "Choose another name with -o, or remove it.") from None
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}", "Choose another place with -o.") from None
    left = sorted({one.path for one in mappings if one not in kept})
    return CoreWritten(size, len(pause.threads()), tuple(left))


def _left_out(mapping: Mapping) -> bool:
    """Large files mapped read-only, which debuggers read from the disk."""
    return (
        mapping.end - mapping.start > _LARGE_FILE
        and not mapping.writable
        and not mapping.executable
        and os.path.exists(mapping.path)
    )


# ---- notes ----


def _note(kind: int, data: bytes, owner: bytes = b"CORE") -> bytes:
    name = owner + b"\0"
    return (
        struct.pack("<III", len(name), len(data), kind)
        + name.ljust((len(name) + 3) & ~3, b"\0")
        + data.ljust((len(data) + 3) & ~3, b"\0")
    )


def _notes(reader: TraceReader, info: DomainInfo, pause: Paused, mappings: Sequence[Mapping]) -> bytes:
    threads = sorted(pause.threads(), key=lambda thread: (not thread.stopped_here, thread.tid))
    parts: list[bytes] = []
    last = pause.last_event
    signal = last.nr if last.kind in _SIGNALS else 0
    for thread in threads:
        try:
            state = pause.state(thread.tid)
        except MemoryFault:
            continue
        first = not parts
        parts.append(_note(_NT_PRSTATUS, _prstatus(state, thread.tid, info, signal)))
        if first:
            parts.append(_note(_NT_PRPSINFO, _prpsinfo(info, reader)))
            siginfo = state.siginfo if signal and last.kind == Kind.DEATH else struct.pack("<I", signal)
            parts.append(_note(_NT_SIGINFO, siginfo.ljust(128, b"\0")))
            parts.append(_note(_NT_AUXV, auxv_bytes(reader, info)))
            parts.append(_note(_NT_FILE, _files(mappings)))
        if state.xsave:
            parts.append(_note(_NT_FPREGSET, state.xsave[:FXSAVE_SIZE]))
            parts.append(_note(_NT_X86_XSTATE, state.xsave, b"LINUX"))
    if not parts:
        raise NothingToReplayError(f"no thread can be shown at event {pause.event - 1}", "Choose another.")
    return b"".join(parts)


def _prstatus(state: ThreadState, tid: int, info: DomainInfo, signal: int) -> bytes:
    r = state.registers
    words = (
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi, r.rdi,
        (1 << 64) - 1, r.rip, state.cs, r.eflags, r.rsp, state.ss, state.fs_base, 0, 0, 0, 0, 0,
    )  # fmt: skip
    return (
        struct.pack("<3iH2xQQ4i8q", signal, 0, 0, signal, 0, 0, tid, info.ppid, info.pid, info.pid, *[0] * 8)
        + struct.pack("<27Q", *words)
        + struct.pack("<i4x", int(bool(state.xsave)))
    )


def _prpsinfo(info: DomainInfo, reader: TraceReader) -> bytes:
    start = image_of(reader, info).start
    arguments = " ".join(start.argv).encode(errors="surrogateescape")[:79]
    name = info.comm.encode(errors="surrogateescape")[:15]
    return (
        b"\0R\0\0\0\0\0\0"
        + struct.pack("<QII4i", 0, os.getuid(), os.getgid(), info.pid, info.ppid, info.pid, info.pid)
        + name.ljust(16, b"\0")
        + arguments.ljust(80, b"\0")
    )


def image_of(reader: TraceReader, info: DomainInfo) -> DomainInfo:
    """The domain whose program image `info` runs: itself, or what it was forked from."""
    seen = {info.domain}
    while info.kind == "fork" and info.parent_domain in reader.domains and info.parent_domain not in seen:
        info = reader.domains[info.parent_domain]
        seen.add(info.domain)
    return info


def auxv_bytes(reader: TraceReader, info: DomainInfo) -> bytes:
    """The auxiliary vector the program has: the kernel's without the vDSO."""
    boot = image_of(reader, info).boot
    pairs = boot.auxv if boot is not None else []
    hidden_pairs = [(1 if kind == 33 else kind, value) for kind, value in pairs]
    return b"".join(struct.pack("<QQ", *pair) for pair in [*hidden_pairs, (0, 0)])


def _files(mappings: Sequence[Mapping]) -> bytes:
    named = [one for one in mappings if one.path.startswith("/")]
    return (
        struct.pack("<QQ", len(named), PAGE)
        + b"".join(struct.pack("<QQQ", one.start, one.end, one.offset // PAGE) for one in named)
        + b"".join(os.fsencode(one.path) + b"\0" for one in named)
    )


# ---- the file ----


def _flags(prot: str) -> int:
    return sum(bit for mark, bit in zip(prot, (4, 2, 1), strict=False) if mark != "-")


def _write(
    file: BinaryIO, notes: bytes, mappings: Sequence[Mapping], kept: Sequence[Mapping], memory: Memory
) -> int:
    count = len(mappings) + 1
    extended = count >= _MANY_SEGMENTS
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        4, 62, 1, 0, 64, 64 + 56 * count if extended else 0, 0, 64, 56,
        _MANY_SEGMENTS if extended else count, 64, int(extended), 0,
    )  # fmt: skip
    at = 64 + 56 * count + (64 if extended else 0)
    segments = [struct.pack("<IIQQQQQQ", _PT_NOTE, 0, at, 0, 0, len(notes), 0, 4)]
    at = (at + len(notes) + PAGE - 1) & -PAGE
    places: list[tuple[Mapping, int]] = []
    held = set(map(id, kept))
    for one in mappings:
        size = one.end - one.start
        inside = size if id(one) in held else 0
        segments.append(
            struct.pack("<IIQQQQQQ", _PT_LOAD, _flags(one.prot), at, one.start, 0, inside, size, PAGE)
        )
        if inside:
            places.append((one, at))
        at += inside
    file.write(header + b"".join(segments))
    if extended:
        file.write(struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, count, 0, 0))
    file.write(notes)
    for one, offset in places:
        _copy(file, offset, one, memory)
    file.truncate(at)
    return sum(one.end - one.start for one, _at in places)


def _copy(file: BinaryIO, offset: int, mapping: Mapping, memory: Memory) -> None:
    """The bytes of a mapping; pieces of zeros, and pages behind the end of a mapped file, become holes."""
    start = mapping.start
    while start < mapping.end:
        size = min(_PIECE, mapping.end - start)
        try:
            data = memory.read(start, size)
        except MemoryFault:
            if size > PAGE:
                for page in range(start, start + size, PAGE):
                    _copy(file, offset + page - mapping.start, _page(mapping, page), memory)
            data = b""
        if data.count(0) != len(data):
            file.seek(offset + start - mapping.start)
            file.write(data)
        start += size


def _page(mapping: Mapping, start: int) -> Mapping:
    return Mapping(start, start + PAGE, mapping.prot, mapping.offset, mapping.path)
