"""Every key does what the help says: with Pilot, on generated traces."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from textual.events import Key
from textual.keys import _character_to_key, key_to_character
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher

from tests.tui import test_app_finding, test_app_places
from tests.tui.conftest import Story, interface, opened, press, screen_text, settle, type_text
from tests.tui.trying import TRIED, key, tries
from tui.actions import ACTIONS, KEY_NAMES, LIST_KEYS
from tui.app import RrPyTui
from tui.dialogs import Columns, Help
from tui.model.detail import Node
from tui.model.look import Looker
from tui.model.settings import Settings
from tui.prompt import Prompt


@tries(*(row[0] for row in LIST_KEYS))
@interface
async def test_lists_are_moved_in(small: Path) -> None:
    """GIVEN the list WHEN its keys are pressed THEN the cursor moves, by lines, pages, to both ends."""
    async with opened(small) as (app, pilot):
        await press(pilot, key("list.down"), key("list.down", 1))
        assert app.events.position == 2
        await press(pilot, key("list.up"), key("list.up", 1))
        assert app.events.position == 0
        await press(pilot, key("list.page_down"))
        page = app.events.position
        assert page == app.events.size.height - 1
        await press(pilot, key("list.page_down", 1), key("list.page_up"), key("list.page_up", 1))
        assert app.events.position == 0
        await press(pilot, key("list.last"))
        assert app.events.position == len(app.events.view) - 1
        assert app.events.scroll_offset.y > 0
        await press(pilot, key("list.first"))
        assert (app.events.position, app.events.scroll_offset.y) == (0, 0)
        await press(pilot, key("list.choose"))
        assert app.focused is app.detail


@tries("screen.events", "screen.timeline", "screen.processes", "screen.hangs", "screen.diff")
@interface
async def test_screens_are_changed(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN the list WHEN the digits are pressed THEN their screens are shown, the list of each focused."""
    monkeypatch.setattr("tui.looking.scan_trace", _no_scan)
    async with opened(small) as (app, pilot):
        for id, name in [
            ("screen.timeline", "timeline"), ("screen.processes", "processes"), ("screen.hangs", "hangs"),
            ("screen.events", "events"),
        ]:  # fmt: skip
            await press(pilot, key(id))
            assert app.query_one(ContentSwitcher).current == name
            assert app.focused is not None
        await press(pilot, key("screen.diff"))
        assert app.current == "events"


def _no_scan(path: Path) -> object:
    from interfaces.errors import ExitStatus, RrPyError

    raise RrPyError("nothing to scan", "", ExitStatus.TOOL_FAILED)


def shows_detail(app: RrPyTui) -> bool:
    return bool(app.detail.size.height)


@tries("look.detail")
@interface
async def test_the_detail_is_shown_and_hidden(small: Path) -> None:
    """GIVEN the detail WHEN toggled THEN it goes and comes, telling of the event under the cursor."""
    async with opened(small) as (app, pilot):
        assert "event" in app.detail.text()
        await press(pilot, key("look.detail"))
        assert not shows_detail(app)
        await press(pilot, "down", "down", "down", key("look.detail"))
        assert shows_detail(app)
        assert "row 3" in app.detail.text()


