"""What /proc says of one process: mappings, the program break, names. Only reads; /proc may be read-only."""

import os
from functools import lru_cache
from typing import NamedTuple


class Mapping(NamedTuple):
    """One line of /proc/PID/maps."""

    start: int
    end: int
    prot: str
    """Four letters, as in `r-xp`."""
    offset: int
    device: tuple[int, int]
    inode: int
    path: str
    """A file, `[stack]` and its like, or empty; ends with " (deleted)" for an unlinked file."""

    @property
    def executable(self) -> bool:
        return self.prot[2] == "x"

    @property
    def writable(self) -> bool:
        return self.prot[1] == "w"

    @property
    def is_file(self) -> bool:
        return self.inode != 0


def _unescape(path: str) -> str:
    return path.replace("\\012", "\n")


def parse_maps(text: str) -> list[Mapping]:
    """The lines of a maps file."""
    return [_parse_line(line) for line in text.split("\n") if line]


@lru_cache(maxsize=256)
def _parse_line(line: str) -> Mapping:
    """One line; kept, since without random addresses the same programs look the same."""
    span, prot, offset, device, inode, *rest = line.split(None, 5)
    start, _, end = span.partition("-")
    major, _, minor = device.partition(":")
    return Mapping(
        int(start, 16),
        int(end, 16),
        prot,
        int(offset, 16),
        (int(major, 16), int(minor, 16)),
        int(inode),
        _unescape(rest[0]) if rest else "",
    )


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def maps(pid: int) -> bytes:
    """The maps file of `pid` as it is. Raises OSError."""
    return _read(f"/proc/{pid}/maps")


def mappings(pid: int) -> list[Mapping]:
    """Every mapping of `pid`, in order of address. Raises OSError."""
    return parse_maps(maps(pid).decode(errors="surrogateescape"))


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that the recorder needs."""

    comm: str
    ppid: int
    brk: int
    """Start of the heap, which is the break while nothing has run; 0 where the kernel does not tell."""


def stat(pid: int) -> Stat:
    """Raises OSError when there is no such process."""
    text = _read(f"/proc/{pid}/stat").decode(errors="surrogateescape")
    open_at, close_at = text.index("("), text.rindex(")")
    fields = text[close_at + 2 :].split()
    return Stat(text[open_at + 1 : close_at], int(fields[1]), int(fields[44]))


def tracer(pid: int) -> int:
    """The process that traces `pid`; 0: none. Raises OSError."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"TracerPid:"):
            return int(line.split()[1])
    return 0


def link(pid: int, name: str) -> str:
    """Where /proc/PID/`name` (exe, cwd, root) points; empty where that cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def threads(pid: int) -> int:
    """How many threads `pid` has; 0 when it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0
