"""Terminals of few colours, light ones, and none at all: nothing that means something looks like another."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.style import Style

from tests.tui.conftest import interface, opened, press, type_text
from tui.app import RrPyTui, suited


def shown(app: RrPyTui, text: str) -> Style:
    """How the first piece of the screen with a text looks."""
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            if text in segment.text and segment.style is not None:
                return segment.style
    raise AssertionError(f"{text!r} is not on the screen")


@pytest.fixture(params=["linux", "xterm-16color"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 16 colours."""
    monkeypatch.setenv("TERM", request.param)
    monkeypatch.delenv("COLORTERM")
    monkeypatch.delenv("COLORFGBG", raising=False)


@interface
async def test_sixteen_colours_are_the_terminals_own(few: None, small: Path) -> None:
    """GIVEN 16 colours WHEN an error, a string and families are shown THEN each has a colour of its own, as
    the terminal has them; themes that would be rounded to those are not offered."""
    async with opened(small) as (app, pilot):
        assert (app.console.color_system, app.theme) == ("standard", "ansi-dark")
        assert app.themes == ["ansi-dark", "ansi-light"]
        await press(pilot, "slash")
        await type_text(pilot, "ENOENT")
        await press(pilot, "enter", "up")
        colours = {
            text: style.color.name
            for text in ("-1 ", '"The quick', "fstat", "getpid", "ENOENT")
            if (style := shown(app, text)).color is not None
        }
        assert colours == {
            "-1 ": "red", '"The quick': "yellow", "fstat": "cyan", "getpid": "yellow", "ENOENT": "black",
        }  # fmt: skip
        assert not shown(app, '"The quick').bold
        assert shown(app, "getpid").bold
        bar = shown(app, "2 Timeline")
        assert bar.color != bar.bgcolor


@interface
async def test_a_light_terminal_gets_a_light_theme(
    few: None, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a terminal that says its background is light WHEN opened THEN the theme is the light one."""
    monkeypatch.setenv("COLORFGBG", "0;15")
    async with opened(small) as (app, _):
        assert app.theme == "ansi-light"


@interface
async def test_without_colours_nothing_is_lost(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN NO_COLOR WHEN errors, hits and proposals are shown THEN no colour is sent, and they stand out."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(small) as (app, pilot):
        await press(pilot, "slash")
        await type_text(pilot, "ENOENT")
        await press(pilot, "enter", "up")
        for text in ("-1 ", "getpid", '"The quick'):
            style = shown(app, text)
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default
        assert shown(app, "-1 ").bold
        assert shown(app, "ENOENT").underline
        await press(pilot, "f")
        await type_text(pilot, "ca")
        assert shown(app, "name of the").underline


def test_the_theme_chosen_elsewhere_is_followed_as_far_as_possible() -> None:
    """GIVEN a theme that this terminal cannot show WHEN opened THEN one as light or dark is taken."""
    own = ["ansi-dark", "ansi-light"]
    assert [suited(name, own) for name in ("solarized-light", "nord", "", "ansi-light")] == [
        "ansi-light", "ansi-dark", "ansi-dark", "ansi-light",
    ]  # fmt: skip
