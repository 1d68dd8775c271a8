"""Snapshots of every screen, and what the interface does when something is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.errors import ExitStatus, RrPyError
from tests.conftest import RunTool
from tests.tui.conftest import Story, interface, opened, press, screen_text, settle, type_text
from tests.tui.hangs import fake_hangs
from tracefile import TraceReader
from tui.diff import DiffTui
from tui.model.address import Address, parse_address
from tui.model.look import Looker, LookError
from tui.model.trace import TraceModel

Check = Callable[[str], None]


def visible(app: object) -> str:
    return screen_text(app)  # type: ignore[arg-type]


@pytest.mark.parametrize("events", [0, 1, 20_000, 1_000_000, -9_000])
@interface
async def test_events(events: int, traces: Callable[[int], Path], snapshot: Check) -> None:
    """GIVEN a trace: empty, of one event, of many, of a million, cut WHEN opened THEN it looks so."""
    async with opened(traces(events)) as (app, pilot):
        await press(pilot, "end")
        snapshot(visible(app))


@pytest.mark.parametrize("screen", ["events", "timeline", "processes", "hangs"])
@interface
async def test_small_terminal(
    screen: str, small: Path, snapshot: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a terminal of 80x24 WHEN a screen is shown THEN it is usable: it looks so."""
    monkeypatch.setattr("tui.looking.scan_trace", lambda path: fake_hangs(str(path)))
    async with opened(small, Address(small, screen, "4711:40"), size=(80, 24)) as (app, pilot):
        await settle(pilot)
        snapshot(visible(app))


