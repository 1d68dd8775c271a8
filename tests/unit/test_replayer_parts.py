"""The replayer's decisions: which domains, whose output, whose turn, stuck or slow, fit CPU."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interfaces import abi
from interposer.shared import GlobalPage
from replayer import machine, scope, watchdog
from replayer.errors import MachineError, NothingToReplayError
from replayer.output import Numbering, ProcessFilter, Turns, Waiting, shown
from replayer.replaying import final_end
from replayer.watchdog import Usage, Watchdog
from tracefile import Chunk, DomainEnd, DomainStart, TraceReader, TraceWriter
from tracefile.chunk import EventArray, events_from


def events_of(*rows: dict[str, Any]) -> EventArray:
    events = np.zeros(len(rows), abi.EVENT_DTYPE)
    for event, row in zip(events, rows, strict=True):
        for name, value in row.items():
            event[name] = value
    return events


@contextmanager
def tree(path: Path, starts: list[DomainStart], ends: list[DomainEnd] | None = None) -> Iterator[TraceReader]:
    """A trace of these domains; domain 3 has a task of process 77 in it."""
    with TraceWriter.create(path / "t.bin", {}) as writer:
        for start in starts:
            writer.add_domain(start)
        if any(start.domain == 3 for start in starts):
            event = {"kind": abi.Kind.TASK_START, "task": 77, "args": (30, 77, 1, 0, 0, 0)}
            writer.add_events(3, 0, events_of(event).tobytes(), b"")
        for end in ends or []:
            writer.end_domain(end)
        writer.close({})
    with TraceReader.open(path / "t.bin") as reader:
        yield reader


TREE = [
    DomainStart(domain=1, kind="exec", pid=10),
    DomainStart(domain=2, kind="fork", pid=20, parent_domain=1, parent_event=5),
    DomainStart(domain=3, kind="exec", pid=20, parent_domain=2, parent_event=9),
    DomainStart(domain=4, kind="fork", pid=30, parent_domain=3, parent_event=2),
    DomainStart(domain=5, kind="fork", pid=40, parent_domain=4, parent_event=2),
    DomainStart(domain=6, kind="fork", pid=50, parent_domain=1, parent_event=8),
]


def test_whole_tree_starts_with_the_program(tmp_path: Path) -> None:
    """GIVEN a tree WHEN all of it is wanted THEN one start, every domain, all output."""
    with tree(tmp_path, TREE) as reader:
        whole = scope.whole(reader)
        assert (whole.starts, whole.domains, whole.echoed) == ((1,), None, None)
        assert whole.wants(6)


def test_forked_process_needs_its_ancestors_up_to_the_fork(tmp_path: Path) -> None:
    """GIVEN a grandchild by fork WHEN wanted THEN start at the image it descends from, echo only its own
    output."""
    with tree(tmp_path, TREE) as reader:
        found = scope.one_process(reader, 40)
        assert (found.starts, found.echoed) == ((3,), frozenset({5}))
        assert found.domains == frozenset({3, 4, 5})
        assert found.until == {3: frozenset({4}), 4: frozenset({5})}


def test_process_that_forked_and_executed_is_replayed_from_its_fork(tmp_path: Path) -> None:
    """GIVEN a process with two domains WHEN wanted THEN its ancestors lead to the first, the second
    follows."""
    with tree(tmp_path, TREE) as reader:
        found = scope.one_process(reader, 20)
        assert (found.starts, found.echoed, found.domains) == ((1,), frozenset({2, 3}), frozenset({1, 2, 3}))
        assert found.until == {1: frozenset({2})}


def test_process_in_its_parents_memory_is_found_by_its_tasks(tmp_path: Path) -> None:
    """GIVEN a process without a domain of its own WHEN wanted THEN the domain it lived in."""
    with tree(tmp_path, TREE) as reader:
        found = scope.one_process(reader, 77)
        assert (found.starts, found.echoed, found.pid) == ((3,), frozenset({3}), 77)


def test_unknown_process_and_empty_trace_are_errors(tmp_path: Path) -> None:
    """GIVEN nothing to replay WHEN asked THEN an error that says what is missing."""
    with tree(tmp_path, TREE) as reader:
        with pytest.raises(NothingToReplayError, match="no process 99"):
            scope.one_process(reader, 99)
        with pytest.raises(NothingToReplayError, match="no domain 9"):
            scope.one_domain(reader, 9)
    (tmp_path / "t.bin").unlink()
    with tree(tmp_path, []) as reader, pytest.raises(NothingToReplayError, match="holds no program"):
        scope.whole(reader)


def test_circular_ancestors_are_refused(tmp_path: Path) -> None:
    """GIVEN a hostile trace whose domains are each other's parents WHEN one is wanted THEN an error, no
    loop."""
    circle = [
        DomainStart(domain=1, kind="fork", pid=10, parent_domain=2),
        DomainStart(domain=2, kind="fork", pid=20, parent_domain=1),
    ]
    with tree(tmp_path, circle) as reader, pytest.raises(NothingToReplayError):
        scope.one_process(reader, 10)


def test_final_end_is_that_of_the_last_image(tmp_path: Path) -> None:
    """GIVEN a program that executed another WHEN asked for its end THEN that of the last one, not
    'execed'."""
    ends = [
        DomainEnd(domain=2, pid=20, status="execed", time=5),
        DomainEnd(domain=3, pid=20, status="signaled", code=11, time=9),
        DomainEnd(domain=3, pid=77, status="exited", code=4, time=12),
    ]
    with tree(tmp_path, TREE, ends) as reader:
        end = final_end(reader, 2)
        assert end is not None
        assert (end.status, end.code) == ("signaled", 11)
        assert final_end(reader, 1) is None


def region(kind: int, data: bytes) -> bytes:
    return abi.REGION_HEADER.pack(0, len(data), kind, 255, 0) + data + bytes(-len(data) % 8)


def output_chunk() -> Chunk:
    """Writes of tasks 10, 77 and 10 again, with output numbers 100, 101 and 105; 77 is process 77."""
    parts = [
        region(abi.RegionKind.IN, b"hey") + region(abi.RegionKind.SEQ, struct.pack("<Q", n))
        for n in (100, 101, 105)
    ]
    rows: list[dict[str, Any]] = [{"kind": abi.Kind.TASK_START, "task": 77, "args": (10, 77, 1, 0, 0, 0)}]
    at = 0
    for task, part in zip((10, 77, 10), parts, strict=True):
        rows.append(
            {
                "kind": abi.Kind.SYSCALL,
                "task": task,
                "nr": 1,
                "flags": abi.EventFlag.ECHO_OUT | abi.EventFlag.PRECISE,
                "payload_off": at,
                "payload_len": len(part),
            }
        )
        at += len(part)
    payload = b"".join(parts)
    events = events_from(events_of(*rows).tobytes())
    return Chunk(1, 0, events, lambda: payload, lambda what: ValueError(what))


@pytest.mark.parametrize(
    ("filtering", "expected"),
    [
        (ProcessFilter(77, Numbering()), [None, 0, None]),
        (ProcessFilter(10, Numbering(), others_shown=True), [0, None, 1]),
        (ProcessFilter(None, Numbering()), [0, 1, 2]),
        (ProcessFilter(None, None), [None, None, None]),
    ],
    ids=["child", "main", "all", "silent"],
)
def test_output_of_one_process_is_numbered_without_gaps(
    filtering: ProcessFilter, expected: list[int | None]
) -> None:
    """GIVEN output of two processes in one log WHEN one is wanted THEN only its events echo, numbered from
    0."""
    chunk = output_chunk()
    raw, payload = filtering(chunk)
    events = events_from(raw)
    found: list[int | None] = []
    for event in events[1:]:
        start = int(event["payload_off"])
        regions = abi.parse_regions(payload[start : start + int(event["payload_len"])])
        assert regions[0].data == b"hey"
        assert event["flags"] & abi.EventFlag.PRECISE
        echoes = event["flags"] & abi.EventFlag.ECHO_OUT
        found.append(struct.unpack("<Q", regions[1].data)[0] if echoes else None)
    assert found == expected
    assert all(chunk.events["flags"][1:] & abi.EventFlag.ECHO_OUT)


@pytest.fixture
def page() -> Iterator[GlobalPage]:
    page = GlobalPage()
    yield page
    page.close()


def test_missing_output_number_is_passed_over(page: GlobalPage) -> None:
    """GIVEN all domains wait or are done WHEN seen twice so THEN the lowest awaited number is due."""
    turns = Turns(page)
    page.fields.output_seq = 3
    domains = [Waiting(1, 50, 7, False), Waiting(2, 9, 5, False), Waiting(3, 4, None, True)]
    assert not turns.look(domains, lambda: False, False)
    assert turns.look(domains, lambda: False, False)
    assert page.fields.output_seq == 5


@pytest.mark.parametrize("case", ["running", "expected", "moving", "due"])
def test_turn_stays_while_somebody_may_write(page: GlobalPage, case: str) -> None:
    """GIVEN a domain that runs, is being made, has moved, or whose number is due WHEN looked THEN nothing
    changes."""
    turns = Turns(page)
    page.fields.output_seq = 5 if case == "due" else 3
    second = Waiting(2, 9, None if case == "running" else 6, False)
    assert not turns.look([Waiting(1, 50, 5, False), second], lambda: case == "expected", False)
    events = 51 if case == "moving" else 50
    assert not turns.look([Waiting(1, events, 5, False), second], lambda: case == "expected", False)
    assert page.fields.output_seq == (5 if case == "due" else 3)


def test_turn_moves_when_nothing_happens_for_long(page: GlobalPage) -> None:
    """GIVEN a domain that neither waits nor moves WHEN all has been idle THEN the waiting one goes on."""
    turns = Turns(page)
    domains = [Waiting(1, 50, 5, False), Waiting(2, 9, None, False)]
    turns.look(domains, lambda: True, True)
    assert turns.look(domains, lambda: True, True)
    assert page.fields.output_seq == 5


def test_what_goes_to_dev_null_is_not_shown() -> None:
    read, write = os.pipe()
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        assert [shown(pair) for pair in ((write, write), (null, write), (write, null), (null, null))] == [
            3,
            2,
            1,
            0,
        ]
    finally:
        for descriptor in (read, write, null):
            os.close(descriptor)


def no_gap() -> float:
    return 0.0


def test_idle_replay_is_stuck_after_the_limit() -> None:
    """GIVEN no event and no CPU WHEN the limit has passed THEN stuck; an event in between starts anew."""
    dog = Watchdog(10.0)
    used = Usage(1.0, False)
    looks = [dog.look(float(second), 5, used, True, no_gap) for second in range(11)]
    assert not any(looks)
    assert not dog.look(11.0, 6, used, True, no_gap)
    looks = [dog.look(float(second), 6, used, True, no_gap) for second in range(12, 23)]
    assert looks == [False] * 10 + [True]


@pytest.mark.parametrize("case", ["debugger", "full-pipe", "suspended"])
def test_held_up_is_not_stuck(case: str) -> None:
    """GIVEN a debugger, a reader that does not read, or a suspended tool WHEN time passes THEN not stuck."""
    dog = Watchdog(10.0)
    used = Usage(1.0, case == "debugger")
    dog.look(0.0, 5, used, True, no_gap)
    if case == "suspended":
        assert not any(dog.look(second * 1000.0, 5, used, True, no_gap) for second in range(1, 10))
    else:
        assert not any(dog.look(float(s), 5, used, case != "full-pipe", no_gap) for s in range(1, 100))


def test_computing_is_measured_by_what_the_recorded_program_took() -> None:
    """GIVEN CPU but no event WHEN the recorded program computed for 5 s there THEN 100 s more are allowed."""
    dog = Watchdog(10.0)
    dog.look(0.0, 5, Usage(0.0, False), True, lambda: 5.0)
    assert not dog.look(1.0, 5, Usage(109.0, False), True, lambda: 5.0)
    assert dog.look(2.0, 5, Usage(111.0, False), True, lambda: 5.0)
    dog = Watchdog(10.0)
    dog.look(0.0, 5, Usage(0.0, False), True, no_gap)
    assert dog.look(1.0, 5, Usage(11.0, False), True, no_gap)


def test_usage_sees_a_stopped_process() -> None:
    """GIVEN a stopped process WHEN asked THEN held; one that is gone counts nothing."""
    process = subprocess.Popen(["/bin/sleep", "100"])
    try:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert watchdog.usage([process.pid]).held
    finally:
        process.kill()
        process.wait()
    assert watchdog.usage([process.pid]) == Usage(0.0, False)


def test_full_pipe_is_not_writable() -> None:
    """GIVEN a pipe nobody reads WHEN full THEN output is held up."""
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        assert watchdog.writable([writing])
        with pytest.raises(BlockingIOError):
            while True:
                os.write(writing, bytes(65536))
        assert not watchdog.writable([writing])
    finally:
        os.close(reading)
        os.close(writing)


def test_missing_cpu_features_are_named() -> None:
    """GIVEN a trace from a CPU with more features WHEN checked THEN one error; masked and kernel ones do
    not count."""
    assert machine.missing_features(["avx2", "amx_tile", "rdrand", "pti"], ["avx2"]) == ["amx_tile"]
    here = machine.cpu_flags()
    assert "sse2" in here
    machine.check({"machine": {"cpu_flags": " ".join(here), "cpu_model": "this one"}})
    machine.check({})
    machine.check({"machine": 5})
    wanted = next(flag for flag in ("amx_fp16", "3dnowext", "xop", "sm4") if flag not in here)
    with pytest.raises(MachineError, match=f"Elder CPU.*lacks {wanted}") as caught:
        machine.check({"machine": {"cpu_flags": [*here, wanted], "cpu_model": "Elder CPU"}})
    assert "--ignore-cpu" in caught.value.remedy
