"""The writer: never overwrites, keeps order, stays bounded, and leaves whole chunks behind when the disk
refuses."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from interfaces.abi import EVENT_DTYPE
from interfaces.errors import ExitStatus
from tracefile import (
    DomainEnd,
    DomainStart,
    FileEntry,
    Report,
    TraceExistsError,
    TraceMissingError,
    TraceReader,
    TraceWriteError,
    TraceWriter,
    newest_trace,
    next_trace_path,
    writer,
)
from tracefile.fields import FieldError
from tracefile.layout import FILE_MAGIC, SECTION_MAX


def events(count: int) -> bytes:
    return np.zeros(count, EVENT_DTYPE).tobytes()


def started(path: Path) -> TraceWriter:
    trace = TraceWriter.create(path, {"command": ["true"]})
    trace.add_domain(DomainStart(domain=1, kind="exec", pid=7, comm="true"))
    return trace


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        started(tmp_path / "trace.bin").close({})
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "trace.bin").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "trace.bin"
    if kind == "file":
        path.write_bytes(b"precious")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TraceExistsError, match="File exists") as caught:
        TraceWriter.create(path, {})
    assert caught.value.status == ExitStatus.TOOL_FAILED and "never overwritten" in caught.value.remedy
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.bin"]
    if kind == "file":
        assert path.read_bytes() == b"precious"


def test_names_in_a_row(tmp_path: Path) -> None:
    (tmp_path / "trace-2.bin").write_bytes(b"")
    assert next_trace_path(tmp_path).name == "trace.bin"
    made = [TraceWriter.create_numbered(tmp_path, {}) for _ in range(3)]
    assert [trace.path.name for trace in made] == ["trace.bin", "trace-3.bin", "trace-4.bin"]
    assert next_trace_path(tmp_path).name == "trace-5.bin"
    for trace in made:
        trace.close({})


def test_names_in_a_row_for_many_at_once(tmp_path: Path) -> None:
    made: list[str] = []

    def make() -> None:
        for _ in range(10):
            trace = TraceWriter.create_numbered(tmp_path, {})
            made.append(trace.path.name)
            trace.close({})

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == sorted(["trace.bin", *(f"trace-{number}.bin" for number in range(2, 41))])


def test_the_newest_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceMissingError, match="no trace in") as caught:
        newest_trace(tmp_path)
    assert "rr-py record" in caught.value.remedy
    for name, age in (("trace.bin", 5), ("trace-2.bin", 9), ("trace-10.bin", 9), ("other.bin", 100)):
        (tmp_path / name).write_bytes(FILE_MAGIC)
        os.utime(tmp_path / name, ns=(age, age))
    (tmp_path / "trace-3.bin").write_bytes(b"something else")
    os.mkfifo(tmp_path / "trace-4.bin")
    (tmp_path / "trace-5.bin").mkdir()
    assert newest_trace(tmp_path).name == "trace-10.bin"
    os.utime(tmp_path / "trace.bin", ns=(10, 10))
    assert newest_trace(tmp_path).name == "trace.bin"
    with pytest.raises(TraceMissingError, match="cannot look for traces"):
        newest_trace(tmp_path / "missing")


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(TraceWriteError, match="No such file or directory") as caught:
        TraceWriter.create(tmp_path / "missing" / "trace.bin", {})
    assert caught.value.errno == errno.ENOENT and "Create the folder" in caught.value.remedy


def test_a_long_name_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(TraceWriteError, match="File name too long"):
        TraceWriter.create(tmp_path / ("x" * 300), {})


def test_order_is_that_of_the_calls(tmp_path: Path) -> None:
    """GIVEN chunks of very different size WHEN they are added in turn THEN they stand in the file in that
    order."""
    with started(tmp_path / "trace.bin") as trace:
        first = 0
        for number in range(40):
            count = 4096 if number % 5 == 0 else 1
            trace.add_events(1, first, events(count), b"")
            trace.add_report(Report(time=number, domain=1, pid=1, code=0, text=str(first)))
            first += count
    with TraceReader.open(tmp_path / "trace.bin") as reader:
        kinds = [header.type for header, _, _ in reader.raw_chunks()]
        assert kinds[2:-1] == [2, 7] * 40
        assert [report.time for report in reader.reports] == list(range(40))
        assert reader.total_events == first


def test_several_threads_may_add(tmp_path: Path) -> None:
    trace = TraceWriter.create(tmp_path / "trace.bin", {})

    def add(domain: int) -> None:
        trace.add_domain(DomainStart(domain=domain, kind="fork", pid=domain))
        for number in range(50):
            trace.add_events(domain, number * 3, events(3), bytes([domain]) * 8)

    threads = [threading.Thread(target=add, args=(domain,)) for domain in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trace.close({})
    with TraceReader.open(tmp_path / "trace.bin") as reader:
        assert {domain: info.event_count for domain, info in reader.domains.items()} == dict.fromkeys(
            range(1, 5), 150
        )
        assert reader.verify()


def test_a_full_queue_makes_the_caller_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a disk that is stuck WHEN more is added than the queue holds THEN the caller waits until it
    moves."""
    monkeypatch.setattr(writer, "QUEUE_BYTES", 4 * len(events(100)))
    trace = started(tmp_path / "trace.bin")
    trace.flush()
    moves, waits = threading.Event(), threading.Event()
    writev, wait = os.writev, trace._lock.wait
    added: list[int] = []

    def stuck(descriptor: int, parts: Iterable[bytes]) -> int:
        moves.wait()
        return writev(descriptor, list(parts))

    def add() -> None:
        try:
            for number in range(10):
                trace.add_events(1, number * 100, events(100), b"")
                added.append(number)
        finally:
            waits.set()

    def watched_wait(timeout: float | None = None) -> bool:
        if threading.current_thread() is adder:
            waits.set()
        return wait(timeout)

    monkeypatch.setattr(os, "writev", stuck)
    monkeypatch.setattr(trace._lock, "wait", watched_wait)
    adder = threading.Thread(target=add)
    adder.start()
    waits.wait()
    assert added == [0, 1, 2, 3]
    moves.set()
    adder.join()
    trace.close({})
    with TraceReader.open(tmp_path / "trace.bin") as reader:
        assert reader.event_count(1) == 1000


