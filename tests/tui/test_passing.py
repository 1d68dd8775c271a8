"""Descriptors that came over a socket are what they were to the sender: in the list, in filters, in `why`."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from benchmarks.tui_trace import region
from hangscan.environments import load
from hangscan.log import DomainLog
from hangscan.operations import Judge
from hangscan.places import Places
from hangscan.walking import Walker
from interfaces.abi import Kind, RegionKind
from replayer.descriptors import Descriptors, EventRef
from tests.conftest import CompileC, RunTool
from tests.tui.conftest import Story, indexed
from tracefile import TraceReader
from tracefile.passing import Passed, origins
from tui.model.query.language import parse

PROGRAM = Path(__file__).parent / "programs" / "passed.c"


def message(fds: tuple[int, ...], kind: RegionKind, data: bytes = b"x") -> bytes:
    """The payload of a message with descriptors: header, vector, data, control."""
    header = struct.pack("<QIxxxxQQQQIxxxx", 0, 0, 0x2000, 1, 0x4000, 16 + 4 * len(fds), 0)
    control = struct.pack(f"<Qii{len(fds)}i", 16 + 4 * len(fds), 1, 1, *fds)
    return b"".join(
        region(kind, 1, place, content)
        for place, content in (
            (0x1000, header), (0x2000, struct.pack("<QQ", 0x3000, 1)), (0x3000, data), (0x4000, control),
        )
    )  # fmt: skip


@pytest.fixture
def told(story: Story) -> Path:
    """A broker opens two files and passes them; a child that blocked meanwhile reads one; a stranger's file
    comes from outside."""
    story.domain(1, 100, comm="broker")
    story.domain(2, 200, kind="fork", parent=1, comm="reader")
    story.open("/srv/users.db", 5)
    story.open("/srv/log", 6)
    story.call("sendmsg", (3, 0x1000), kind=Kind.RELEASE, payload=message((5, 6), RegionKind.IN))
    story.call("sendmsg", (3, 0x1000), 1, flags=8)
    story.call("close", (5,))
    story.call("recvmsg", (4, 0x1000), 1, task=200, domain=2, payload=message((7, 8), RegionKind.OUT))
    story.read(7, b"data", task=200, domain=2)
    story.read(8, b"line", task=200, domain=2)
    story.call("recvmsg", (4, 0x1000), 1, task=200, domain=2, payload=message((9,), RegionKind.OUT, b"?"))
    story.read(9, b"alien", task=200, domain=2)
    story.close().close()
    return story.path


def test_the_list_and_filters_follow_them(told: Path) -> None:
    """GIVEN passed descriptors WHEN shown and filtered THEN they have the paths that the sender opened."""
    model = indexed(told)
    assert [model.label(row, fd) for row, fd in ((6, 7), (7, 8), (9, 9))] == [
        "/srv/users.db", "/srv/log", "received over a socket",
    ]  # fmt: skip
    assert model.label(5, 7) == ""
    view = model.view(parse('call == read and path ~ "*.db"'))
    model.fill(view)
    assert view.rows(0, len(view)) == [6]
    assert model.history(6, 7).opened == 5


def test_the_scan_follows_them(told: Path) -> None:
    """GIVEN passed descriptors WHEN a scan walks the calls THEN the reader reads the broker's files."""
    with TraceReader.open(told) as reader:
        walker = Walker(reader, Judge(Places(["/srv"], "", ("/srv/*",), set())), load(["nfs"]))
        walker.walk(DomainLog(reader, 1), [100], None)
        walked = walker.walk(DomainLog(reader, 2), [200], None)
    assert [one.resource.path for one in walked.operations[200] if one.name == "read"] == [
        "/srv/users.db", "/srv/log",
    ]  # fmt: skip


@pytest.mark.parametrize(("event", "fd", "text"), [(1, 7, "/srv/users.db"), (4, 9, "received over a socket")])
def test_why_follows_them(told: Path, event: int, fd: int, text: str) -> None:
    """GIVEN passed descriptors WHEN their table is asked for THEN they stand for the same file."""
    with TraceReader.open(told) as reader:
        found = Descriptors(reader, EventRef(0, 2, event)).at.get(fd)
    assert found is not None
    assert found.text == text


def test_messages_are_matched_by_what_they_carry() -> None:
    """GIVEN several messages WHEN matched THEN by data, number of descriptors and order, another process's
    first; nothing comes from the future."""

    def one(domain: int, event: int, sent: bool, time: int, count: int, data: bytes) -> Passed:
        return Passed(domain, event, sent, time, tuple(range(10 * event, 10 * event + count)), data)

    found = origins(
        [
            one(1, 1, True, 5, 1, b"a"), one(1, 2, True, 5, 2, b"b"), one(2, 3, False, 5, 2, b"b"),
            one(2, 4, False, 6, 1, b"a"), one(2, 5, False, 7, 1, b"c"), one(1, 6, True, 9, 1, b"c"),
            one(3, 7, True, 10, 1, b"s"), one(3, 8, False, 10, 1, b"s"), one(3, 9, False, 11, 1, b"s"),
        ]
    )  # fmt: skip
    assert {place: [(o.event, o.fd) for o in fds.values()] for place, fds in found.items()} == {
        (2, 3): [(2, 20), (2, 21)], (2, 4): [(1, 10)], (3, 8): [(7, 70)],
    }  # fmt: skip


@pytest.mark.acceptance
def test_a_real_program_passes_them_both_ways(compile_c: CompileC, tool: RunTool, tmp_path: Path) -> None:
    """GIVEN a parent and a child that pass files to each other WHEN recorded THEN each knows the other's."""
    trace = tmp_path / "t.bin"
    assert tool("record", "-q", "-o", trace, "--", compile_c(PROGRAM.read_text())).returncode == 0
    model = indexed(trace)
    view = model.view(parse("call == recvmsg and result > 0"))
    model.fill(view)
    labels = set()
    for row in view.rows(0, len(view)):
        domain, event = model.index.place(row)
        labels |= {model.label(row + 1, fd) for fd in model.index.received[domain, event]}
    assert labels == {"/etc/hostname", "/etc/hosts", "/etc/passwd"}


@pytest.mark.acceptance
def test_several_messages_in_one_call(compile_c: CompileC, tool: RunTool, tmp_path: Path) -> None:
    """GIVEN files passed by one sendmmsg of two messages WHEN recorded THEN each is known to the reader."""
    trace = tmp_path / "t.bin"
    program = (PROGRAM.parent / "passed_mmsg.c").read_text()
    assert tool("record", "-q", "-o", trace, "--", compile_c(program)).returncode == 0
    with indexed(trace) as model:
        view = model.view(parse("call == recvmmsg and result > 0"))
        model.fill(view)
        expected = ["/etc/hostname", "/etc/hosts", "/etc/passwd"]
        labels = []
        for row in view.rows(0, len(view)):
            domain, event = model.index.place(row)
            labels += [model.label(row + 1, fd) for fd in model.index.received[domain, event]]
        assert labels == expected
        view = model.view(parse(f"call == read and domain == {domain} and path ~ /etc"))
        model.fill(view)
        reads = view.rows(0, len(view))
        assert [model.label(row, model.decode(row).args[0]) for row in reads] == expected
        places = [model.index.place(row) for row in reads]
    with TraceReader.open(trace) as reader:
        for (domain, event), path in zip(places, expected, strict=True):
            fd = reader.event(domain, event).args[0]
            found = Descriptors(reader, EventRef(0, domain, event)).at.get(fd)
            assert found is not None
            assert found.text == path