@pytest.mark.parametrize("screen", ["timeline", "processes", "hangs"])
@interface
async def test_screens(screen: str, small: Path, snapshot: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a trace WHEN a screen is shown THEN it looks so."""
    monkeypatch.setattr("tui.looking.scan_trace", lambda path: fake_hangs(str(path)))
    async with opened(small, Address(small, screen)) as (app, pilot):
        await settle(pilot)
        snapshot(visible(app))


@interface
async def test_prompt_and_help(small: Path, snapshot: Check) -> None:
    """GIVEN the list WHEN a filter is typed, and the help opened THEN it looks so."""
    async with opened(small) as (app, pilot):
        await press(pilot, "f")
        await type_text(pilot, "call == op")
        snapshot(visible(app))
        await press(pilot, "escape", "question_mark")
        snapshot(visible(app))


@interface
async def test_comparison(traces: Callable[[int], Path], snapshot: Check) -> None:
    """GIVEN two traces of which one goes on WHEN compared THEN the first difference is shown."""
    with TraceModel.open(traces(200)) as model, TraceReader.open(traces(260)) as other:
        app = DiffTui(model, other)
        async with app.run_test(size=(110, 30)) as pilot:
            await settle(pilot)
            assert app.comparison.complete
            text = visible(app)
            snapshot("\n".join(text.splitlines()[2:]))
            assert app.differences.position == app.comparison.position_of_first()
            await press(pilot, "home", "n")
            assert app.differences.position == app.comparison.next_difference(0, 1)
            await press(pilot, "end", "N")
            last = app.differences.position
            assert app.comparison.next_difference(last, 1) is None
            await press(pilot, "home", "down", "enter")
            assert app.current == "events"
            await press(pilot, "5")
            assert app.current == "diff"


@pytest.mark.parametrize(
    ("address", "row"), [("4711:120", None), ("#77", 77), ("+2ms", None), ("timeline/#500", 500)]
)
@interface
async def test_addresses_open_their_place(address: str, row: int | None, small: Path) -> None:
    """GIVEN an address WHEN opened THEN the cursor is at its place."""
    from tui.model.address import parse_address, row_of_place

    parsed = parse_address(f"{small}@{address}")
    async with opened(small, parsed) as (app, _):
        expected = row if row is not None else row_of_place(app.model.index, parsed.place)
        assert app.row == expected
        assert app.current == parsed.screen


@interface
async def test_a_place_that_is_not_there_is_a_message(small: Path) -> None:
    """GIVEN an address of an event the trace has not WHEN opened THEN a message says so."""
    async with opened(small, Address(small, place="4711:99999999")) as (app, _):
        assert any("no event" in str(note.message) for note in app._notifications)


@interface
async def test_a_filter_of_an_address_holds(small: Path) -> None:
    """GIVEN an address with a filter WHEN opened THEN it holds; a wrong one is a message."""
    async with opened(small, Address(small, filter="call == close")) as (app, _):
        assert app.query_shown is not None
        assert 0 < len(app.events.view) < app.model.index.rows
    async with opened(small, Address(small, filter="call == nothing")) as (app, _):
        assert any("no call" in str(note.message) for note in app._notifications)


@interface
async def test_resizing_keeps_the_cursor_in_sight(small: Path) -> None:
    """GIVEN a cursor far down WHEN the terminal shrinks and grows THEN its line is on the screen."""
    async with opened(small) as (app, pilot):
        await press(pilot, "end")
        for size in ((60, 12), (200, 60), (20, 6), (80, 24)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            top, height = app.events.scroll_offset.y, app.events.size.height
            assert not height or top <= app.events.position < top + height


@interface
async def test_a_deleted_trace_stays_readable(traces: Callable[[int], Path], tmp_path: Path) -> None:
    """GIVEN an open trace WHEN its file is deleted THEN a message says so and all is still readable."""
    path = tmp_path / "gone.bin"
    path.write_bytes(traces(20_000).read_bytes())
    async with opened(path) as (app, pilot):
        os.unlink(path)
        app._watch_file()
        await settle(pilot)
        assert any("was deleted" in str(note.message) for note in app._notifications)
        await press(pilot, "end", "s")
        assert "domain" in app.detail.text()
        assert any("cannot open" in str(note.message) for note in app._notifications)


@interface
async def test_a_trace_cut_while_open_shows_what_is_wrong(
    traces: Callable[[int], Path], tmp_path: Path
) -> None:
    """GIVEN an open trace WHEN the file is cut THEN lines that cannot be read say so."""
    path = tmp_path / "cut.bin"
    path.write_bytes(traces(20_000).read_bytes())
    async with opened(path) as (app, pilot):
        os.truncate(path, 20_000)
        await press(pilot, "end")
        assert "cannot be read" in visible(app)


@interface
async def test_a_diverging_replay_is_a_message(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a replay that diverges WHEN a stack is asked for THEN a message says so, and all goes on."""

    def look(self: Looker, domain: int, event: int, what: str) -> object:
        raise LookError("the replay did not get there: another call", "rr-py replay", ExitStatus.DIVERGED)

    monkeypatch.setattr(Looker, "look", look)
    async with opened(small) as (app, pilot):
        await press(pilot, "s", "down")
        assert any("did not get there" in str(note.message) for note in app._notifications)
        assert app.row == 1


@interface
async def test_a_scan_that_fails_says_why(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a trace without an event loop WHEN hangs are asked for THEN the screen says why."""

    def fail(path: Path) -> object:
        raise RrPyError("no event loop in this trace", "", ExitStatus.TOOL_FAILED)

    monkeypatch.setattr("tui.looking.scan_trace", fail)
    async with opened(small) as (app, pilot):
        await press(pilot, "4")
        assert "no event loop in this trace" in visible(app)


@interface
async def test_text_of_the_program_cannot_break_the_screen(story: Story) -> None:
    """GIVEN names with escapes and markup WHEN shown THEN they are text."""
    story.domain(1, 100, comm="\x1b[31m[b]x")
    story.open("/tmp/\x1b[2J[red]x", 3)
    story.read(3, b"\x1b]0;title\x07")
    story.close().close()
    async with opened(story.path) as (app, pilot):
        await press(pilot, "down", "2", "3", "1", "F", "escape", "m", "a", "B", "escape")
        assert "\x1b" not in visible(app)
        assert "[red]x" in visible(app)


def test_without_a_terminal_there_is_a_message(tool: RunTool, small: Path) -> None:
    """GIVEN output into a pipe WHEN the interface is asked for THEN a message names other commands."""
    for words in (["tui", small], ["diff", "--tui", small, small], ["record", "--tui", "--", "true"]):
        result = tool(*words)
        assert result.returncode == 125
        assert "needs a terminal" in result.stderr
        assert "rr-py dump" in result.stderr


def test_a_wrong_address_is_a_message(tool: RunTool, small: Path) -> None:
    """GIVEN an address that is none, or no trace WHEN opened THEN one message says what is wrong."""
    result = tool("tui", f"{small}@nowhere")
    assert result.returncode == 125
    assert "no place 'nowhere'" in result.stderr
    result = tool("tui", "nothing.bin")
    assert result.returncode == 125


def test_a_wrong_key_file_is_a_message(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a key file with a mistake WHEN the interface starts THEN the error names it."""
    from tui.app import RrPyTui
    from tui.model.settings import SettingsError

    path = tmp_path / "keys.toml"
    path.write_text('[keys]\n"quitt" = "x"\n')
    monkeypatch.setenv("RR_PY_KEYS", str(path))
    with TraceModel.open(small) as model, pytest.raises(SettingsError, match="did you mean quit"):
        RrPyTui(model)


@interface
async def test_a_place_far_down_is_in_sight_from_the_start(small: Path) -> None:
    """GIVEN an address of an event far down WHEN opened THEN the list shows its line, not its beginning."""
    async with opened(small, Address(small, place="#12345")) as (app, _):
        top, height = app.events.scroll_offset.y, app.events.size.height
        assert app.row == 12345
        assert top <= app.events.position < top + height
        assert f"{12345:>9}" in screen_text(app)


@interface
async def test_a_comparison_begins_at_its_first_difference(tmp_path: Path) -> None:
    """GIVEN traces that differ late WHEN compared THEN the first difference is in sight."""
    for name, result in (("a.bin", 1), ("b.bin", 2)):
        story = Story(tmp_path / name)
        story.domain(1, 100)
        for _ in range(300):
            story.call("getppid", result=1)
        story.call("read", (9, 0, 10), result)
        story.close().close()
    with TraceModel.open(tmp_path / "a.bin") as model, TraceReader.open(tmp_path / "b.bin") as other:
        app = DiffTui(model, other)
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            assert "read(9" in screen_text(app)
            address = str(app.address())
        assert address == f"{tmp_path / 'a.bin'}@diff/100:0={tmp_path / 'b.bin'}"
        again = DiffTui(model, other, parse_address(address))
        async with again.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            assert again.current == "diff"
            assert "read(9" in screen_text(again)


@interface
async def test_an_address_of_the_timeline_puts_its_cursor(small: Path) -> None:
    """GIVEN an address of a moment on the timeline WHEN opened THEN its cursor and lane are there."""
    async with opened(small, Address(small, "timeline", "#12345")) as (app, _):
        assert app.row == 12345
        index = app.model.index
        lane = app.lanes.lane
        assert lane is not None
        assert (lane.task, app.lanes.when) == (index.task_id(12345), index.key(12345))
