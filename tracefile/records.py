"""What a trace says besides events: domains, files, reports and how it ended; and their form in chunks.

Every record has `encode()` and `decode()`; the latter is given what may be a stranger's bytes and raises
`FieldError` for anything that a writer would not have written. Heavy parts (the initial stack, the
environment) lie in a chunk's section B, so that a reader can list thousands of domains from their short
section A alone.
"""

import os.path
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tracefile.fields import U64, FieldError, Fields, dump_json, load_json

PATH_MAX = 8192
TEXT_MAX = 8192
MAPPINGS_MAX = 100_000
STRINGS_MAX = 2_000_000
U32 = (1 << 32) - 1

DOMAIN_KINDS = ("exec", "fork")
END_STATUSES = ("exited", "signaled", "execed", "lost")
FILE_KINDS = ("system", "stored")
_NO_SYSTEM_FILES = ("/dev/", "/proc/", "/sys/")


class BootMapping(NamedTuple):
    """One mapping of a new image, before its first instruction.

    Addresses and `offset` are bytes; `prot` has PROT_* bits; `flags` is 'p' (private) or 's' (shared); `file`
    is a number of the file table, 0 for anonymous memory. `data` are (address, bytes) that differ from the
    file's content.
    """

    start: int
    end: int
    prot: int
    flags: str = "p"
    offset: int = 0
    dev: int = 0
    ino: int = 0
    path: str = ""
    file: int = 0
    data: tuple[tuple[int, bytes], ...] = ()


class BootImage(NamedTuple):
    """Everything the kernel set up for a program that is about to run its first instruction.

    `stack_start` is the address of the first byte of `stack`, which reaches to the top of the stack;
    `patches` are addresses of CPUID instructions that were replaced; `stack_limit` is the bytes the stack may
    grow to (no limit: 2**64 - 1), 0 where it is not known.
    """

    mappings: Sequence[BootMapping]
    stack_start: int
    stack: bytes
    regs: dict[str, int]
    auxv: list[tuple[int, int]]
    brk: int
    patches: Sequence[int] = ()
    stack_limit: int = 0


class DomainStart(NamedTuple):
    """A log begins: `kind` 'exec' with the image that was made, or 'fork' with what it is a copy of.

    `parent_domain` 0 means that the recorder started it; `parent_event` is the number of the parent's event
    that made it, where known; `time` is CLOCK_MONOTONIC nanoseconds.
    """

    domain: int
    kind: str
    pid: int
    parent_domain: int = 0
    parent_event: int | None = None
    ppid: int = 0
    time: int = 0
    comm: str = ""
    exe: str = ""
    cwd: str = ""
    argv: Sequence[str] = ()
    envp: Sequence[str] = ()
    boot: BootImage | None = None

    def encode(self) -> tuple[bytes, bytes]:
        """Sections A and B."""
        tail = _Tail()
        boot = b"null" if self.boot is None else _boot_document(self.boot, tail)
        lists = dump_json({"argv": tail.strings(self.argv), "envp": tail.strings(self.envp)})
        document = b'{"boot":' + boot + b"," + lists[1:]
        summary = dump_json(
            {
                "domain": self.domain,
                "kind": self.kind,
                "pid": self.pid,
                "parent_domain": self.parent_domain,
                "parent_event": self.parent_event,
                "ppid": self.ppid,
                "time": self.time,
                "comm": self.comm,
                "exe": self.exe,
                "cwd": self.cwd,
            }
        )
        return summary, len(document).to_bytes(8, "little") + document + tail.data

    def check(self) -> None:
        """Raises FieldError where a reader would, but for the image, which is believed: that takes long.

        Many programs start, so nothing is decoded where all is well.
        """
        numbers = (self.domain - 1, self.pid, self.parent_domain, self.ppid)
        times = (self.time, self.parent_event or 0)
        texts = self.comm + self.exe + self.cwd
        if (
            self.kind not in DOMAIN_KINDS
            or not all(0 <= number <= U32 for number in numbers)
            or not all(0 <= time <= U64 for time in times)
            or len(texts) > 256
            or "\0" in texts
        ):
            DomainStart.decode(self.encode()[0], None)

    @staticmethod
    def decode(section_a: bytes, section_b: bytes | None) -> "DomainStart":
        """From section A, and B for `argv`, `envp` and `boot`; these stay empty without it."""
        fields = Fields(load_json(section_a), "domain start")
        start = DomainStart(
            domain=fields.integer("domain", 1, U32),
            kind=fields.choice("kind", DOMAIN_KINDS),
            pid=fields.integer("pid", 0, U32),
            parent_domain=fields.integer("parent_domain", 0, U32),
            parent_event=fields.optional("parent_event", fields.integer),
            ppid=fields.integer("ppid", 0, U32),
            time=fields.integer("time"),
            comm=fields.text("comm", 256),
            exe=fields.text("exe", PATH_MAX),
            cwd=fields.text("cwd", PATH_MAX),
            argv=[],
            envp=[],
        )
        return start if section_b is None else start.detailed(section_b)

    def detailed(self, section_b: bytes) -> "DomainStart":
        """The same with `argv`, `envp` and `boot`."""
        size = int.from_bytes(section_b[:8], "little")
        if len(section_b) < 8 or size > len(section_b) - 8:
            raise FieldError(f"domain start: {size} bytes of details in {len(section_b)} bytes")
        document, known = _known_files(section_b[8 : 8 + size])
        detail = Fields(load_json(document), "domain start")
        parts = _Parts(section_b[8 + size :])
        boot = None
        if detail.has("boot"):
            boot = _boot_from(Fields(detail.object("boot"), "boot image"), parts, known)
        argv, envp = parts.strings(detail, "argv"), parts.strings(detail, "envp")
        return self._replace(argv=argv, envp=envp, boot=boot)