def refuse(
    monkeypatch: pytest.MonkeyPatch, after: int, code: int, partial: int = 0, times: int = 1 << 30
) -> None:
    """Let `after` chunks pass, then refuse `times` with the error `code`, each after `partial` bytes."""
    writev, write = os.writev, os.write
    calls = 0

    def refusing_writev(descriptor: int, parts: Iterable[bytes]) -> int:
        nonlocal calls
        calls += 1
        if not after < calls <= after + times:
            return writev(descriptor, list(parts))
        if partial:
            return write(descriptor, b"".join(parts)[:partial])
        raise OSError(code, os.strerror(code))

    def refusing_write(descriptor: int, data: bytes) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "writev", refusing_writev)
    monkeypatch.setattr(os, "write", refusing_write)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("partial", [0, 1, 90])
def test_a_disk_that_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, partial: int
) -> None:
    """GIVEN a disk that refuses the third chunk of events and all that follows WHEN recording goes on THEN
    every call says so, the file ends with the last whole chunk, and the events before are there."""
    path = tmp_path / "trace.bin"
    trace = started(path)
    trace.flush()
    refuse(monkeypatch, 2, code, partial)
    trace.add_events(1, 0, events(10), b"")
    trace.add_events(1, 10, events(10), b"")
    trace.flush()
    size = path.stat().st_size
    trace.add_events(1, 20, events(10), b"")
    with pytest.raises(TraceWriteError, match=os.strerror(code)) as caught:
        trace.flush()
    assert caught.value.errno == code and caught.value.remedy
    with pytest.raises(TraceWriteError):
        trace.add_events(1, 30, events(10), b"")
    with pytest.raises(TraceWriteError):
        trace.add_report(Report(time=0, domain=1, pid=1, code=0, text=""))
    trace.close({"status": 0})
    assert path.stat().st_size == size
    with TraceReader.open(path) as reader:
        assert reader.event_count(1) == 20
        assert not reader.complete and reader.truncated == 0 and reader.damage is None
        assert "stops after 20 events" in reader.stopped
        assert reader.verify() == 4


