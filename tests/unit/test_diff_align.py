"""Comparing traces: what corresponds, what differs, and what does not count as a difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.tui_trace import make_trace, region
from interfaces.abi import EventFlag, Kind, RegionKind
from tests.conftest import RunTool
from tests.tui.conftest import Story
from tracefile import TraceReader
from tracefile.align import Alignment, Side, align, earliest, pair_domains, pair_threads
from tui.model.diff import Comparison, report


def alignments(a: TraceReader, b: TraceReader) -> list[Alignment]:
    return [align(pair) for pair in pair_threads(a, b)]


def sides(alignment: Alignment) -> list[tuple[Side, int]]:
    return [(run.side, run.count) for run in alignment.runs]


def write(path: Path, calls: list[str]) -> TraceReader:
    """A trace of reads that return the given texts."""
    story = Story(path)
    story.domain(1, 100)
    story.event(Kind.EXEC)
    for text in calls:
        story.read(3, text.encode())
    return story.close()


def test_ids_times_and_addresses_do_not_count(tmp_path: Path) -> None:
    """GIVEN the same behaviour with other times, ids and addresses WHEN aligned THEN all is the same."""
    readers = []
    for number, (task, address) in enumerate([(100, 0x7000), (222, 0x9000)]):
        story = Story(tmp_path / f"{number}.bin")
        story.now += number * 10**9
        story.domain(1, task)
        story.event(Kind.RDTSC, result=number, task=task)
        story.call("mmap", (0, 4096, 3, 0x22, -1, 0), address << 20, task=task)
        story.call("getpid", (), task, task=task)
        path = region(RegionKind.IN, 1, address, b"/etc/motd\0")
        story.call("openat", (-100, address, 0), 3, task=task, payload=path)
        readers.append(story.close())
    (found,) = alignments(*readers)
    assert sides(found) == [(Side.SAME, 3)]
    assert found.first_difference is None


def test_changed_added_and_missing_events_are_found(tmp_path: Path) -> None:
    """GIVEN events that changed, appeared, vanished WHEN aligned THEN each is told, the rest is the same."""
    lines = [f"line {i}" for i in range(20)]
    a = write(tmp_path / "a.bin", lines)
    lines[5] = "other"
    del lines[15]
    lines.insert(10, "new")
    b = write(tmp_path / "b.bin", lines)
    (found,) = alignments(a, b)
    assert found.same == 19
    assert Side.CHANGED in [run.side for run in found.runs]
    assert sum(run.count for run in found.runs if run.side != Side.ONLY_B) == 21
    assert sum(run.count for run in found.runs if run.side != Side.ONLY_A) == 21
    first = found.first_difference
    assert first is not None
    assert (first.a, first.b) == (6, 6)


def test_a_trace_that_goes_on_differs_at_its_end(tmp_path: Path) -> None:
    """GIVEN a trace that is the beginning of another WHEN aligned THEN the rest is only in one."""
    a = write(tmp_path / "a.bin", ["x"] * 5)
    b = write(tmp_path / "b.bin", ["x"] * 9)
    (found,) = alignments(a, b)
    assert sides(found) == [(Side.SAME, 6), (Side.ONLY_B, 4)]


def test_nothing_in_common_ends(tmp_path: Path) -> None:
    """GIVEN threads that have nothing in common WHEN aligned THEN it ends, and covers both."""
    a = write(tmp_path / "a.bin", [f"a{i}" for i in range(600)])
    b = write(tmp_path / "b.bin", [f"b{i}" for i in range(500)])
    (found,) = alignments(a, b)
    assert sum(run.count for run in found.runs if run.side != Side.ONLY_B) == 601
    assert sum(run.count for run in found.runs if run.side != Side.ONLY_A) == 501


def test_another_schedule_is_no_difference(tmp_path: Path) -> None:
    """GIVEN two threads that take turns otherwise WHEN aligned THEN nothing differs."""
    readers = []
    for name, order in (("a", "1122"), ("b", "1212")):
        story = Story(tmp_path / f"{name}.bin")
        story.domain(1, 1)
        for thread in order:
            story.read(3, thread.encode(), task=int(thread))
        readers.append(story.close())
    assert all(found.first_difference is None for found in alignments(*readers))


def test_what_blocked_calls_had_read_is_compared(tmp_path: Path) -> None:
    """GIVEN calls that blocked, whose path is in the event before WHEN they differ there THEN it is told."""
    readers = []
    for name in ("a", "b"):
        story = Story(tmp_path / f"{name}.bin")
        story.domain(1, 100)
        path = region(RegionKind.IN, 1, 0x7000, f"/etc/{name}\0".encode())
        story.call("openat", (-100, 0x7000), kind=Kind.RELEASE, payload=path)
        story.call("openat", (-100, 0x7000), 3, flags=EventFlag.BLOCKED)
        readers.append(story.close())
    (found,) = alignments(*readers)
    assert sides(found) == [(Side.CHANGED, 1)]
    assert found.pair.a is not None
    assert '"/etc/a"' in found.pair.a.text(0)


def test_processes_correspond_by_their_programs(tmp_path: Path) -> None:
    """GIVEN a child that only one recording has WHEN paired THEN the others correspond all the same."""
    readers = []
    for name, programs in (("a", ["ls", "cat", "wc"]), ("b", ["ls", "wc"])):
        story = Story(tmp_path / f"{name}.bin")
        story.domain(1, 100, comm="sh")
        for number, program in enumerate(programs, 2):
            story.domain(number, 100 + number, parent=1, comm=program)
            story.call("getpid", task=100 + number, domain=number)
        readers.append(story.close())
    pairs = [(one and one.comm, other and other.comm) for one, other in pair_domains(*readers)]
    assert pairs == [("sh", "sh"), ("ls", "ls"), ("cat", None), ("wc", "wc")]
    alone = [found for found in alignments(*readers) if found.pair.b is None]
    assert [sides(found) for found in alone] == [[(Side.ONLY_A, 1)]]


def test_the_first_difference_is_the_earliest(tmp_path: Path) -> None:
    """GIVEN differences in two threads WHEN the first is asked for THEN it is the one that happened first."""
    readers = []
    for late, early in (("x", "y"), ("X", "Y")):
        story = Story(tmp_path / f"{late}.bin")
        story.domain(1, 1)
        story.read(3, b"same", task=1)
        story.read(3, early.encode(), task=2)
        story.read(3, late.encode(), task=1)
        readers.append(story.close())
    first = earliest(alignments(*readers))
    assert first is not None
    assert first.pair.number == 1


def test_an_alignment_can_stop_early(tmp_path: Path) -> None:
    """GIVEN long threads WHEN only the first difference is wanted, or the work is stopped THEN it says so."""
    a = write(tmp_path / "a.bin", ["x"] * 50 + ["y"] * 50)
    b = write(tmp_path / "b.bin", ["x"] * 50 + ["z"] + ["y"] * 50)
    (pair,) = pair_threads(a, b)
    found = align(pair, first_only=True)
    assert found.stopped
    assert found.first_difference is not None
    assert align(pair, go_on=lambda: False).stopped


def test_the_report_shows_context_and_leaves_nothing_out_silently(tmp_path: Path) -> None:
    """GIVEN many differences WHEN reported with a limit THEN what is left out is said."""
    a = write(tmp_path / "a.bin", [f"line {i}" for i in range(30)])
    b = write(tmp_path / "b.bin", [f"line {i}" for i in range(10)] + [f"LINE {i}" for i in range(10, 30)])
    comparison = Comparison(a, b)
    comparison.compute()
    text = "\n".join(report(comparison, 2, 5))
    assert "first difference: main thread of process 1 (story)" in text
    assert '    read(3, "line 9", 4096) = 6' in text
    assert '  - read(3, "line 10", 4096) = 7' in text
    assert '  + read(3, "LINE 10", 4096) = 7' in text
    assert "more differing events: --limit shows more" in text
    rows = [comparison.row(i) for i in range(len(comparison))]
    assert rows[0].title
    position = comparison.position_of_first()
    assert position is not None
    assert comparison.text(rows[position], True) == 'read(3, "line 10", 4096) = 7'
    assert comparison.event(rows[position], True) == (1, 11)
    assert comparison.next_difference(-1, 1) == position
    with pytest.raises(IndexError):
        comparison.row(len(comparison))


def test_the_command_ends_like_diff(tool: RunTool, tmp_path: Path) -> None:
    """GIVEN two traces WHEN compared on the command line THEN the exit status and the JSON say it."""
    make_trace(tmp_path / "a.bin", 300)
    make_trace(tmp_path / "b.bin", 310)
    same = tool("diff", "a.bin", "a.bin")
    assert (same.returncode, "no difference" in same.stdout) == (0, True)
    other = tool("diff", "a.bin", "b.bin", "--limit", "2")
    assert other.returncode == 1
    assert "first difference" in other.stdout
    found = json.loads(tool("diff", "a.bin", "b.bin", "--json", "--limit", "1").stdout)
    assert found["same"] is False
    thread = found["threads"][found["first"]]
    assert len(thread["differences"]) == 1
    assert thread["left_out"] == thread["different"] - 1
    missing = tool("diff", "a.bin", "none.bin")
    assert missing.returncode == 125
