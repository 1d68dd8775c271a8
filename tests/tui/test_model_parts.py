"""Details, descriptors, timeline, processes, places, addresses, settings, exports."""

from __future__ import annotations

import csv
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.tui_trace import START_NS, region
from hangscan.model import Candidate, Report, Resource
from interfaces.abi import Kind, RegionKind
from interfaces.errors import RrPyError
from tests.tui.conftest import Story, indexed
from tui.model.address import Address, AddressError, parse_address, place_of_row, row_of_place
from tui.model.decode import line_of, plain_text, printable, result_of, unquoted
from tui.model.detail import Node, detail
from tui.model.export import ExportError, export
from tui.model.hangs import Hangs
from tui.model.hexdump import hex_lines
from tui.model.places import Bookmark, Bookmarks, Visited
from tui.model.processes import processes
from tui.model.query.language import parse
from tui.model.settings import Settings, SettingsError, load_keys
from tui.model.text import clock, count, duration
from tui.model.timeline import State, summarise

PAIR = region(RegionKind.OUT, 0, 0x9000, (7).to_bytes(4, "little") + (8).to_bytes(4, "little"))


def texts(node: Node) -> list[str]:
    found = [f"{node.text}: {node.value}" if node.value else node.text]
    for child in node.children:
        found.extend(texts(child))
    return found


def test_descriptors_have_the_name_of_the_moment(story: Story) -> None:
    """GIVEN a descriptor that is opened, closed, opened anew WHEN asked THEN the moment decides."""
    story.domain(1, 100)
    story.open("/first", 3)
    story.read(3, b"a")
    story.call("close", (3,))
    story.open("/second", 3)
    story.read(3, b"b")
    story.call("dup2", (3, 9), 9)
    story.read(9, b"c")
    story.close().close()
    model = indexed(story.path)
    assert [model.label(row, 3) for row in (0, 1, 2, 3, 4)] == ["", "/first", "/first", "", "/second"]
    assert model.label(6, 9) == "/second"
    assert model.label(6, 1) == "stdout"
    life = model.history(1, 3)
    assert (life.opened, life.closed) == (0, 2)


def test_sockets_are_known_by_addresses(story: Story) -> None:
    """GIVEN a server and a client of a local socket WHEN asked THEN both ends and calls have it."""
    address = struct.pack("<H", 1) + b"/run/app.sock\0"
    named = region(RegionKind.IN, 1, 0x7000, address)
    length = region(RegionKind.OUT, 2, 0x7200, struct.pack("<i", 2))
    nameless = region(RegionKind.OUT, 1, 0x7100, struct.pack("<H", 1)) + length
    story.domain(1, 100)
    story.call("socket", (1, 1), 3)
    story.call("bind", (3, 0x7000, len(address)), payload=named)
    story.call("listen", (3, 5))
    story.call("socket", (1, 1), 4)
    story.call("connect", (4, 0x7000, len(address)), -111, payload=named)
    story.call("connect", (4, 0x7000, len(address)), payload=named)
    story.call("accept", (3, 0x7100, 0x7200), 5, payload=nameless)
    story.read(5, b"x")
    story.call("getpid", (), 100)
    story.close().close()
    with indexed(story.path) as model:
        assert [model.label(8, fd) for fd in (3, 4, 5)] == ["unix:/run/app.sock"] * 3
        view = model.view(parse("path ~ app.sock"))
        model.fill(view)
        assert view.rows(0, len(view)) == [1, 2, 4, 5, 6, 7]


def test_pipes_ranges_and_children(story: Story) -> None:
    """GIVEN pipes, close_range and a fork WHEN descriptors are resolved THEN both ends and the child know."""
    story.domain(1, 100)
    story.call("pipe2", (0x9000, 0), 0, payload=PAIR)
    fork = story.call("fork", (), 200)
    story.domain(2, 200, kind="fork", parent=1, comm="")
    story.event(Kind.FORK, args=(1, 100), task=200, domain=2)
    story.read(7, b"x", task=200, domain=2)
    story.call("close_range", (7, 8, 0), 0)
    story.read(7, b"y")
    story.read(8, b"z", task=200, domain=2)
    story.close().close()
    model = indexed(story.path)
    assert model.index.birth(2) == (1, fork)
    assert model.label(3, 7) == "pipe"
    assert model.label(5, 7) == ""
    assert model.label(6, 8) == "pipe"


