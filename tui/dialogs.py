"""Windows above the screen: help, columns, and lists to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Label, OptionList, Static
from textual.widgets.option_list import Option

from tui.actions import ACTIONS, LIST_KEYS, MOVE, shown_keys
from tui.model.query.fields import FIELDS, OPERATORS, Type
from tui.model.settings import COLUMNS, WIDTH_MAX, Settings
from tui.rows import RowList
from tui.styles import BOLD, DIM

_CSS = """
    align: center middle; background: $background 60%;
"""


class Help(ModalScreen[None]):
    """All keys as they are now, and the filter language."""

    DEFAULT_CSS = f"""
    Help {{ {_CSS} }}
    Help VerticalScroll {{ width: 76; max-width: 96%; height: 90%; border: round $primary; padding: 0 1;
                           background: $surface; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "dismiss", "Close", show=False, id="help.close")
    ]

    def __init__(self, keymap: Mapping[str, str]) -> None:
        super().__init__()
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        with VerticalScroll() as scroll:
            scroll.border_title = "rr-py tui: keys and filters (Esc closes)"
            yield Static(help_text(self._keymap))


def help_text(keymap: Mapping[str, str]) -> Text:
    """The help, with the user's keys."""
    text = Text()
    groups: dict[str, list[tuple[str, str]]] = {}
    for id, keys, _, words in LIST_KEYS:
        groups.setdefault(MOVE, []).append((shown_keys(keymap.get(id, keys)), words))
    for action in ACTIONS:
        keys = keymap.get(action.id, action.keys)
        if keys:
            groups.setdefault(action.group, []).append((shown_keys(keys), action.text))
    groups.setdefault("Everything else", []).append(("ctrl+p", "All commands by name"))
    groups["Everything else"].append(("Tab", "Between list and detail"))
    for group, lines in groups.items():
        text.append(f"\n{group}\n", "bold underline")
        for keys, words in lines:
            text.append(f"  {keys:14}", "bold")
            text.append(f" {words}\n")
    text.append("\nFilters\n", "bold underline")
    text.append('  call == read and duration > 10ms and path ~ "*.db"\n')
    text.append("  and, or, not, parentheses; ~ takes * ? or /regex/; in (a, b)\n\n")
    for field in FIELDS.values():
        operators = " ".join(OPERATORS[field.type]) if field.type != Type.FLAG else ""
        text.append(f"  {field.name:10}", "bold")
        text.append(f" {field.help}  ")
        text.append(f"{operators}\n", "dim")
    return text


class Choose(ModalScreen[str | None]):
    """A list to choose from; `None` when it was left."""

    DEFAULT_CSS = f"""
    Choose {{ {_CSS} }}
    Choose OptionList {{ width: 70; max-width: 96%; height: auto; max-height: 80%; border: round $primary;
                         background: $surface; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Close", show=False, id="choose.close"),
        Binding("delete", "remove", "Remove", show=False, id="choose.remove"),
    ]

    def __init__(self, title: str, items: Sequence[tuple[str, str]], *, removable: bool = False) -> None:
        """`items` are (value, text). With `removable`, the answer for a removed one begins with "-"."""
        super().__init__()
        self._title = title
        self._items = items
        self._removable = removable

    def compose(self) -> ComposeResult:
        options = OptionList(*[Option(Text(text), id=f"o{i}") for i, (_, text) in enumerate(self._items)])
        options.border_title = self._title
        yield options

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._items[event.option_index][0])

    def action_remove(self) -> None:
        at = self.query_one(OptionList).highlighted
        if self._removable and at is not None:
            self.dismiss("-" + self._items[at][0])


class _Columns(RowList):
    """The columns, as lines."""

    DEFAULT_CSS = "_Columns { height: 8; }"

    def __init__(self, settings: Settings) -> None:
        super().__init__(id="columns")
        self._settings = settings

    @property
    def row_count(self) -> int:
        return len(COLUMNS)

    def line(self, position: int, width: int) -> list[Segment]:
        name = COLUMNS[position]
        mark = " " if name in self._settings.hidden else "x"
        room = self._settings.widths[name]
        return [Segment(f" [{mark}] {name:10}", BOLD), Segment(f" {room or 'the rest'}", DIM)]


class Columns(ModalScreen[None]):
    """Choose columns (space) and size them (left, right)."""

    DEFAULT_CSS = f"""
    Columns {{ {_CSS} }}
    Columns Vertical {{ width: 44; height: auto; border: round $primary; background: $surface; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,c", "dismiss", "Close", show=False, id="columns.close"),
        Binding("space,enter", "show_column", "Show or hide", show=False, priority=True, id="columns.toggle"),
        Binding("left,minus", "size(-1)", "Narrower", show=False, priority=True, id="columns.narrower"),
        Binding("right,plus", "size(1)", "Wider", show=False, priority=True, id="columns.wider"),
    ]

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Columns"
            yield _Columns(self._settings)
            yield Label("Space shows or hides, ← → size, Esc closes")

    @property
    def _column(self) -> str:
        return COLUMNS[self.query_one(_Columns).position]

    def action_show_column(self) -> None:
        if self._column != "call":
            self._settings.hidden ^= {self._column}
        self._changed()

    def action_size(self, step: int) -> None:
        widths = self._settings.widths
        least = 0 if self._column == "call" else 4
        widths[self._column] = max(least, min(widths[self._column] + step, WIDTH_MAX))
        self._changed()

    def _changed(self) -> None:
        self._settings.save()
        self.query_one(_Columns).refresh()
        for screen in self.app.screen_stack:
            screen.refresh(layout=True)
            for widget in screen.query("EventList, ColumnTitles"):
                widget.refresh()
