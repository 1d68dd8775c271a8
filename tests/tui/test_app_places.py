"""Keys that go to places, keep them, and carry events out."""

from __future__ import annotations

from pathlib import Path

from tests.tui.conftest import interface, opened, press, type_text
from tests.tui.trying import key, tries
from tui.dialogs import Choose
from tui.model.address import Address
from tui.prompt import Prompt


@tries("go.to", "go.back", "go.forward")
@interface
async def test_places_are_gone_to_and_back(small: Path) -> None:
    """GIVEN places WHEN gone to THEN back and forward lead through them; a wrong one is refused."""
    async with opened(small) as (app, pilot):
        for place, row in [("5000", 5000), ("4711:70", app.model.index.row_of(1, 70))]:
            await press(pilot, key("go.to"))
            await type_text(pilot, place)
            await press(pilot, "enter")
            assert app.row == row
        await press(pilot, key("go.back"))
        assert app.row == 5000
        await press(pilot, key("go.back", 1))
        assert app.row == 0
        await press(pilot, key("go.forward"), key("go.forward", 1))
        assert app.row == app.model.index.row_of(1, 70)
        await press(pilot, key("go.to"))
        await type_text(pilot, "99999999")
        assert app.query_one(Prompt).has_class("wrong")


@tries("go.mark", "go.to_mark", "go.bookmark", "go.bookmarks")
@interface
async def test_marks_and_bookmarks(small: Path, tmp_path: Path) -> None:
    """GIVEN marks WHEN set THEN one gets back to them, they are listed, kept beside the trace, removable."""
    trace = tmp_path / "t.bin"
    trace.write_bytes(small.read_bytes())
    async with opened(trace) as (app, pilot):
        await press(pilot, "down", "down", key("go.mark"), "q")
        await press(pilot, "end", key("go.bookmark"))
        await type_text(pilot, "the end")
        await press(pilot, "enter", "home", key("go.to_mark"), "q")
        assert app.row == 2
        assert (tmp_path / "t.bin.bookmarks.json").exists()
        await press(pilot, key("go.bookmarks"))
        assert isinstance(app.screen, Choose)
        await press(pilot, "down", "enter")
        assert app.row == app.model.index.rows - 1
        await press(pilot, key("go.bookmarks"), "delete")
        assert len(app.bookmarks.all()) == 1
        await press(pilot, key("go.to_mark"), "z")
        assert app.row == app.model.index.rows - 1


@tries("copy.line", "copy.address")
@interface
async def test_lines_and_addresses_are_copied(small: Path) -> None:
    """GIVEN an event WHEN copied THEN the line, or the address of the place, is on the clipboard."""
    async with opened(small) as (app, pilot):
        await press(pilot, "down", key("copy.line"))
        assert "fstat(5" in app.clipboard or "openat(" in app.clipboard
        await press(pilot, key("copy.address"))
        assert app.clipboard.startswith(f"{small}@47")
        await press(pilot, "enter", key("copy.line"))
        assert "arguments" in app.clipboard


@tries("export")
@interface
async def test_the_shown_events_are_exported(small: Path, tmp_path: Path) -> None:
    """GIVEN a filter WHEN exported THEN the file has its events; an existing one is not overwritten."""
    target = tmp_path / "out.csv"
    async with opened(small, Address(small, filter="call == close")) as (app, pilot):
        for _ in range(2):
            await press(pilot, key("export"))
            await type_text(pilot, str(target))
            await press(pilot, "enter")
        assert len(target.read_text().splitlines()) == len(app.events.view) + 1