class DomainEnd(NamedTuple):
    """A process of a domain ended: `status` 'exited' with code, 'signaled' with a signal as `code`, 'execed'
    (its program was replaced, another domain follows), or 'lost' (recording stopped while it went on)."""

    domain: int
    pid: int
    status: str
    code: int = 0
    time: int = 0

    def encode(self) -> bytes:
        """Section A."""
        return dump_json(
            {
                "domain": self.domain,
                "pid": self.pid,
                "status": self.status,
                "code": self.code,
                "time": self.time,
            }
        )

    def check(self) -> None:
        """Raises FieldError where a reader would; many processes end, so this does not decode anything."""
        numbers = (self.domain - 1, self.pid, self.code)
        if self.status not in END_STATUSES or not all(0 <= number <= U32 for number in numbers):
            DomainEnd.decode(self.encode())

    @staticmethod
    def decode(section_a: bytes) -> "DomainEnd":
        """From section A."""
        fields = Fields(load_json(section_a), "domain end")
        return DomainEnd(
            domain=fields.integer("domain", 1, U32),
            pid=fields.integer("pid", 0, U32),
            status=fields.choice("status", END_STATUSES),
            code=fields.integer("code", 0, U32),
            time=fields.integer("time"),
        )


class FileEntry(NamedTuple):
    """A file that was mapped. A later entry of the same number replaces an earlier one (to add a hash, say).

    `kind` 'system': the file is expected to be there at replay, same `size` and `mtime_ns`, or same `sha256`
    of its whole content. 'stored': `blob` is the digest of the bytes [offset, offset + length) in the trace.
    `object` ("dev:ino") names what shared mappings of one file have in common; `shared` says that it was
    mapped so.
    """

    number: int
    path: str
    dev: int = 0
    ino: int = 0
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    length: int = 0
    sha256: str | None = None
    kind: str = "system"
    blob: str | None = None
    object: str | None = None
    shared: bool = False

    def encode(self) -> bytes:
        """Section A."""
        return dump_json(
            {
                "number": self.number,
                "path": self.path,
                "dev": self.dev,
                "ino": self.ino,
                "size": self.size,
                "mtime_ns": self.mtime_ns,
                "offset": self.offset,
                "length": self.length,
                "sha256": self.sha256,
                "kind": self.kind,
                "blob": self.blob,
                "object": self.object,
                "shared": self.shared,
            }
        )

    @staticmethod
    def decode(section_a: bytes) -> "FileEntry":
        """From section A. The path of a 'system' file is absolute, normalised and outside /dev, /proc and
        /sys."""
        fields = Fields(load_json(section_a), "file")
        entry = FileEntry(
            number=fields.integer("number", 1, U32),
            path=fields.text("path", PATH_MAX),
            dev=fields.integer("dev"),
            ino=fields.integer("ino"),
            size=fields.integer("size", 0, U64 >> 1),
            mtime_ns=fields.integer("mtime_ns", -(1 << 63), U64),
            offset=fields.integer("offset"),
            length=fields.integer("length"),
            sha256=fields.optional("sha256", lambda key: fields.hexadecimal(key, 64)),
            kind=fields.choice("kind", FILE_KINDS),
            blob=fields.optional("blob", lambda key: fields.hexadecimal(key, 64)),
            object=fields.optional("object", lambda key: fields.text(key, 64)),
            shared=fields.boolean("shared"),
        )
        if entry.kind == "stored":
            if entry.blob is None:
                raise FieldError(f"file {entry.number} is stored but names no blob")
        elif not is_plain_path(entry.path):
            raise FieldError(f"file {entry.number}: {entry.path[:80]!r} is no path of a system file")
        return entry