def test_lines_are_as_strace_writes_them(story: Story) -> None:
    """GIVEN calls WHEN written as lines THEN descriptors have names, errors theirs, and text is printable."""
    story.domain(1, 100)
    story.open("/tmp/a\nb", 3)
    story.call("close", (3,), -9)
    story.event(Kind.DEATH, 11, (1,))
    story.close().close()
    model = indexed(story.path)
    lines = []
    for row in range(3):
        event = model.decode(row)
        lines.append(plain_text(line_of(event, model.reader, model.label)))
    assert lines[0] == 'openat(AT_FDCWD, "/tmp/a\\nb", O_RDONLY)'
    assert lines[1] == "close(3</tmp/a\nb>)".replace("\n", "\\n")
    assert lines[2] == "+++ killed by SIGSEGV (core dumped) +++"
    assert plain_text(result_of(model.decode(1))) == "-1 EBADF"


@pytest.mark.parametrize(
    ("quoted", "expected"),
    [('"abc"', "abc"), ('"a\\"b"...', 'a"b'), ('"\\303\\244"', "ä"), ('@"sock"', "@sock"), ("NULL", "NULL")],
)
def test_literals_are_undone(quoted: str, expected: str) -> None:
    """GIVEN a literal as decoders write it WHEN undone THEN it is the text."""
    assert unquoted(quoted) == expected


def test_the_detail_tells_everything(story: Story) -> None:
    """GIVEN a read of a file WHEN looked at THEN arguments, result, data and the file's history are there."""
    story.domain(1, 100)
    story.open("/etc/motd", 5)
    story.read(5, b"hello \x00world", took=2_500_000)
    story.call("close", (5,))
    story.close().close()
    model = indexed(story.path)
    found = texts(detail(model, 1))
    assert found[0].startswith('read(5</etc/motd>, "hello \\0world", 4096) = 12')
    assert "time: 0.002000 since the start, took 2.50 ms" in found
    assert any(line.startswith("buf: written to memory at 0x8000: 12 bytes") for line in found)
    assert any("68 65 6c 6c 6f 20 00 77" in line for line in found)
    assert "descriptor 5: /etc/motd" in found
    assert any(line.startswith("opened: row 0") for line in found)
    assert any(line.startswith("closed: row 2") for line in found)


def test_hex_lines_align() -> None:
    """GIVEN bytes WHEN dumped THEN lines have address, two groups of eight, and characters."""
    assert list(hex_lines(b"ABCDEFGHIJKLMNOPQ", 0x10)) == [
        "00000010  41 42 43 44 45 46 47 48  49 4a 4b 4c 4d 4e 4f 50  |ABCDEFGHIJKLMNOP|",
        "00000020  51                                                |Q|",
    ]


def test_the_timeline_shows_states(story: Story) -> None:
    """GIVEN a thread that waits, computes and makes a slow call WHEN summarised THEN columns say so."""
    story.domain(1, 100)
    story.event(Kind.EXEC)
    story.now += 40_000_000
    story.call("poll", (), 1, took=40_000_000)
    story.now += 40_000_000
    story.call("fsync", (4,), -5, took=20_000_000)
    story.close().close()
    model = indexed(story.path)
    start, end = model.index.span
    timeline = summarise(model.index, [0], ["main"], (start, end), 80)
    states = [State(int(value)) for value in timeline.lanes[0].states]
    assert states[20] == State.WAITING
    assert states[50] == State.RUNNING
    assert states[75] == State.SLOW
    assert timeline.lanes[0].failed[-1] or timeline.lanes[0].failed[-2]
    assert timeline.lanes[0].counts.sum() >= 2
    assert timeline.column_of(start - 1) == -1
    assert timeline.column_of(end + 1) == 80
    closer = summarise(model.index, [0], ["main"], (start + 5_000_000, start + 6_000_000), 10)
    assert {State(int(value)) for value in closer.lanes[0].states} == {State.WAITING}


