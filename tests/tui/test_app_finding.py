"""Keys that find events: filters, searches, the next of a kind."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from interfaces.abi import Kind
from tests.tui.conftest import Story, interface, opened, press, type_text
from tests.tui.trying import key, tries
from tui.dialogs import Choose
from tui.processes import ProcessList
from tui.prompt import Prompt


@tries("find.filter", "find.clear")
@interface
async def test_a_filter_turns_red_and_green_and_is_applied(small: Path) -> None:
    """GIVEN a filter being typed WHEN wrong or right THEN its class says so; Esc takes away."""
    async with opened(small) as (app, pilot):
        prompt = app.query_one(Prompt)
        await press(pilot, key("find.filter"))
        await type_text(pilot, "call == rea")
        assert prompt.has_class("wrong")
        await pilot.press("tab")
        await pilot.pause()
        assert app.query_one("#prompt-input", Input).value == "call == read "
        assert prompt.has_class("right")
        await type_text(pilot, "and result == 60")
        await press(pilot, "enter")
        assert not prompt.has_class("open")
        assert app.focused is app.events
        view = app.events.view
        assert 0 < len(view) < app.model.index.rows // 4
        assert {app.model.decode(row).name for row in view.rows(0, 50)} == {"read"}
        await press(pilot, key("find.clear"))
        assert len(app.events.view) == app.model.index.rows


@tries()
@interface
async def test_a_prompt_is_left_and_remembers(small: Path) -> None:
    """GIVEN a prompt WHEN it is left THEN nothing happens; wrong texts are not taken; up brings old ones."""
    async with opened(small) as (app, pilot):
        await press(pilot, "f")
        await type_text(pilot, "nonsense")
        await press(pilot, "enter")
        assert app.query_one(Prompt).has_class("open")
        await press(pilot, "escape")
        assert not app.query_one(Prompt).has_class("open")
        assert app.query_shown is None
        await press(pilot, "slash")
        await type_text(pilot, "users")
        await press(pilot, "enter", "slash", "up")
        assert app.query_one("#prompt-input", Input).value == "users"
        await press(pilot, "down")
        assert app.query_one("#prompt-input", Input).value == ""


@tries("find.search", "find.next", "find.previous")
@interface
async def test_search_finds_and_counts(small: Path) -> None:
    """GIVEN a search WHEN going on THEN the cursor is on hits, counted; the other end follows the last."""
    async with opened(small) as (app, pilot):
        await press(pilot, key("find.search"))
        await type_text(pilot, "-1 ENOENT")
        await press(pilot, "enter")
        first = app.row
        assert first is not None
        assert app.model.decode(first).error == 2
        total = app.search_note.partition("/")[2]
        assert app.search_note == f"1/{total}"
        await press(pilot, key("find.next"))
        assert app.search_note == f"2/{total}"
        await press(pilot, key("find.previous"), key("find.previous"))
        assert app.search_note == f"{total}/{total}"
        await press(pilot, "escape")
        assert app.search is None
        await press(pilot, key("find.next"))
        assert app.row is not None


@tries("find.terms")
@interface
async def test_the_event_becomes_the_filter(small: Path) -> None:
    """GIVEN an event WHEN made a filter THEN conditions it fulfils are offered, and the chosen one holds."""
    async with opened(small) as (app, pilot):
        await press(pilot, "down", key("find.terms"))
        assert isinstance(app.screen, Choose)
        await press(pilot, "enter")
        row = app.row
        assert row is not None
        assert app.query_shown is not None
        assert app.query_shown.text == f"call == {app.model.decode(row).name}"
        await press(pilot, key("find.terms"), "down", "enter")
        assert " and tid == " in app.query_shown.text


@tries("find.all")
@interface
async def test_all_kinds_are_shown_on_demand(story: Story) -> None:
    """GIVEN hand-overs among calls WHEN all is asked for THEN they are shown, the cursor staying."""
    story.domain(1, 100)
    story.call("getpid")
    story.event(Kind.YIELD)
    story.call("getppid")
    story.close().close()
    async with opened(story.path) as (app, pilot):
        await press(pilot, "down")
        assert (len(app.events.view), app.row) == (2, 2)
        await press(pilot, key("find.all"))
        assert (len(app.events.view), app.row) == (3, 2)
        await press(pilot, key("find.all"))
        assert len(app.events.view) == 2


@tries("find.failed", "find.failed_back", "find.slow", "find.slow_back")
@interface
async def test_failed_and_slow_calls_are_found(small: Path) -> None:
    """GIVEN calls WHEN the next failed or slow one is asked for THEN the cursor is there, both ways."""
    async with opened(small) as (app, pilot):
        await press(pilot, key("find.failed"))
        first = app.row
        assert first is not None
        assert app.model.decode(first).error
        await press(pilot, key("find.failed"), key("find.failed_back"))
        assert app.row == first
        await press(pilot, key("find.slow"))
        slow = app.row
        assert slow is not None
        assert app.model.decode(slow).took >= 10_000_000
        await press(pilot, key("find.slow"), key("find.slow_back"))
        assert app.row == slow


@tries("go.thread_next", "go.thread_previous")
@interface
async def test_a_thread_is_followed(small: Path) -> None:
    """GIVEN an event WHEN ] and [ are pressed THEN the cursor goes along its thread."""
    async with opened(small) as (app, pilot):
        await press(pilot, "down")
        start = app.row
        assert start is not None
        task = app.model.index.task_id(start)
        for _ in range(12):
            await press(pilot, key("go.thread_next"))
            assert app.row is not None
            assert app.model.index.task_id(app.row) == task
        for _ in range(12):
            await press(pilot, key("go.thread_previous"))
        assert app.row == start


@tries()
@interface
async def test_a_process_becomes_the_filter(small: Path) -> None:
    """GIVEN the processes WHEN one is chosen THEN only its events are shown."""
    async with opened(small) as (app, pilot):
        await press(pilot, "3")
        rows = app.query_one(ProcessList)
        assert [process.pid for process in rows.processes] == [4711, 4720]
        await press(pilot, "down", "enter")
        assert app.current == "events"
        assert len(app.events.view) == 2000
        assert app.query_shown is not None
        assert app.query_shown.text == "pid == 4720"