def is_plain_path(path: str) -> bool:
    """Whether a path is absolute, normalised and not in a file system of devices or kernel tables."""
    return (
        path.startswith("/")
        and not path.startswith("//")
        and os.path.normpath(path) == path
        and not (path + "/").startswith(_NO_SYSTEM_FILES)
    )


class Report(NamedTuple):
    """Something the user should know; `code` is one of the core's report codes (0: the recorder's own).

    `text` is written without what exceeds TEXT_MAX characters.
    """

    time: int
    domain: int
    pid: int
    code: int
    text: str

    def encode(self) -> bytes:
        """Section A."""
        return dump_json(
            {
                "time": self.time,
                "domain": self.domain,
                "pid": self.pid,
                "code": self.code,
                "text": self.text[:TEXT_MAX],
            }
        )

    @staticmethod
    def decode(section_a: bytes) -> "Report":
        """From section A."""
        fields = Fields(load_json(section_a), "report")
        return Report(
            time=fields.integer("time"),
            domain=fields.integer("domain", 0, U32),
            pid=fields.integer("pid", 0, U32),
            code=fields.integer("code", 0, U32),
            text=fields.text("text", TEXT_MAX),
        )


class _Tail:
    """Collects the binary parts of a section B; a part is written as [offset, bytes] in the document."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, part: bytes) -> list[int]:
        place = [len(self.data), len(part)]
        self.data += part
        return place

    def strings(self, strings: Sequence[str]) -> list[int]:
        """[offset, bytes, number of strings]; each string ends with a NUL."""
        encoded = "\0".join([*strings, ""]).encode("utf-8", "surrogateescape")
        return [*self.add(encoded), len(strings)]


class _Parts:
    """Gives the binary parts of a section B back, each within its bounds."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def part(self, offset: int, size: int) -> bytes:
        if offset > len(self._data) or size > len(self._data) - offset:
            raise FieldError(f"a part of {size} bytes at {offset} in {len(self._data)} bytes")
        return self._data[offset : offset + size]

    def strings(self, fields: Fields, key: str) -> list[str]:
        place = fields.integers(key, 3)
        if len(place) != 3:
            raise FieldError(f"{key!r} has {len(place)} numbers, expected 3")
        data = self.part(place[0], place[1])
        if data.count(b"\0") != place[2] or place[2] > STRINGS_MAX or (data and data[-1] != 0):
            raise FieldError(f"{key!r} does not hold {place[2]} strings")
        return [text.decode("utf-8", "surrogateescape") for text in data.split(b"\0")[:-1]]


def _boot_document(boot: BootImage, tail: _Tail) -> bytes:
    """The document of an image. What it shows of files comes first: it is the same for many programs."""
    assert not tail.data
    mappings, contents, patches = _same_for_many(tuple(boot.mappings), tuple(boot.patches))
    tail.add(contents)
    rest = dump_json(
        {
            "stack_start": boot.stack_start,
            "stack": tail.add(boot.stack),
            "regs": boot.regs,
            "auxv": boot.auxv,
            "brk": boot.brk,
            "stack_limit": boot.stack_limit,
        }
    )
    return b'{"mappings":' + mappings + b',"patches":' + patches + b"," + rest[1:]


