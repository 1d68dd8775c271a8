"""A trace that cannot be read in the middle: whatever is asked for, the interface stays, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.conftest import PATIENCE, interface, opened, press, screen_text, settle, type_text
from tracefile import TraceReader
from tui.app import RrPyTui
from tui.model.columns import BLOCK

EVENTS = BLOCK + 20_000


@pytest.fixture
def damaged(traces: Callable[[int], Path], tmp_path: Path) -> Path:
    """A trace with payload in its second block that does not match its checksum."""
    data = bytearray(traces(EVENTS).read_bytes())
    with TraceReader.open(traces(EVENTS)) as reader:
        at = reader.domains[1].offsets[-2]
        data[at + 80 + reader._source.header(at).stored_a + 5] ^= 0xFF
    path = tmp_path / "damaged.bin"
    path.write_bytes(data)
    return path


async def told(app: RrPyTui, pilot: Pilot[int], text: str) -> None:
    """Wait until the screen, or a message, says something."""
    for _ in range(PATIENCE):
        await pilot.pause()
        if text in screen_text(app) or any(text in str(note.message) for note in app._notifications):
            return
        await asyncio.sleep(0.005)
    raise AssertionError(screen_text(app))


@interface
async def test_a_search_over_damage_is_told(damaged: Path) -> None:
    """GIVEN damage WHEN a search comes to it THEN it says so, and other searches go on."""
    async with opened(damaged) as (app, pilot):
        await press(pilot, "slash")
        await type_text(pilot, "nowhere")
        await pilot.press("enter")
        await told(app, pilot, "is damaged")
        assert app.search_note == "cannot be read"
        await press(pilot, "slash")
        await type_text(pilot, "ENOENT")
        await pilot.press("enter")
        await told(app, pilot, "/ENOENT")
        assert app.row is not None
        assert app.model.decode(app.row).error == 2


@interface
async def test_a_filter_over_damage_shows_what_precedes(damaged: Path) -> None:
    """GIVEN damage WHEN a filter comes to it THEN what precedes is shown, and what went wrong."""
    async with opened(damaged) as (app, pilot):
        await press(pilot, "f")
        await type_text(pilot, "data ~ fox")
        await pilot.press("enter")
        await told(app, pilot, "up to the damage")
        assert len(app.events.view) > 1000
        app.apply_filter('data ~ "nowhere at all"')
        await told(app, pilot, "nothing before the damage")
        app.apply_filter("call == read")
        await settle(pilot)
        assert app.events.view.complete


@interface
async def test_a_damaged_event_can_be_asked_anything(damaged: Path) -> None:
    """GIVEN the cursor on an event that cannot be read WHEN each key is tried THEN the interface stays."""
    async with opened(damaged) as (app, pilot):
        reader = app.model.reader
        row = app.model.index.row_of(1, reader.domains[1].firsts[-2])
        assert row is not None
        app.go(row)
        await settle(pilot)
        await told(app, pilot, "cannot be read")
        for key in ("F", "y", "Y", "e", "escape", "f", "escape", "enter", "escape", "s", "r", "n"):
            await pilot.press(key)
            await pilot.pause()
        for screen in "2341":
            await pilot.press(screen)
            await settle(pilot)
        assert app.is_running
        assert app.failure is None
        assert "cannot be read" in screen_text(app)


@interface
async def test_an_export_over_damage_is_told(damaged: Path, tmp_path: Path) -> None:
    """GIVEN damage WHEN all events are exported THEN what went wrong is said."""
    async with opened(damaged) as (app, pilot):
        app.apply_filter(f"row > {BLOCK}")
        await settle(pilot)
        app.begin_export(str(tmp_path / "out.jsonl"))
        await told(app, pilot, "is damaged")