def test_processes_are_a_tree(story: Story) -> None:
    """GIVEN a parent, a forked child that execs WHEN gathered THEN one process has both domains."""
    story.domain(1, 100)
    story.call("fork", (), 200)
    story.domain(2, 200, kind="fork", parent=1, comm="")
    story.call("execve", (), 0, task=200, domain=2)
    story.domain(3, 200, parent=2, comm="ls")
    story.call("exit_group", (2,), 0, task=200, domain=3)
    story.end(3, 200, 2)
    story.end(1, 100, 0)
    story.close().close()
    found = processes(indexed(story.path).index)
    assert [(p.pid, p.command, p.status, p.branch) for p in found] == [
        (100, "story -v", "exited 0", ""),
        (200, "ls -v", "exited 2", "└─ "),
    ]
    assert found[1].domains == [2, 3]
    assert [p.threads for p in found] == [1, 1]
    assert found[1].failed
    assert not found[0].failed


def test_addresses_name_every_place(small: Path) -> None:
    """GIVEN addresses WHEN read and written THEN they mean the same place, and rows have lasting ones."""
    index = indexed(small).index
    for text, screen, place, wanted in [
        ("t.bin", "events", "", ""),
        ("t.bin@hangs", "hangs", "", ""),
        ("t.bin@4711:120", "events", "4711:120", ""),
        ("t.bin@timeline/+1.5s", "timeline", "+1.5s", ""),
        ("t.bin@?call == read", "events", "", "call == read"),
        ("a@b/t.bin@4711/3:5?failed", "events", "4711/3:5", "failed"),
        ("@#12", "events", "#12", ""),
        ("a.bin@diff=/tmp/b@2.bin", "diff", "", ""),
        ("a.bin@diff/4711:12=b.bin?failed", "diff", "4711:12", "failed"),
    ]:
        address = parse_address(text)
        assert (address.screen, address.place, address.filter) == (screen, place, wanted)
        assert parse_address(str(address)) == address
    for row in (0, 777, index.rows - 1):
        assert row_of_place(index, place_of_row(index, row)) == row
    assert row_of_place(index, "#5") == 5
    assert row_of_place(index, ":7") == index.row_of(1, 7)
    assert row_of_place(index, "4720") == index.row_of(2, index.count(2) - 1)
    assert index.key(row_of_place(index, "+1ms")) >= START_NS + 1_000_000
    assert str(Address(Path("t.bin"))) == "t.bin"


@pytest.mark.parametrize("place", ["99:1", "4711:999999", "#99999999", "nonsense", "+soon"])
def test_places_that_are_not_there_say_so(small: Path, place: str) -> None:
    """GIVEN a place the trace does not have WHEN looked up THEN the error says which."""
    with pytest.raises(AddressError):
        row_of_place(indexed(small).index, place)


def test_an_address_that_is_a_file_is_the_file(tmp_path: Path) -> None:
    """GIVEN a file with an @ in its name WHEN named THEN it is not cut."""
    path = tmp_path / "odd@hangs"
    path.write_bytes(b"")
    assert parse_address(str(path)) == Address(path)
    with pytest.raises(AddressError):
        parse_address("t.bin@nowhere")


def test_visited_places_go_back_and_forward() -> None:
    """GIVEN jumps WHEN going back and forward THEN places come as in a browser."""
    visited = Visited()
    assert visited.step(-1, 0) is None
    visited.leave(0, 10)
    visited.leave(10, 20)
    assert visited.step(-1, 20) == 10
    assert visited.step(-1, 11) == 0
    assert visited.step(-1, 0) is None
    assert visited.step(1, 0) == 11
    visited.leave(11, 99)
    assert visited.step(1, 99) is None
    assert visited.step(-1, 99) == 11


