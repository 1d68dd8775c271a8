"""What is written is what is read: events, payloads, records, content, documents."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interfaces.abi import EVENT_DTYPE, RegionKind
from tracefile import (
    BootImage,
    BootMapping,
    DomainEnd,
    DomainStart,
    FileEntry,
    Report,
    TraceReader,
    TraceWriter,
    blob_digest,
)
from tracefile.codec import Compressor
from tracefile.fields import Json, dump_json, load_json
from tracefile.layout import BLOB_PIECE, EVENT_SIZE, Codec

U32 = st.integers(0, (1 << 32) - 1)
U64 = st.integers(0, (1 << 64) - 1)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
NAMES = st.binary(max_size=40).map(lambda raw: raw.replace(b"\0", b"x").decode("utf-8", "surrogateescape"))
HEX = st.binary(min_size=32, max_size=32).map(bytes.hex)
SYSTEM_PATHS = st.text("abc.-", min_size=1, max_size=9).map(lambda name: f"/usr/lib/x{name}")

_counter = itertools.count()


def path_in(folder: Path) -> Path:
    """A name that no example used before."""
    return folder / f"trace-{next(_counter) + 1}.bin"


many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)


def test_noise_is_stored_as_it_is() -> None:
    noise = os.urandom(EVENT_SIZE * 64)
    assert Compressor().section(noise) == (Codec.RAW, noise)
    assert Compressor().events(noise) == (Codec.RAW, noise)


@many
@given(
    batches=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 5), st.binary(max_size=200)),
        max_size=12,
    )
)
def test_events_and_payloads(tmp_path: Path, batches: list[tuple[int, int, bytes]]) -> None:
    path = path_in(tmp_path)
    rng = np.random.default_rng(len(batches))
    expected: dict[int, list[bytes]] = {1: [], 2: [], 3: []}
    payloads: dict[int, list[bytes]] = {1: [], 2: [], 3: []}
    counts = dict.fromkeys(expected, 0)
    with TraceWriter.create(path, {"n": len(batches)}) as writer:
        for domain in expected:
            writer.add_domain(DomainStart(domain=domain, kind="fork", pid=100 + domain))
        for which, count, payload in batches:
            domain = which + 1
            raw = rng.bytes(count * EVENT_SIZE)
            writer.add_events(domain, counts[domain], memoryview(raw), bytearray(payload))
            counts[domain] += count
            if count:
                expected[domain].append(raw)
                payloads[domain].append(payload)
    with TraceReader.open(path) as reader:
        assert reader.complete and reader.from_index and reader.damage is None
        assert reader.meta == {"n": len(batches)}
        assert reader.total_events == sum(counts.values())
        for domain in expected:
            chunks = list(reader.chunks(domain))
            assert [chunk.events.tobytes() for chunk in chunks] == expected[domain]
            assert [chunk.payload for chunk in chunks] == payloads[domain]
            assert reader.event_count(domain) == counts[domain]
            for start in range(counts[domain] + 1):
                tail = b"".join(chunk.events.tobytes() for chunk in reader.chunks(domain, start))
                assert tail == b"".join(expected[domain])[start * EVENT_SIZE :]


def test_single_events_and_their_regions(tmp_path: Path) -> None:
    """GIVEN chunks of which each event owns one region WHEN single events are asked for THEN all fields
    agree."""
    path = tmp_path / "trace.bin"
    events = np.zeros(7, EVENT_DTYPE)
    events["task"] = 4242
    events["kind"] = 1
    events["nr"] = np.arange(7)
    events["ip"] = (1 << 64) - 1
    events["args"] = np.arange(42).reshape(7, 6)
    events["result"] = -np.arange(7)
    events["time_in"], events["time_out"] = 5, 6
    events["payload_len"] = 24
    events["payload_off"] = np.arange(7) * 24
    region = (0x7000).to_bytes(8, "little") + (3).to_bytes(4, "little") + bytes([RegionKind.OUT, 1, 0, 0])
    payload = b"".join(region + bytes([i, i, i, 0, 0, 0, 0, 0]) for i in range(7))
    with TraceWriter.create(path, {}) as writer:
        writer.add_domain(DomainStart(domain=1, kind="exec", pid=1))
        writer.add_events(1, 0, events.tobytes(), payload)
        writer.add_events(1, 7, events.tobytes(), payload)
    with TraceReader.open(path) as reader:
        for number in (13, 0, 7, 6):
            event = reader.event(1, number)
            i = number % 7
            assert (event.domain, event.number, event.task, event.kind, event.nr) == (1, number, 4242, 1, i)
            assert (event.ip, event.result, event.time_in, event.time_out) == ((1 << 64) - 1, -i, 5, 6)
            assert event.args == tuple(range(6 * i, 6 * i + 6))
            assert [(r.addr, r.kind, r.arg, bytes(r.data)) for r in event.regions] == [
                (0x7000, RegionKind.OUT, 1, bytes([i, i, i]))
            ]
        second = list(reader.chunks(1))[1].starting_at(10)
        assert second.first_event == 10 and len(second) == 4
        assert [r.data for r in second.regions(0)] == [bytes([3, 3, 3])]
        assert [event.number for event in second.views(1, 3)] == [11, 12]
        with pytest.raises(IndexError, match="14 events, there is no event 14"):
            reader.event(1, 14)
        with pytest.raises(KeyError):
            reader.event(2, 0)
        assert list(reader.chunks(1, 14)) == []


boot_images = st.builds(
    BootImage,
    mappings=st.lists(
        st.builds(
            lambda start, length, **rest: BootMapping(
                start=start,
                end=start + length,
                data=((start, b"\x01\0\xff"[:length]), (start + length, b"")),
                **rest,
            ),
            start=st.integers(0, 1 << 47),
            length=st.integers(1, 1 << 30),
            prot=st.integers(0, 7),
            flags=st.sampled_from("ps"),
            offset=U64,
            dev=U64,
            ino=U64,
            path=NAMES,
            file=U32,
        ),
        max_size=4,
    ),
    stack_start=U64,
    stack=st.binary(max_size=300),
    regs=st.dictionaries(st.sampled_from(["rip", "rsp", "rax", "r15"]), U64),
    auxv=st.lists(st.tuples(U64, U64), max_size=5),
    brk=U64,
    stack_limit=U64,
    patches=st.lists(U64, max_size=3),
)
starts = st.builds(
    DomainStart,
    domain=st.integers(1, (1 << 32) - 1),
    kind=st.sampled_from(["exec", "fork"]),
    pid=U32,
    parent_domain=U32,
    parent_event=st.none() | U64,
    ppid=U32,
    time=U64,
    comm=NAMES,
    exe=NAMES,
    cwd=NAMES,
    argv=st.lists(NAMES, max_size=4),
    envp=st.lists(NAMES, max_size=4),
    boot=st.none() | boot_images,
)


@given(starts)
def test_domain_starts(start: DomainStart) -> None:
    section_a, section_b = start.encode()
    assert DomainStart.decode(section_a, section_b) == start
    short = DomainStart.decode(section_a, None)
    assert (short.domain, short.comm, short.argv, short.boot) == (start.domain, start.comm, [], None)


@given(
    st.builds(
        DomainEnd,
        domain=st.integers(1, (1 << 32) - 1),
        pid=U32,
        status=st.sampled_from(["exited", "signaled", "execed", "lost"]),
        code=U32,
        time=U64,
    )
)
def test_domain_ends(end: DomainEnd) -> None:
    assert DomainEnd.decode(end.encode()) == end


@given(
    st.builds(
        FileEntry,
        number=st.integers(1, (1 << 32) - 1),
        path=SYSTEM_PATHS,
        dev=U64,
        ino=U64,
        size=st.integers(0, (1 << 63) - 1),
        mtime_ns=st.integers(-(1 << 63), (1 << 63) - 1),
        offset=U64,
        length=U64,
        sha256=st.none() | HEX,
        kind=st.just("system"),
        blob=st.none(),
        object=st.none() | st.just("8:1234"),
        shared=st.booleans(),
    )
    | st.builds(lambda path, blob: FileEntry(number=1, path=path, kind="stored", blob=blob), NAMES, HEX)
)
def test_file_entries(entry: FileEntry) -> None:
    assert FileEntry.decode(entry.encode()) == entry


@given(st.builds(Report, time=U64, domain=U32, pid=U32, code=U32, text=PLAIN))
def test_reports(report: Report) -> None:
    assert Report.decode(report.encode()) == report


json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(NAMES, children, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(NAMES | st.just('a"[{\\'), json_values, max_size=4))
def test_documents(document: dict[str, Json]) -> None:
    assert load_json(dump_json(document)) == document


@pytest.mark.parametrize(
    "size", [0, 1, BLOB_PIECE - 1, BLOB_PIECE, BLOB_PIECE + 1, 2 * BLOB_PIECE, 2_500_000]
)
@pytest.mark.parametrize("step", [700_001, 3 << 20])
def test_content(tmp_path: Path, size: int, step: int) -> None:
    path = tmp_path / "trace.bin"
    data = np.random.default_rng(size).bytes(size)
    digest = blob_digest(data)
    with TraceWriter.create(path, {}) as writer:
        assert writer.add_blob(digest, (data[i : i + step] for i in range(0, size, step)))
        assert not writer.add_blob(digest, iter(lambda: pytest.fail("content that is there was read"), None))
    with TraceReader.open(path) as reader:
        pieces = list(reader.blob(digest))
        assert b"".join(pieces) == data
        assert max(map(len, pieces)) <= BLOB_PIECE
        assert reader.has_blob(digest) and not reader.has_blob("0" * 64)
        with pytest.raises(KeyError):
            reader.blob("0" * 64)


def test_the_latest_entry_of_a_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "trace.bin"
    with TraceWriter.create(path, {}) as writer:
        writer.add_file(FileEntry(number=1, path="/usr/lib/a", size=5))
        writer.add_file(FileEntry(number=2, path="/usr/lib/b"))
        writer.add_file(FileEntry(number=1, path="/usr/lib/a", size=5, sha256="ab" * 32))
    with TraceReader.open(path) as reader:
        assert {number: entry.sha256 for number, entry in reader.files.items()} == {1: "ab" * 32, 2: None}


def test_metadata_of_an_open_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.bin"
    boot = BootImage(
        mappings=[],
        stack_start=1,
        stack=b"s",
        regs={"rip": 2},
        auxv=[(3, 4)],
        brk=5,
        patches=[6],
        stack_limit=7,
    )
    start = DomainStart(
        domain=1, kind="exec", pid=9, argv=["a", "b"], envp=["X=1"], comm="a", time=77, boot=boot
    )
    report = Report(time=1, domain=1, pid=9, code=3, text="shared")
    end = DomainEnd(domain=1, pid=9, status="signaled", code=11, time=99)
    with TraceWriter.create(path, {"command": ["a"]}) as writer:
        writer.add_domain(start)
        writer.add_report(report)
        writer.end_domain(end)
        writer.close({"status": 139})
        writer.close({"status": 0})
    with TraceReader.open(path) as reader:
        info = reader.domains[1]
        assert info.start == start and info.boot == boot and info.argv == ["a", "b"] and info.envp == ["X=1"]
        assert (info.kind, info.pid, info.comm, info.time, info.end) == ("exec", 9, "a", 77, end)
        assert reader.reports == [report]
        assert reader.final == {"status": 139}
        assert (reader.complete, reader.stopped, reader.stops, reader.live) == (True, "", [], False)
