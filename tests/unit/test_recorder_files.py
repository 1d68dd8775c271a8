"""The file table: what is expected at replay, what is stored, and when two mappings show the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from interposer.filecache import FileCache
from recorder.files import MAP_PRIVATE, PROT_EXEC, PROT_WRITE, FileTable
from tracefile import FileEntry, blob_digest

SHARED = 1
READ = 1


class Sink:
    def __init__(self) -> None:
        self.files: dict[int, FileEntry] = {}
        self.blobs: dict[str, bytes] = {}

    def add_file(self, entry: FileEntry) -> None:
        self.files[entry.number] = entry

    def add_blob(self, digest: str, chunks: Iterable[bytes]) -> None:
        self.blobs[digest] = b"".join(chunks)


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sink:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Sink()


@pytest.fixture
def system() -> Iterator[int]:
    fd = os.open("/usr/bin/env", os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "own").write_bytes(bytes(range(256)) * 40)
    fd = os.open(tmp_path / "own", os.O_RDWR)
    yield fd
    os.close(fd)


def test_a_system_file_is_named_not_stored(sink: Sink, system: int) -> None:
    table = FileTable(sink, owner=os.fstat(system).st_uid)
    number, whole = table.mapped(system, 0, 4096, READ, MAP_PRIVATE)
    assert whole
    assert table.mapped(system, 4096, 8192, READ | PROT_EXEC, MAP_PRIVATE) == (number, True)
    entry = sink.files[number]
    assert (entry.kind, entry.path, entry.size) == (
        "system",
        os.path.realpath("/usr/bin/env"),
        os.fstat(system).st_size,
    )
    assert sink.blobs == {}
    table.finish()
    assert sink.files[number].sha256 == hashlib.sha256(Path("/usr/bin/env").read_bytes()).hexdigest()
    again = Sink()
    FileTable(again, owner=os.fstat(system).st_uid).mapped(system, 0, 4096, READ, MAP_PRIVATE)
    assert again.files[1].sha256 == sink.files[number].sha256, "known from the cache the next time"


def test_somebody_elses_file_in_a_system_folder_is_stored(sink: Sink, system: int) -> None:
    table = FileTable(sink, owner=os.fstat(system).st_uid + 1)
    number, whole = table.mapped(system, 0, 4096, READ, MAP_PRIVATE)
    assert not whole
    assert sink.files[number].kind == "stored"


def test_a_private_file_is_stored_whole_and_once(
    sink: Sink, own: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recorder.files._disks", lambda: frozenset({os.fstat(own).st_dev}))
    table = FileTable(sink)
    number, whole = table.mapped(own, 0, 4096, READ, MAP_PRIVATE)
    assert table.mapped(own, 4096, 4096, READ, MAP_PRIVATE).number == number
    entry = sink.files[number]
    assert (entry.kind, entry.offset, entry.length, entry.shared) == ("stored", 0, 10240, False)
    assert entry.blob == blob_digest(os.pread(own, 10240, 0))
    assert sink.blobs[entry.blob] == os.pread(own, 10240, 0)
    assert not whole
    os.pwrite(own, b"changed", 0)
    os.utime(own, ns=(1, 1))
    assert table.mapped(own, 0, 4096, READ, MAP_PRIVATE).number != number


def test_an_answer_lasts_once_it_was_given_twice_for_a_file_that_has_settled(
    sink: Sink, own: int, system: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a file whose time of change is older than the clock is coarse WHEN it is asked for again THEN the
    answer lasts; before, and for a file that has just changed, it does not; a system file's always does.
    """
    monkeypatch.setattr("recorder.files._disks", lambda: frozenset({os.fstat(own).st_dev}))
    changed = os.fstat(own).st_ctime_ns
    for age, lasts in ((0, False), (1_000_000_000, True)):
        monkeypatch.setattr("recorder.files.time.time_ns", lambda age=age: changed + age)
        table = FileTable(sink, owner=os.fstat(system).st_uid)
        number = table.mapped(own, 0, 4096, READ, MAP_PRIVATE).number
        assert not table.lasting(number)
        assert table.mapped(own, 0, 4096, READ, MAP_PRIVATE).number == number
        assert table.lasting(number) == lasts
        assert not table.lasting(table.mapped(own, 0, 4096, READ | PROT_WRITE, SHARED).number)
        assert table.lasting(table.mapped(system, 0, 4096, READ, MAP_PRIVATE).number)
        assert table.lasting(table.mapped(system, 0, 4096, READ, SHARED).number)