def test_the_reason_is_kept_when_a_little_space_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a disk that is full for a chunk of events but not for the small final record WHEN the trace is
    closed THEN a reader can tell why it stops."""
    path = tmp_path / "trace.bin"
    trace = started(path)
    trace.add_events(1, 0, events(10), b"")
    trace.flush()
    refuse(monkeypatch, 0, errno.ENOSPC, 17, times=1)
    trace.add_events(1, 10, events(10), b"")
    with pytest.raises(TraceWriteError, match="No space left on device"):
        trace.close({"status": 3})
    with TraceReader.open(path) as reader:
        assert not reader.complete and reader.final == {"status": 3} and reader.from_index
        assert reader.event_count(1) == 10
        assert reader.stopped.startswith(
            "recording stopped: No space left on device; domain 1 (process 7, true)"
        )


def test_the_index_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.bin"
    trace = started(path)
    trace.add_events(1, 0, events(10), b"")
    trace.flush()
    refuse(monkeypatch, 1, errno.ENOSPC, 50)
    trace.close({})
    with TraceReader.open(path) as reader:
        assert reader.complete and not reader.from_index and reader.verify() == 4


def test_no_file_stays_when_it_cannot_be_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, 1, errno.ENOSPC, 3)
    with pytest.raises(TraceWriteError, match="cannot create the trace: No space left on device"):
        TraceWriter.create(tmp_path / "trace.bin", {})
    assert not any(tmp_path.iterdir())


LIMITED = """
import resource, sys
import numpy as np
from interfaces.abi import EVENT_DTYPE
from tracefile import DomainStart, TraceWriteError, TraceWriter
trace = TraceWriter.create(sys.argv[1], {})
trace.add_domain(DomainStart(domain=1, kind="exec", pid=7, comm="noise"))
trace.flush()
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
noise = np.random.default_rng(1)
try:
    for number in range(10_000):
        events = np.frombuffer(noise.bytes(9600), EVENT_DTYPE).copy()
        events["payload_len"] = 0
        trace.add_events(1, number * 100, events.tobytes(), noise.bytes(5000))
except TraceWriteError as error:
    print(error.errno, error.message)
trace.close({})
"""


def limited(path: Path, *words: str) -> str:
    root = Path(writer.__file__).parent.parent
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), *words],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return run.stdout


def test_a_file_size_limit(tmp_path: Path) -> None:
    """The kernel cuts a write in two here, as on a full disk."""
    path = tmp_path / "trace.bin"
    assert limited(path, "300000") == f"{errno.EFBIG} {path}: cannot write the trace: File too large\n"
    assert path.stat().st_size <= 300000
    with TraceReader.open(path) as reader:
        assert reader.event_count(1) == 2000 and reader.verify()


def test_a_full_disk(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount a tmpfs here")
    try:
        path = tmp_path / "trace.bin"
        assert limited(path) == f"{errno.ENOSPC} {path}: cannot write the trace: No space left on device\n"
        with TraceReader.open(path) as reader:
            assert reader.event_count(1) > 5000 and reader.verify()
            assert not reader.complete and "No space left on device" in reader.stopped
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_misuse_is_told_at_once(tmp_path: Path) -> None:
    trace = started(tmp_path / "trace.bin")
    with pytest.raises(ValueError, match="97 bytes are no whole number"):
        trace.add_events(1, 0, bytes(97), b"")
    with pytest.raises(ValueError, match="domain 2, which was not added"):
        trace.add_events(2, 0, events(1), b"")
    with pytest.raises(ValueError, match="domain 1 was added before"):
        trace.add_domain(DomainStart(domain=1, kind="exec", pid=7))
    with pytest.raises(ValueError, match="a section holds"):
        trace.add_events(1, 0, events(1), bytes(SECTION_MAX + 1))
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        trace.add_blob("ab" * 31, [b""])
    with pytest.raises(FieldError, match="'status' is 'gone'"):
        trace.end_domain(DomainEnd(domain=1, pid=7, status="gone"))
    with pytest.raises(FieldError, match="no path of a system file"):
        trace.add_file(FileEntry(number=1, path="/usr/lib/../../etc/shadow"))
    with pytest.raises(FieldError, match="not JSON serializable"):
        trace.close({"when": object()})
    trace.close({})
    with pytest.raises(ValueError, match="the trace is closed"):
        trace.add_events(1, 0, events(1), b"")
    with TraceReader.open(tmp_path / "trace.bin") as reader:
        assert reader.complete and reader.verify() == 3


def test_long_reports_are_cut(tmp_path: Path) -> None:
    with started(tmp_path / "trace.bin") as trace:
        trace.add_report(Report(time=0, domain=1, pid=1, code=0, text="x" * 10_000))
    with TraceReader.open(tmp_path / "trace.bin") as reader:
        assert reader.reports[0].text == "x" * 8192


def test_an_exception_leaves_an_incomplete_trace(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), started(tmp_path / "trace.bin") as trace:
        trace.add_events(1, 0, events(5), b"")
        raise KeyboardInterrupt
    with TraceReader.open(tmp_path / "trace.bin") as reader:
        assert (reader.complete, reader.event_count(1), reader.live) == (False, 5, False)