@tries("look.stack", "look.registers", "look.threads", "look.memory")
@interface
async def test_a_replay_is_asked(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN keys that need a replay WHEN pressed THEN the replay is asked in the background and shown."""
    asked: list[tuple[int, int, str]] = []

    def look(self: Looker, domain: int, event: int, what: str) -> Node:
        asked.append((domain, event, what))
        return Node(f"answer to {what}", "", [Node("inside")])

    monkeypatch.setattr(Looker, "look", look)
    async with opened(small) as (app, pilot):
        await press(pilot, "down")
        for id in ("look.stack", "look.registers", "look.threads"):
            await press(pilot, key(id))
        await press(pilot, key("look.memory"))
        await type_text(pilot, "rsp")
        await press(pilot, "enter")
        place = app.model.index.place(1)
        assert asked == [(*place, what) for what in ("stack", "registers", "threads", "rsp")]
        assert "answer to rsp" in app.detail.text()
        assert "answer to stack" in app.detail.text()


@tries("list.left", "list.right", "list.columns")
@interface
async def test_columns_are_chosen_sized_and_moved(small: Path) -> None:
    """GIVEN columns WHEN hidden, widened and shifted THEN the list shows it and it is kept."""
    async with opened(small) as (app, pilot):
        assert "seconds" in screen_text(app)
        await press(pilot, key("list.columns"))
        assert isinstance(app.screen, Columns)
        await press(pilot, "down", "space", "down", "right", "right", "left", "escape")
        assert "seconds" not in screen_text(app)
        assert Settings.load().hidden == {"time"}
        assert Settings.load().widths["thread"] == 15
        await press(pilot, "down")
        before = screen_text(app).splitlines()[3]
        await press(pilot, key("list.right"))
        assert screen_text(app).splitlines()[3] != before
        await press(pilot, key("list.left"))
        assert screen_text(app).splitlines()[3] == before


@tries("time.in", "time.out", "time.all", "time.pin")
@interface
async def test_the_timeline_is_zoomed_panned_and_pinned(small: Path) -> None:
    """GIVEN the timeline WHEN moved in THEN the list follows; zoom, the whole, and pins do as they say."""
    async with opened(small) as (app, pilot):
        assert app.row is not None
        thread = app.model.index.task_id(app.row)
        await press(pilot, "2")
        lanes = app.lanes
        whole = lanes.span
        assert lanes.lane is not None
        assert lanes.lane.task == thread
        await press(pilot, "home")
        await press(pilot, *["right"] * 30)
        row = app.row
        assert row is not None
        assert row > 0
        assert abs(app.model.index.key(row) - lanes.when) < (whole[1] - whole[0]) // 10
        await press(pilot, key("time.in"), key("time.in", 1))
        assert lanes.span[1] - lanes.span[0] <= (whole[1] - whole[0]) // 15
        assert lanes.span[0] <= lanes.when <= lanes.span[1]
        await press(pilot, key("time.out"))
        await press(pilot, key("time.all"))
        assert lanes.span == whole
        await press(pilot, "down", "down")
        task = lanes.lane.task if lanes.lane else -1
        await press(pilot, key("time.pin"))
        assert lanes.timeline is not None
        assert lanes.timeline.lanes[0].task == task
        assert lanes.lane is not None
        assert lanes.lane.task == task
        await press(pilot, key("time.pin"))
        assert lanes.pinned == []
        await press(pilot, "enter")
        assert app.current == "events"
        assert app.row is not None
        assert app.model.index.task_id(app.row) == task


@tries("theme")
@interface
async def test_themes_change_and_are_kept(small: Path) -> None:
    """GIVEN themes WHEN t is pressed THEN the next one is used, also the next time."""
    async with opened(small) as (app, pilot):
        before = app.theme
        await press(pilot, key("theme"))
        assert app.theme != before
        chosen = app.theme
    async with opened(small) as (app, pilot):
        assert app.theme == chosen


@tries("help")
@interface
async def test_the_help_shows_all_keys(small: Path) -> None:
    """GIVEN the help WHEN opened THEN every action is in it."""
    from tui.dialogs import help_text

    async with opened(small) as (app, pilot):
        await press(pilot, key("help"))
        assert isinstance(app.screen, Help)
        await press(pilot, "escape")
        assert len(app.screen_stack) == 1
    text = help_text({}).plain
    assert all(action.text in text for action in ACTIONS)
    assert all(name in text for name in ("duration", "path"))


@tries("quit")
@interface
async def test_q_quits(small: Path) -> None:
    """GIVEN the interface WHEN q is pressed THEN it ends."""
    async with opened(small) as (app, pilot):
        await pilot.press(key("quit"))
        await pilot.pause()
        assert not app.is_running or app._exit


@tries("live.follow")
@interface
async def test_a_growing_trace_is_followed(story: Story) -> None:
    """GIVEN a trace that is being written WHEN followed THEN new events appear, the cursor on the last one,
    until the user moves it."""
    story.domain(1, 100)
    story.call("getpid")
    story.writer.flush()
    async with opened(story.path) as (app, pilot):
        assert app.feeder.live
        await press(pilot, key("live.follow"))
        await grow(app, pilot, story, 3)
        assert app.row == 2
        await press(pilot, "up")
        assert not app.following
        await grow(app, pilot, story, 4)
        assert app.row == 1
        story.close().close()
        await until(pilot, lambda: not app.feeder.live)


async def grow(app: RrPyTui, pilot: object, story: Story, rows: int) -> None:
    """Add an event at a time until the interface shows so many."""
    while app.model.index.rows < rows:
        before = app.model.index.rows
        story.call("getppid")
        story.writer.flush()
        await until(pilot, partial(_more, app, before))
    await settle(pilot)  # type: ignore[arg-type]


def _more(app: RrPyTui, before: int) -> bool:
    return app.model.index.rows > before


async def until(pilot: object, condition: Callable[[], bool]) -> None:
    """Wait for something that another thread brings about."""
    import asyncio

    for _ in range(2000):
        if condition():
            return
        await pilot.pause()  # type: ignore[attr-defined]
        await asyncio.sleep(0.005)
    raise AssertionError("it does not happen")


@tries("live.output")
@interface
async def test_without_a_program_there_is_no_output(small: Path) -> None:
    """GIVEN a finished trace WHEN its output is asked for THEN a message says where there would be some."""
    async with opened(small) as (app, pilot):
        await press(pilot, key("live.output"))
        assert app._notifications


@tries("hangs.environment", "hangs.environment_back")
@interface
async def test_environments_are_switched(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN candidates WHEN the environment changes THEN they are ranked anew; Enter goes to the event."""
    from tests.tui.hangs import fake_hangs
    from tui.hangs import HangList

    monkeypatch.setattr("tui.looking.scan_trace", lambda path: fake_hangs(str(path)))
    async with opened(small) as (app, pilot):
        await press(pilot, "4")
        rows = app.query_one(HangList)
        assert app.environment == "nfs"
        assert [hang.candidate.operation for hang in rows.hangs] == ["fsync", "openat"]
        await press(pilot, key("hangs.environment"))
        assert app.environment == "observed"
        assert [hang.candidate.operation for hang in rows.hangs] == ["openat", "fsync"]
        await press(pilot, key("hangs.environment_back"))
        assert app.environment == "nfs"
        assert "use fdatasync in a thread" in app.query_one("#hang-detail").text()  # type: ignore[attr-defined]
        await press(pilot, "enter")
        assert app.current == "events"
        assert app.row == app.model.index.row_of(1, 40)
        await press(pilot, "2")
        assert {mark.kind for mark in app.lanes.marks} == {"action", "hang"}


@interface
async def test_keys_are_remapped(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a key file WHEN the interface starts THEN its keys work and the old ones do not."""
    path = tmp_path / "keys.toml"
    path.write_text('[keys]\n"find.filter" = "ctrl+g"\n"list.down" = "J"\n')
    monkeypatch.setenv("RR_PY_KEYS", str(path))
    async with opened(small) as (app, pilot):
        await press(pilot, "f")
        assert not app.query_one(Prompt).has_class("open")
        await press(pilot, "ctrl+g")
        assert app.query_one(Prompt).has_class("open")
        await press(pilot, "escape", "J")
        assert app.events.position == 1


@interface
async def test_the_palette_has_every_action(small: Path) -> None:
    """GIVEN the palette WHEN its commands are listed THEN every action that makes sense there is one."""
    async with opened(small) as (app, pilot):
        commands = {command.title for command in app.get_system_commands(app.screen)}
        assert commands == {action.text for action in ACTIONS if action.palette}
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert type(app.screen).__name__ == "CommandPalette"


@interface
async def test_the_mouse_works(small: Path) -> None:
    """GIVEN the mouse WHEN clicking THEN lines, screens and the timeline's moments are chosen."""
    async with opened(small) as (app, pilot):
        await pilot.click("#event-list", offset=(20, 5))
        await settle(pilot)
        assert app.events.position == 5
        await pilot.click("#event-list", offset=(20, 7), times=2)
        await settle(pilot)
        assert app.focused is app.detail
        await pilot.click("#bar", offset=(14, 0))
        await settle(pilot)
        assert app.current == "timeline"
        await pilot.click("#timeline-view", offset=(60, 2))
        await settle(pilot)
        assert app.lanes.position == 2
        assert app.lanes.when > app.lanes.span[0]


def test_every_action_is_tried() -> None:
    """GIVEN the list of actions WHEN compared with the tests THEN each has one, and a name for its keys."""
    assert test_app_finding
    assert test_app_places
    known = {action.id for action in ACTIONS} | {row[0] for row in LIST_KEYS}
    assert known == TRIED
    for action in ACTIONS:
        for one in action.keys.split(","):
            part = one.split("+")[-1]
            assert len(part) == 1 or part in KEY_NAMES


@tries()
@interface
async def test_no_key_is_lost_however_fast(small: Path) -> None:
    """GIVEN keys that all come at once, as when pasted WHEN they open lines, fill and leave them THEN each
    does what it does when typed slowly."""
    async with opened(small) as (app, pilot):
        await burst(pilot, "slash", *"users", "enter", "n")
        assert (app.search.query.text if app.search else "", app.search_note[:2]) == ("users", "2/")
        await burst(pilot, "escape", "f", *"call", "space", "=", "=", "space", *"rea", "tab", "enter", "G")
        assert app.query_shown is not None
        assert app.query_shown.text == "call == read"
        assert app.events.position == len(app.events.view) - 1
        await burst(pilot, "escape", ":", *"4711:70", "enter", "m", "q", "j", "j", "'", "q", "j")
        assert app.row == app.model.index.row_of(1, 70) + 1  # type: ignore[operator]
        await burst(pilot, "?", "escape", "3", "j", "enter", "slash", *"q3?", "escape", "2")
        assert app.query_shown.text == "pid == 4720"
        assert app.current == "timeline"


async def burst(pilot: Pilot[int], *keys: str) -> None:
    """Keys that are all there before the first is looked at."""
    driver = pilot.app._driver
    assert driver is not None
    for name in keys:
        key = _character_to_key(name) if len(name) == 1 else name
        driver.send_message(Key(key, key_to_character(key)))
    await settle(pilot)
