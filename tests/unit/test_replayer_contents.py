"""Mapped files out of the disk or the trace, and boot plans."""

from __future__ import annotations

import hashlib
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interfaces import abi
from replayer import bootplan, contents
from replayer.contents import Contents
from replayer.errors import ContentError, NothingToReplayError
from replayer.memory import Mappings
from tracefile import (
    BootImage,
    BootMapping,
    FileChangedError,
    FileEntry,
    TraceReader,
    TraceWriter,
    blob_digest,
)

PAGE = 4096


@contextmanager
def trace_with(path: Path, entries: list[FileEntry], blobs: list[bytes]) -> Iterator[Contents]:
    with TraceWriter.create(path / "t.bin", {}) as writer:
        for blob in blobs:
            writer.add_blob(blob_digest(blob), [blob[:5000], blob[5000:]])
        for entry in entries:
            writer.add_file(entry)
        writer.close({})
    with TraceReader.open(path / "t.bin") as reader:
        provider = Contents(reader)
        yield provider
        provider.close()


def system_entry(path: Path, **changes: object) -> FileEntry:
    status = path.stat()
    fields: dict[str, object] = {
        "number": 1, "path": str(path), "size": status.st_size, "mtime_ns": status.st_mtime_ns,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "length": status.st_size,
    }  # fmt: skip
    return FileEntry(**{**fields, **changes})  # type: ignore[arg-type]


def test_unchanged_system_file_is_mapped_itself(tmp_path: Path) -> None:
    """GIVEN size and time agree WHEN asked THEN the file itself, at the file's own offset."""
    file = tmp_path / "lib.so"
    file.write_bytes(b"code" * 3000)
    with trace_with(tmp_path, [system_entry(file)], []) as provider:
        provider.check_all()
        content = provider.get(1, 1, PAGE, shared=False)
        assert os.fstat(content.fd).st_ino == file.stat().st_ino
        assert content.offset == PAGE
        assert provider.get(1, 2, 0, shared=False).fd == content.fd


def test_what_others_may_open_by_its_number_stays_open(tmp_path: Path) -> None:
    """GIVEN more files than are kept open WHEN all are asked for, twice THEN the lasting ones are always the
    same descriptor, and the others come and go."""
    entries = []
    for number in range(1, abi.OFFERS_MAX + contents._OPEN_MAX + 20):
        file = tmp_path / f"lib{number}.so"
        file.write_bytes(b"%d" % number)
        entries.append(system_entry(file, number=number))
    with trace_with(tmp_path, entries, []) as provider:
        first = {entry.number: provider.get(entry.number, 1, 0, shared=False) for entry in entries}
        lasting = {number: content for number, content in first.items() if content.lasting}
        assert len(lasting) == abi.OFFERS_MAX
        for entry in entries:
            content = provider.get(entry.number, 1, 0, shared=False)
            assert os.pread(content.fd, 10, 0) == b"%d" % entry.number
            assert content == lasting.get(entry.number, content)
        assert len(provider._open) <= contents._OPEN_MAX + 1


def test_touched_system_file_is_taken_for_its_hash(tmp_path: Path) -> None:
    """GIVEN the same content with another time WHEN asked THEN it will do."""
    file = tmp_path / "lib.so"
    file.write_bytes(b"code" * 3000)
    with trace_with(tmp_path, [system_entry(file, mtime_ns=5)], []) as provider:
        provider.check_all()
        assert provider.get(1, 1, 0, shared=False).offset == 0


def changed_content(file: Path) -> None:
    before = file.stat()
    file.write_bytes(b"CODE" * 3000)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def larger(file: Path) -> None:
    file.write_bytes(b"code" * 3001)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed_content, "same size, other content"),
        (larger, "it had 12000 bytes, now 12004"),
        (Path.unlink, "No such file"),
    ],
    ids=["content", "size", "gone"],
)
def test_changed_system_file_is_one_clear_error(
    tmp_path: Path, change: Callable[[Path], None], words: str
) -> None:
    """GIVEN the file is not what was recorded WHEN checked or asked for THEN an error that names it and a
    remedy."""
    file = tmp_path / "lib.so"
    file.write_bytes(b"code" * 3000)
    entry = system_entry(file)
    change(file)
    with trace_with(tmp_path, [entry], []) as provider:
        for attempt in (provider.check_all, lambda: provider.get(1, 1, 0, shared=False)):
            with pytest.raises(FileChangedError, match=words) as caught:
                attempt()
            assert str(file) in caught.value.message
            assert "rr-py pack" in caught.value.remedy