def test_what_lives_in_memory_is_looked_at_each_time(sink: Sink) -> None:
    fd = os.memfd_create("rr-test")
    os.write(fd, b"before")
    table = FileTable(sink)
    first = table.mapped(fd, 0, 6, READ, MAP_PRIVATE).number
    status = os.fstat(fd)
    os.pwrite(fd, b"after ", 0)
    os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))
    second = table.mapped(fd, 0, 6, READ, MAP_PRIVATE).number
    contents = [sink.blobs[sink.files[n].blob or ""] for n in (first, second)]
    assert contents == [b"before", b"after "]
    os.close(fd)


def test_shared_mappings_name_the_object_they_share(sink: Sink, own: int) -> None:
    table = FileTable(sink)
    entry = sink.files[table.mapped(own, 0, 4096, READ | PROT_WRITE, SHARED).number]
    status = os.fstat(own)
    assert entry.shared
    assert entry.object == f"{status.st_dev}:{status.st_ino}"


def test_a_system_file_mapped_shared_and_writable_is_stored(sink: Sink, system: int) -> None:
    table = FileTable(sink, owner=os.fstat(system).st_uid)
    number, _ = table.mapped(system, 0, 4096, READ | PROT_WRITE, SHARED)
    assert sink.files[number].kind == "stored"


def test_a_large_file_is_stored_as_far_as_it_is_mapped(
    sink: Sink, own: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recorder.files._WHOLE_MAX", 4096)
    table = FileTable(sink)
    entry = sink.files[table.mapped(own, 8192, 8192, READ, MAP_PRIVATE).number]
    assert (entry.offset, entry.length) == (8192, 2048)
    assert entry.blob is not None
    assert sink.blobs[entry.blob] == os.pread(own, 2048, 8192)


def test_a_device_has_nothing_to_keep(sink: Sink) -> None:
    fd = os.open("/dev/zero", os.O_RDWR)
    assert FileTable(sink).mapped(fd, 0, 4096, READ, MAP_PRIVATE) == (0, False)
    assert sink.files == {}
    os.close(fd)


def test_an_unlinked_file_is_stored(sink: Sink, own: int, tmp_path: Path) -> None:
    (tmp_path / "own").unlink()
    number, _ = FileTable(sink, owner=os.getuid()).mapped(own, 0, 4096, READ, MAP_PRIVATE)
    assert sink.files[number].kind == "stored"


def test_content_known_only_from_memory(sink: Sink) -> None:
    number = FileTable(sink).from_memory("/gone", 4096, b"code")
    entry = sink.files[number]
    assert (entry.path, entry.offset, entry.length) == ("/gone", 4096, 4)
    assert sink.blobs[entry.blob or ""] == b"code"


def test_a_fact_about_a_file_dies_with_its_content(own: int, sink: Sink) -> None:
    cache = FileCache("test-1")
    status = os.fstat(own)
    assert cache.get(status) is None
    cache.put(status, "fact")
    assert cache.get(status) == "fact"
    os.pwrite(own, b"more", 10240)
    assert cache.get(os.fstat(own)) is None


def test_a_cache_that_cannot_be_written_is_no_cache(
    own: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cache = FileCache("test-1")
    cache.put(os.fstat(own), "fact")
    assert cache.get(os.fstat(own)) is None