def test_bookmarks_are_kept_beside_the_trace(small: Path, tmp_path: Path) -> None:
    """GIVEN bookmarks WHEN the trace is opened again THEN they are there; damage is no error."""
    trace = tmp_path / "t.bin"
    trace.write_bytes(small.read_bytes())
    index = indexed(trace).index
    marks = Bookmarks(trace)
    marks.set(Bookmark("a", 1, 5, "first"))
    marks.set(Bookmark("here", 2, 3))
    marks.set(Bookmark("a", 1, 6))
    marks.remove("here")
    again = Bookmarks(trace)
    assert again.all() == [Bookmark("a", 1, 6)]
    assert again.row(index, "a") == index.row_of(1, 6)
    assert again.row(index, "none") is None
    marks.path.write_text("{")
    assert Bookmarks(trace).all() == []


def test_bookmarks_that_cannot_be_kept_still_work(tmp_path: Path) -> None:
    """GIVEN a folder that is not there WHEN a bookmark is set THEN it works and says that it is not kept."""
    marks = Bookmarks(tmp_path / "none" / "t.bin")
    marks.set(Bookmark("a", 1, 1))
    assert not marks.saved
    assert marks.all()


def test_keys_come_from_a_file(tmp_path: Path) -> None:
    """GIVEN a key file WHEN loaded THEN quoted and nested names work, and mistakes are named."""
    path = tmp_path / "keys.toml"
    known = ["find.search", "quit"]
    assert load_keys(known, path) == {}
    path.write_text('[keys]\n"find.search" = "ctrl+f, f3"\nquit = ""\n')
    assert load_keys(known, path) == {"find.search": "ctrl+f,f3", "quit": ""}
    path.write_text('[keys.find]\nsearch = "ctrl+f"\n')
    assert load_keys(known, path) == {"find.search": "ctrl+f"}
    for text, message in [
        ('[keys]\n"find.serch" = "x"', "did you mean find.search?"),
        ("[keys]\nquit = 3", "are not a text"),
        ("[keys", "keys.toml"),
        ("keys = 3", "is not a table"),
    ]:
        path.write_text(text)
        with pytest.raises(SettingsError) as caught:
            load_keys(known, path)
        assert message in caught.value.message


def test_settings_survive_damage() -> None:
    """GIVEN kept settings WHEN they are damaged THEN defaults hold."""
    settings = Settings.load()
    settings.widths["time"], settings.theme = 20, "nord"
    settings.hidden.add("row")
    settings.save()
    again = Settings.load()
    assert (again.widths["time"], again.theme, again.hidden) == (20, "nord", {"row"})
    Settings.path().write_text('{"widths": 3}')
    assert Settings.load() == Settings()


@pytest.mark.parametrize("name", ["out.txt", "out.jsonl", "out.csv"])
def test_exports_hold_what_the_view_shows(small: Path, tmp_path: Path, name: str) -> None:
    """GIVEN a filtered view WHEN exported THEN each event is one line or record, in order."""
    model = indexed(small)
    view = model.view(parse("call == close and tid == 4712"))
    model.fill(view)
    path = tmp_path / name
    assert export(model, view, path) == len(view)
    lines = path.read_text().splitlines()
    if name.endswith(".csv"):
        found = list(csv.DictReader(lines))
        assert [int(row["row"]) for row in found] == view.rows(0, len(view))
        assert found[0]["call"] == "close"
    elif name.endswith(".jsonl"):
        records = [json.loads(line) for line in lines]
        assert [record["row"] for record in records] == view.rows(0, len(view))
        assert records[0]["args"][0]["name"] == "fd"
    else:
        assert len(lines) == len(view)
        assert "close(5" in lines[0]
    with pytest.raises(ExportError):
        export(model, view, path)


def test_a_place_one_cannot_write_to_is_an_error(small: Path, tmp_path: Path) -> None:
    """GIVEN a folder that is not there WHEN exporting THEN the error names it."""
    model = indexed(small)
    view = model.view(parse("row < 5"))
    model.fill(view)
    with pytest.raises(RrPyError) as caught:
        export(model, view, tmp_path / "none" / "x.txt")
    assert "none" in caught.value.message