@lru_cache(maxsize=64)
def _same_for_many(mappings: tuple[BootMapping, ...], patches: tuple[int, ...]) -> tuple[bytes, bytes, bytes]:
    """The lists of mappings and of patches as JSON, and between them the content the mappings refer to, which
    is to be the first part of the tail."""
    tail = _Tail()
    documents = [
        {
            "start": m.start,
            "end": m.end,
            "prot": m.prot,
            "flags": m.flags,
            "offset": m.offset,
            "dev": m.dev,
            "ino": m.ino,
            "path": m.path,
            "file": m.file,
            "data": [[address, *tail.add(content)] for address, content in m.data],
        }
        for m in mappings
    ]
    return dump_json(documents), bytes(tail.data), dump_json(patches)


class _ShownFiles(NamedTuple):
    """What a document says of an image's files: the mappings without content, where in the parts that of each
    is, as (address, offset, bytes), and the patches."""

    mappings: list[tuple[BootMapping, list[tuple[int, ...]]]]
    patches: list[int]


_FILES_FIRST, _FILES_END = b'{"boot":{"mappings":', b',"stack_start":'


def _known_files(document: bytes) -> tuple[bytes, _ShownFiles | None]:
    """A document without what it says of files, where that stands apart as `_boot_document` writes it: it is
    read once however many programs it is said of. Else the document as it is.

    In JSON the mark between the two stands in no text, as a quote within one has a backslash before it.
    """
    end = document.find(_FILES_END)
    if end < 0 or not document.startswith(_FILES_FIRST):
        return document, None
    try:
        known = _shown_once(document[:end] + b"}}")
    except FieldError:
        return document, None
    return b'{"boot":{' + document[end + 1 :], known


@lru_cache(maxsize=64)
def _shown_once(document: bytes) -> _ShownFiles:
    detail = Fields(load_json(document), "domain start")
    return _shown_files(Fields(detail.object("boot"), "boot image"))


def _shown_files(fields: Fields) -> _ShownFiles:
    return _ShownFiles(
        [_mapping_from(mapping) for mapping in fields.objects("mappings", MAPPINGS_MAX)],
        fields.integers("patches", MAPPINGS_MAX),
    )


def _boot_from(fields: Fields, parts: _Parts, known: _ShownFiles | None) -> BootImage:
    stack = fields.integers("stack", 2)
    if len(stack) != 2:
        raise FieldError(f"boot image: 'stack' has {len(stack)} numbers, expected 2")
    files = known or _shown_files(fields)
    return BootImage(
        mappings=[_filled(mapping, places, parts) for mapping, places in files.mappings],
        stack_start=fields.integer("stack_start"),
        stack=parts.part(stack[0], stack[1]),
        regs=fields.mapping("regs", 64),
        auxv=[(pair[0], pair[1]) for pair in fields.tuples("auxv", 2, 256)],
        brk=fields.integer("brk"),
        patches=files.patches,
        stack_limit=fields.integer("stack_limit") if fields.has("stack_limit") else 0,
    )


def _filled(mapping: BootMapping, places: list[tuple[int, ...]], parts: _Parts) -> BootMapping:
    if not places:
        return mapping
    return mapping._replace(data=tuple((address, parts.part(at, size)) for address, at, size in places))


def _mapping_from(fields: Fields) -> tuple[BootMapping, list[tuple[int, ...]]]:
    places = fields.tuples("data", 3, MAPPINGS_MAX)
    mapping = BootMapping(
        start=fields.integer("start"),
        end=fields.integer("end"),
        prot=fields.integer("prot", 0, U32),
        flags=fields.choice("flags", ("p", "s")),
        offset=fields.integer("offset"),
        dev=fields.integer("dev"),
        ino=fields.integer("ino"),
        path=fields.text("path", PATH_MAX),
        file=fields.integer("file", 0, U32),
    )
    if mapping.start >= mapping.end:
        raise FieldError(f"boot image: a mapping from {mapping.start:#x} to {mapping.end:#x}")
    for address, _, size in places:
        if not mapping.start <= address <= mapping.end - size:
            raise FieldError(f"boot image: content at {address:#x} outside of its mapping")
    return mapping, places