def test_stored_range_keeps_file_offsets(tmp_path: Path) -> None:
    """GIVEN a range of a file in the trace WHEN asked by file offset THEN the bytes are there, padded with
    zeros."""
    blob = bytes(range(256)) * 40
    entry = FileEntry(
        number=7, path="/home/me/app", size=99999, offset=2 * PAGE, length=len(blob), kind="stored",
        blob=blob_digest(blob),
    )  # fmt: skip
    with trace_with(tmp_path, [entry], [blob]) as provider:
        content = provider.get(7, 1, 3 * PAGE, shared=False)
        assert content.offset == PAGE
        assert os.pread(content.fd, 10, content.offset) == blob[PAGE : PAGE + 10]
        assert os.fstat(content.fd).st_size == 3 * PAGE
        assert os.pread(content.fd, PAGE, len(blob)) == bytes(3 * PAGE - len(blob))
        name = os.readlink(f"/proc/self/fd/{content.fd}")
        assert provider.path_of(name) == "/home/me/app"
        assert provider.path_of("/usr/lib/other") == "/usr/lib/other"


def test_large_content_goes_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN content above the limit WHEN asked THEN an unlinked file, not memory; its name still tells the
    number."""
    monkeypatch.setattr(contents, "_LARGE", 1000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blob = bytes(6000) + b"x" * 6000
    entry = FileEntry(number=7, path="/a/b", length=12000, kind="stored", blob=blob_digest(blob))
    with trace_with(tmp_path, [entry], [blob]) as provider:
        content = provider.get(7, 1, 0, shared=False)
        assert os.pread(content.fd, 12000, 0) == blob
        assert os.fstat(content.fd).st_nlink == 0
        assert stat.S_ISREG(os.fstat(content.fd).st_mode)
        assert provider.path_of(os.readlink(f"/proc/self/fd/{content.fd}")) == "/a/b"
        assert [name for name in os.listdir(tmp_path) if name.startswith("rr-file")] == []


def shared_entry(number: int, blob: bytes, offset: int = 0) -> FileEntry:
    return FileEntry(
        number=number, path="/dev/shm/x", size=3 * PAGE, offset=offset, length=len(blob), kind="stored",
        blob=blob_digest(blob), object="1:2", shared=True,
    )  # fmt: skip


def test_shared_object_is_one_file_within_a_domain(tmp_path: Path) -> None:
    """GIVEN two mappings of one object WHEN mapped shared THEN one file, with the newest content of each
    range."""
    first, second = b"A" * 3 * PAGE, bytes(PAGE)
    entries = [shared_entry(1, first), shared_entry(2, second, PAGE)]
    with trace_with(tmp_path, entries, [first, second]) as provider:
        one = provider.get(1, 5, 0, shared=True)
        two = provider.get(2, 5, PAGE, shared=True)
        other = provider.get(1, 6, 0, shared=True)
        assert (one.fd, two.offset) == (two.fd, PAGE)
        assert other.fd != one.fd
        assert os.pread(one.fd, 3 * PAGE, 0) == b"A" * PAGE + bytes(PAGE) + b"A" * PAGE
        private = provider.get(1, 5, 0, shared=False)
        assert private.fd != one.fd


def test_missing_content_is_an_error(tmp_path: Path) -> None:
    """GIVEN a number or a blob the trace does not have WHEN asked THEN ContentError."""
    entry = FileEntry(number=3, path="/x", length=4, kind="stored", blob=blob_digest(b"gone"))
    with trace_with(tmp_path, [entry], []) as provider:
        with pytest.raises(ContentError, match="no file 9"):
            provider.get(9, 1, 0, shared=False)
        with pytest.raises(ContentError, match="missing in the trace"):
            provider.get(3, 1, 0, shared=False)


def image(**changes: object) -> BootImage:
    stack = b"\x01" + bytes(4999)
    top = 0x7FFFFFFFF000
    fields: dict[str, object] = {
        "mappings": [
            BootMapping(start=0x400000, end=0x402000, prot=5, file=1, offset=PAGE, path="/bin/x"),
            BootMapping(
                start=0x403000, end=0x404000, prot=3, file=1, offset=2 * PAGE, path="/bin/x",
                data=((0x403FFD, b"abc"),),
            ),
            BootMapping(start=0x404000, end=0x405000, prot=3, path="[heap]"),
            BootMapping(start=0x7FFFF7FC1000, end=0x7FFFF7FC5000, prot=1, path="[vvar]"),
            BootMapping(start=0x7FFFF7FC5000, end=0x7FFFF7FC7000, prot=5, path="[vdso]"),
            BootMapping(start=0x7FFFFFFDE000, end=top, prot=3, path="[stack]"),
        ],
        "stack_start": top - len(stack), "stack": stack, "auxv": [(6, 4096)], "brk": 0x405000,
        "regs": {"rip": 0x401000, "rsp": top - len(stack)}, "patches": [0x401020],
    }  # fmt: skip
    return BootImage(**{**fields, **changes})  # type: ignore[arg-type]


def decode(data: bytes) -> list[tuple[abi.BootOp, abi.Boot, bytes]]:
    """The steps as the core walks over them."""
    found, at = [], 0
    while at < len(data):
        step = abi.Boot.from_buffer_copy(data, at)
        at += 40
        follows = b""
        if step.op == abi.BootOp.DATA:
            follows = data[at : at + step.len]
            at += (step.len + 7) & ~7
        found.append((abi.BootOp(step.op), step, follows))
    return found


def test_boot_plan_lays_out_the_recorded_image() -> None:
    """GIVEN an image WHEN planned THEN mappings, changed bytes, stack, patches, break and start, in this
    order."""
    plan = decode(bootplan.encode(bootplan.steps(image(), 8 << 20)))
    Op = abi.BootOp
    assert [op for op, _step, _data in plan] == [
        Op.MAP, Op.MAP, Op.DATA, Op.MAP, Op.STACK, Op.DATA, Op.PATCH, Op.BRK, Op.START,
    ]  # fmt: skip
    steps = [step for _op, step, _data in plan]
    assert (steps[0].addr, steps[0].len, steps[0].prot, steps[0].file, steps[0].off) == (
        0x400000, 0x2000, 5, 1, PAGE,
    )  # fmt: skip
    assert (steps[2].addr, plan[2][2]) == (0x403FFD, b"abc")
    assert (steps[3].addr, steps[3].file, steps[3].off) == (0x404000, 0, 0)
    assert (steps[4].addr, steps[4].len) == (0x7FFFFFFFF000 - (8 << 20), 8 << 20)
    assert (steps[5].addr, plan[5][2]) == (0x7FFFFFFFF000 - 5000, image().stack)
    assert steps[6].addr == 0x401020
    assert steps[7].addr == 0x405000
    assert (steps[8].addr, steps[8].len) == (0x401000, 0x7FFFFFFFF000 - 5000)


def test_programs_that_show_the_same_files_have_plans_of_their_own() -> None:
    """GIVEN images of the same files with other stacks, other content, or a mapping more WHEN planned, in any
    order THEN each plan is that of its steps."""
    top = 0x7FFFFFFFF000
    heap = BootMapping(start=0x404000, end=0x405000, prot=3, path="[heap]")
    other = image(
        stack=b"other" * 600, stack_start=top - 3000, regs={"rip": 0x401004, "rsp": top - 3000}, brk=0x406000
    )
    changed = image(mappings=[mapping._replace(data=()) for mapping in image().mappings])
    more = image(mappings=[*image().mappings, heap._replace(start=0x500000, end=0x501000)])
    close = image(mappings=[*image().mappings, heap._replace(start=top - (1 << 21), end=top - (1 << 20))])
    plans = set()
    for one in (image(), other, changed, more, close, image(patches=[]), image(), other):
        assert bootplan.plan(one) == bootplan.encode(bootplan.steps(one))
        plans.add(bootplan.plan(one))
    assert len(plans) == 6
    assert [step.op for step in bootplan.steps(close)].count(abi.BootOp.STACK) == 1
    stack = next(step for step in bootplan.steps(close) if step.op == abi.BootOp.STACK)
    assert stack.addr >= top - (1 << 20)


def test_boot_plan_in_a_memfd_is_the_same_bytes() -> None:
    """GIVEN a plan WHEN put into a memfd THEN its size and bytes are those of the plan."""
    data = bootplan.encode(bootplan.steps(image()))
    descriptor = bootplan.to_memfd(data)
    try:
        assert os.pread(descriptor, len(data) + 1, 0) == data
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("limit", "size"),
    [(1 << 20, 8 << 20), (64 << 20, 64 << 20), (resource.RLIM_INFINITY, 1 << 30)],
    ids=["small", "large", "unlimited"],
)
def test_stack_range_follows_the_limit(limit: int, size: int) -> None:
    """GIVEN a stack limit WHEN planned THEN the stack has room for it, at least 8 MB, at most 1 GB."""
    stack = next(step for step in bootplan.steps(image(), limit) if step.op == abi.BootOp.STACK)
    assert (stack.addr + stack.len, stack.len) == (0x7FFFFFFFF000, size)


@pytest.mark.parametrize(("limit", "size"), [(12 << 20, 12 << 20), (2**64 - 1, 1 << 30)])
def test_stack_grows_from_what_was_recorded_to_the_recorded_limit(limit: int, size: int) -> None:
    """GIVEN an image with a limit WHEN planned THEN its pages, limit, and the range where that fails."""
    stack = next(step for step in bootplan.steps(image(stack_limit=limit)) if step.op == abi.BootOp.STACK)
    assert (stack.file, stack.off, stack.len) == (0x21, limit, size)


def test_stack_range_stays_clear_of_what_lies_below() -> None:
    """GIVEN a mapping 2 MB below the stack WHEN planned THEN the stack's range ends 1 MB above it."""
    low = BootMapping(start=0x7FFFFFC00000, end=0x7FFFFFDFF000, prot=3)
    stack = next(
        step
        for step in bootplan.steps(image(mappings=[low]), 8 << 20)
        if step.op == abi.BootOp.STACK
    )  # fmt: skip
    assert stack.addr == 0x7FFFFFDFF000 + (1 << 20)
    assert stack.addr + stack.len >= 0x7FFFFFFFF000 - PAGE


@pytest.mark.parametrize("changes", [{"regs": {}}, {"stack": b""}, {"regs": {"rip": 1, "rsp": 5}}])
def test_image_without_stack_or_entry_is_refused(changes: dict[str, object]) -> None:
    """GIVEN an image no program could start with WHEN planned THEN one clear error."""
    with pytest.raises(NothingToReplayError, match="recorded image"):
        bootplan.steps(image(**changes))


def test_maps_are_parsed_and_searched() -> None:
    """GIVEN the text of a maps file WHEN parsed THEN addresses are found in their mapping and nowhere
    else."""
    mappings = Mappings.parse(
        "00400000-00402000 r-xp 00001000 08:01 12 /opt/a b (deleted)\n"
        "00402000-00403000 rw-p 00000000 00:00 0 \n"
        "nonsense\n"
    )
    first = mappings.at(0x401FFF)
    assert first is not None
    assert (first.path, first.executable, first.writable, first.offset) == (
        "/opt/a b (deleted)", True, False, PAGE,
    )  # fmt: skip
    second = mappings.at(0x402000)
    assert second is not None
    assert second.writable
    assert (mappings.at(0x403000), mappings.at(0), len(mappings)) == (None, None, 2)