def test_numbers_are_short() -> None:
    """GIVEN times and counts WHEN written THEN they are as people read them."""
    assert [duration(value) for value in (0, 999, 1000, 12_345, 1_500_000, 999_999_999, 61e9)] == [
        "0 ns", "999 ns", "1.00 us", "12.3 us", "1.50 ms", "1.00 s", "1 min 01 s",
    ]  # fmt: skip
    assert clock(1_234_567_890) == "1.234567"
    assert clock(-5_000) == "-0.000005"
    assert count(12_345_678) == "12 345 678"


def test_a_killed_recording_is_shown_as_far_as_it_goes(traces: Callable[[int], Path]) -> None:
    """GIVEN a trace without an end WHEN indexed THEN all its events are rows."""
    model = indexed(traces(-9_000))
    assert model.index.rows == 9_000
    assert not model.reader.complete
    assert {process.status for process in processes(model.index)} == {"unknown"}


def test_a_comparison_needs_the_other_trace() -> None:
    """GIVEN addresses of comparisons WHEN parsed THEN the other trace is in them, or the error says how."""
    assert parse_address("a.bin@diff=/tmp/b@2.bin").other == Path("/tmp/b@2.bin")
    for text, problem in [("a.bin@diff", "TRACE@diff=OTHER"), ("a.bin@diff/x=b.bin", "no place 'x'")]:
        with pytest.raises(AddressError, match=problem):
            parse_address(text)


def test_a_thousand_processes_are_told_apart(story: Story) -> None:
    """GIVEN a shell with children whose numbers come round WHEN indexed THEN each has its own events, rows
    find their domains again, and the tree has them all."""
    story.domain(1, 10, comm="sh")
    story.call("getpid", task=10)
    for number in range(2, 1002):
        story.domain(number, 11 + number % 700, kind="fork", parent=1)
        story.call("getppid", task=11 + number % 700, domain=number)
        story.end(number, 11 + number % 700)
    story.close().close()
    index = indexed(story.path).index
    assert [index.place(row) for row in range(1, 1001)] == [(number, 0) for number in range(2, 1002)]
    assert [index.facts(task).events for task in range(len(index.tasks))] == [1] * 1001
    found = processes(index)
    assert [(row.threads, row.events, row.status) for row in found[1:]] == [(1, 1, "exited 0")] * 1000
    assert [row.branch for row in found[-2:]] == ["├─ ", "└─ "]


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    """GIVEN names with control characters and bytes that are no UTF-8 WHEN shown THEN each is escaped."""
    assert printable("a\udcff\x1b[2J\n\u00e9") == "a\\xff\\x1b[2J\\n\u00e9"


def test_hangs_are_ranked_as_a_scan_ranks_them() -> None:
    """GIVEN candidates WHEN ranked THEN what was observed counts, and what is below the threshold is last."""

    def candidate(name: str, longest: float, projected: dict[str, float], count: int) -> Candidate:
        worst = max(longest, *projected.values())
        return Candidate(
            name, Resource("file"), 1.0, longest, projected, worst, count, count, "app", (), 0, "", "glib"
        )

    candidates = [
        candidate("often", 4.0, {"hdd": 60.0, "nfs-down": 180000.0}, 31),
        candidate("slept", 314.0, {"hdd": 0.0, "nfs-down": 0.0}, 1),
        candidate("some", 2.0, {"hdd": 110.0, "nfs-down": 110.0}, 4),
    ]
    found = Hangs(Report("t.bin", ["app"], {"hdd": "", "nfs-down": ""}, 100.0, [], candidates))
    for environment, expected in (
        ("hdd", ["some", "slept", "often"]),
        ("nfs-down", ["often", "some", "slept"]),
        (found.environments[0], ["slept", "often", "some"]),
    ):
        assert [hang.candidate.operation for hang in found.ranked(environment)] == expected
