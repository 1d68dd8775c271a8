"""Packing: a trace that needs no file of the machine it was recorded on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tracefile.pack
from interfaces.abi import EVENT_DTYPE
from tracefile import (
    DomainStart,
    FileChangedError,
    FileEntry,
    TraceExistsError,
    TraceFormatError,
    TraceReader,
    TraceWriteError,
    TraceWriter,
    blob_digest,
    pack_trace,
)
from tracefile.layout import HEADER_SIZE, ChunkType

LIBRARY = os.urandom(2_500_000)
STORED = b"was stored while recording"


def entry_of(path: Path, number: int, *, hashed: bool = True) -> FileEntry:
    status = path.stat()
    return FileEntry(
        number=number,
        path=str(path),
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        length=100,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest() if hashed else None,
    )


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "lib.so"
    path.write_bytes(LIBRARY)
    return path


def record(path: Path, *entries: FileEntry, finish: bool = True) -> Path:
    trace = TraceWriter.create(path, {"command": ["x"]})
    trace.add_domain(DomainStart(domain=1, kind="exec", pid=7))
    trace.add_blob(blob_digest(STORED), [STORED])
    trace.add_file(
        FileEntry(number=9, path="/tmp/x", kind="stored", blob=blob_digest(STORED), length=len(STORED))
    )
    for entry in entries:
        trace.add_file(entry)
    trace.add_events(1, 0, np.zeros(100, EVENT_DTYPE).tobytes(), b"payload")
    if finish:
        trace.close({"status": 5})
    else:
        trace.abandon()
    return path


def test_a_packed_trace_holds_everything(tmp_path: Path, library: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    source = record(
        tmp_path / "trace.bin",
        entry_of(library, 1, hashed=False),
        entry_of(library, 2),
        entry_of(empty, 3),
        entry_of(library, 1),
    )
    shown: list[str] = []
    target = tmp_path / "packed.bin"
    packed = pack_trace(source, target, lambda entry: shown.append(entry.path))
    library.unlink()
    assert (packed.files, packed.file_bytes, packed.trace_bytes) == (
        3,
        2 * len(LIBRARY),
        target.stat().st_size,
    )
    assert shown == [str(library), str(library), str(empty)]
    assert target.stat().st_mode & 0o777 == 0o600
    with TraceReader.open(source) as before, TraceReader.open(target) as after:
        assert after.complete and after.from_index and after.verify()
        assert after.totals[ChunkType.BLOB].chunks == 5, "the same content is stored once"
        assert (after.meta, after.final) == (before.meta, before.final)
        assert next(after.chunks(1)).payload == b"payload"
        for number, content in {1: LIBRARY, 2: LIBRARY, 3: b"", 9: STORED}.items():
            entry = after.files[number]
            assert entry.kind == "stored" and entry.blob is not None
            assert entry.path == before.files[number].path and entry.sha256 == before.files[number].sha256
            assert (entry.offset, entry.length) == (0, len(content))
            assert b"".join(after.blob(entry.blob)) == content


def test_packing_twice_changes_nothing(tmp_path: Path, library: Path) -> None:
    source = record(tmp_path / "trace.bin", entry_of(library, 1))
    pack_trace(source, tmp_path / "one.bin")
    assert pack_trace(tmp_path / "one.bin", tmp_path / "two.bin").files == 0
    assert (tmp_path / "one.bin").read_bytes() == (tmp_path / "two.bin").read_bytes()


def test_an_incomplete_trace_stays_so(tmp_path: Path, library: Path) -> None:
    source = record(tmp_path / "trace.bin", entry_of(library, 1), finish=False)
    pack_trace(source, tmp_path / "packed.bin")
    with TraceReader.open(tmp_path / "packed.bin") as reader:
        assert not reader.complete and not reader.live and reader.event_count(1) == 100 and reader.verify()
        assert reader.files[1].kind == "stored"


def test_a_touched_file_of_the_same_content_is_good(tmp_path: Path, library: Path) -> None:
    source = record(tmp_path / "trace.bin", entry_of(library, 1))
    os.utime(library, ns=(1, 1))
    assert pack_trace(source, tmp_path / "packed.bin").files == 1


def replace_by(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink()
    make(path)


CHANGES: dict[str, tuple[Callable[[Path], object], bool, str]] = {
    "gone": (lambda path: path.unlink(), True, "cannot be read: No such file"),
    "longer": (lambda path: path.write_bytes(LIBRARY + b"x"), True, "has 2500001 bytes now, 2500000 when"),
    "other": (lambda path: path.write_bytes(LIBRARY[::-1]), True, "has SHA-256 .* now, .* when"),
    "touched": (lambda path: os.utime(path, ns=(1, 1)), False, "was modified since, and the trace holds no"),
    "a fifo": (lambda path: replace_by(path, os.mkfifo), True, "is no regular file any more"),
    "a folder": (lambda path: replace_by(path, Path.mkdir), True, "is no regular file any more"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changed(tmp_path: Path, library: Path, name: str) -> None:
    """GIVEN a file that is not what was recorded WHEN packing THEN the error names it and no target stays."""
    change, hashed, message = CHANGES[name]
    source = record(tmp_path / "trace.bin", entry_of(library, 1, hashed=hashed))
    change(library)
    with pytest.raises(FileChangedError, match=message) as caught:
        pack_trace(source, tmp_path / "packed.bin")
    assert caught.value.message.startswith(str(library)) and caught.value.remedy
    assert not (tmp_path / "packed.bin").exists()


def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = record(tmp_path / "trace.bin", entry_of(library, 1))
    check = tracefile.pack._check

    def check_and_change(descriptor: int, entry: FileEntry) -> str:
        digest = check(descriptor, entry)
        library.write_bytes(LIBRARY[::-1])
        return digest

    monkeypatch.setattr(tracefile.pack, "_check", check_and_change)
    with pytest.raises(FileChangedError, match="changes while it is read"):
        pack_trace(source, tmp_path / "packed.bin")
    assert not (tmp_path / "packed.bin").exists()


def test_nothing_is_overwritten(tmp_path: Path, library: Path) -> None:
    source = record(tmp_path / "trace.bin", entry_of(library, 1))
    (tmp_path / "packed.bin").write_bytes(b"precious")
    with pytest.raises(TraceExistsError):
        pack_trace(source, tmp_path / "packed.bin")
    assert (tmp_path / "packed.bin").read_bytes() == b"precious"
    with pytest.raises(TraceExistsError):
        pack_trace(source, source)


def test_damage_is_not_copied(tmp_path: Path, library: Path) -> None:
    source = record(tmp_path / "trace.bin", entry_of(library, 1))
    with TraceReader.open(source) as reader:
        offset = reader.domains[1].offsets[0]
    data = bytearray(source.read_bytes())
    data[offset + HEADER_SIZE] ^= 1
    source.write_bytes(data)
    with pytest.raises(TraceFormatError) as caught:
        pack_trace(source, tmp_path / "packed.bin")
    assert caught.value.offset == offset + HEADER_SIZE
    assert not (tmp_path / "packed.bin").exists()


def test_a_full_disk(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = record(tmp_path / "trace.bin", entry_of(library, 1))
    writev = os.writev
    calls = 0

    def full(descriptor: int, parts: list[bytes]) -> int:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise OSError(28, os.strerror(28))
        return writev(descriptor, parts)

    monkeypatch.setattr(os, "writev", full)
    with pytest.raises(TraceWriteError, match="No space left on device"):
        pack_trace(source, tmp_path / "packed.bin")
    assert not (tmp_path / "packed.bin").exists()
