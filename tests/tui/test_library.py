"""Traces recorded at library interfaces: shown, filtered, scanned; and what they cannot tell is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.tui_trace import region
from hangscan import Options, scan
from interfaces.abi import Kind, RegionKind
from interfaces.libspec import load_all
from interfaces.libspec.show import LibFlag
from replayer import Session
from replayer.errors import LibraryTraceError
from tests.tui.conftest import Story, indexed, interface, opened, press, screen_text, type_text
from tui.model.decode import line_of, plain_text, result_of
from tui.model.detail import detail
from tui.model.query.language import parse
from tui.model.trace import TraceModel

INTERFACES = load_all(["libc", "zlib", "x11"])
NUMBERS = {
    name: number
    for number, name in enumerate(
        (name for one in INTERFACES for name in (*one.functions, *one.callbacks)), start=1
    )
}
ENOENT = region(RegionKind.INFO, 0, 0, (2).to_bytes(4, "little"))
POLLED = region(RegionKind.IN, 0, 0, (5).to_bytes(4, "little") + b"\1\0\0\0")


class LibraryStory(Story):
    """A story told in library calls."""

    def __init__(self, path: Path) -> None:
        library = [{"name": one.name, "path": one.path, "text": one.text} for one in INTERFACES]
        super().__init__(path, library={"interfaces": library})

    def function(self, name: str, *args: int, result: int = 0, took: int = 1000, data: bytes = b"",
                 flags: int = 0) -> int:  # fmt: skip
        return self.event(Kind.LIBCALL, NUMBERS[name], args, result, took=took, payload=data, flags=flags)


def text(arg: int, value: bytes) -> bytes:
    """What a string argument points to; library calls are logged without its address."""
    return region(RegionKind.IN, arg, 0, value + b"\0")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A loop over poll that opens, reads, fails, compresses and sleeps."""
    story = LibraryStory(tmp_path / "library.bin")
    story.domain(1, 100, comm="app")
    story.function("open", 0x5000, 0, 0, result=5, data=text(0, b"/srv/app.db"))
    story.function("read", 5, 0x6000, 9, result=3, data=region(RegionKind.OUT, 1, 0, b"abc"))
    story.function("open", 0x5100, 0, 0, result=-1, data=text(0, b"/nowhere") + ENOENT, flags=LibFlag.ERRNO)
    for _ in range(4):
        story.function("poll", 0x7000, 1, 30, took=30_000_000, data=POLLED)
        story.now += 1_000_000
    story.function("gzopen", 0x5200, 0x5300, result=0, data=text(0, b"/no.gz") + ENOENT, flags=LibFlag.ERRNO)
    story.function("usleep", 250_000, took=250_000_000)
    story.function("poll", 0x7000, 1, 30, took=30_000_000, data=POLLED)
    story.close().close()
    return story.path


def _lines(model: TraceModel, filter: str = "") -> list[str]:
    view = model.view(parse(filter))
    model.fill(view)
    found = []
    for row in view.rows(0, len(view)):
        event = model.decode(row)
        line = plain_text(line_of(event, model.reader, model.label))
        found.append(f"{line} = {plain_text(result_of(event, model.label))}")
    return found


def test_library_calls_are_shown_as_system_calls_are(library: Path) -> None:
    """GIVEN library calls WHEN shown THEN those that are system calls look so, with what descriptors stand
    for, and the others have their parameters' names, results and errors."""
    lines = _lines(indexed(library))
    assert lines[:3] == [
        'open("/srv/app.db", O_RDONLY) = 5</srv/app.db>',
        'read(5</srv/app.db>, "abc", 9) = 3',
        'open("/nowhere", O_RDONLY) = -1 ENOENT',
    ]
    assert lines[7:9] == ['gzopen(path="/no.gz", mode=0x5300) = NULL ENOENT', "usleep(us=250000) = 0"]


@pytest.mark.parametrize(
    ("filter", "rows"),
    [
        ("call == read", [1]), ("call == gzopen", [7]), ("call ~ gz*", [7]), ("errno == ENOENT", [2, 7]),
        ('path ~ "*.db"', [0, 1]), ("fd == 5", [1]), ("kind == libcall", [7, 8]),
        ("duration > 100ms", [8]), ("blocked", []), ('data ~ "no.gz"', [7]), ('text ~ "us=250000"', [8]),
    ],
)  # fmt: skip
def test_filters_know_library_calls(library: Path, filter: str, rows: list[int]) -> None:
    """GIVEN library calls WHEN filtered THEN names, errors, descriptors, paths and times are theirs."""
    model = indexed(library)
    view = model.view(parse(filter))
    model.fill(view)
    assert view.rows(0, len(view)) == rows


def test_the_detail_declares_the_function(library: Path) -> None:
    """GIVEN a library call WHEN looked at THEN its declaration, arguments, data and error are told."""
    model = indexed(library)
    shown = detail(model, 7)
    facts = {node.text: node.value for node in shown.children[0].children}
    assert "gzopen(const char *path, const char *mode)" in facts["declared"]
    assert [(node.text, node.value) for node in shown.children[1].children] == [
        ("path", '"/no.gz"'), ("mode", "0x5300"),
    ]  # fmt: skip
    assert any(node.text.startswith("path: read from memory") for node in shown.children)


@interface
async def test_the_interface_shows_them_and_says_what_is_missing(library: Path) -> None:
    """GIVEN a library trace WHEN filtered by name and asked for a stack THEN it is found, and the message
    says what to record instead."""
    async with opened(library) as (app, pilot):
        await press(pilot, "f")
        await type_text(pilot, "call == gzo")
        await press(pilot, "tab", "enter")
        assert app.query_shown is not None
        assert app.query_shown.text == "call == gzopen"
        assert "NULL ENOENT" in screen_text(app)
        await press(pilot, "s")
        said = [note.message for note in app._notifications]
        assert any("libc and zlib and x11" in one and "rr-py record -- story" in one for one in said), said


def test_a_replay_to_a_place_is_refused(library: Path) -> None:
    """GIVEN a library trace WHEN a session is opened THEN the error names the interface and the remedy."""
    with pytest.raises(LibraryTraceError, match="no memory, registers or stacks") as caught:
        Session.open(library, ignore_cpu=True)
    assert caught.value.remedy == "Record the system calls for those: rr-py record -- story"


def test_the_scan_judges_library_calls(library: Path) -> None:
    """GIVEN a loop over libc's poll that sleeps WHEN scanned THEN the sleep is found, by the function's name,
    with the fix; the loop's own waits and quick calls are not."""
    report = scan(library, Options(environments=("hdd",)))
    assert [(loop.waits, loop.toolkit) for loop in report.loops] == [(5, "plain loop")]
    (found,) = report.candidates
    assert (found.resource.kind, found.operation, found.stack[0].function) == ("sleep", "sleep", "usleep")
    assert found.observed_ms == pytest.approx(250)
    assert "timer" in found.fix
    assert any("library interfaces libc and zlib and x11" in note for note in report.notes)


def test_loops_of_library_functions_are_found(tmp_path: Path) -> None:
    """GIVEN a client that waits in XNextEvent WHEN scanned THEN it is a loop, and its round trip a hang."""
    story = LibraryStory(tmp_path / "x.bin")
    story.domain(1, 100, comm="app")
    for i in range(6):
        story.now += 5_000_000
        story.function("XNextEvent", 0x5000, 0x6000, took=5_000_000)
        if i == 3:
            story.now += 200_000_000
            story.function("XSync", 0x5000, 0, took=200_000_000)
    story.close().close()
    report = scan(tmp_path / "x.bin", Options(environments=("hdd",)))
    assert [loop.waits for loop in report.loops] == [6]
    assert [(one.resource.kind, one.stack[0].function) for one in report.candidates] == [("display", "XSync")]


def test_paths_of_functions_are_found(library: Path) -> None:
    """GIVEN functions with parameters that are paths WHEN filtered THEN they are found."""
    assert [line.partition("(")[0] for line in _lines(indexed(library), "path ~ .gz")] == ["gzopen"]
    assert [line.partition("(")[0] for line in _lines(indexed(library), "data ~ .gz")] == ["gzopen"]
    assert [line.partition("(")[0] for line in _lines(indexed(library), "text ~ usleep")] == ["usleep"]
    assert len(_lines(indexed(library), "path ~ app.db")) == 2
