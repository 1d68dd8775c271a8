"""The application: its screens, what keys do, and how it begins and ends."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES
from textual.widgets import ContentSwitcher, Input, Static

from tui.actions import ACTIONS, IDS
from tui.base import Changed
from tui.detail import DetailTree
from tui.dialogs import Columns, Help
from tui.events import ColumnTitles
from tui.finding import Finding
from tui.focus import focus_now
from tui.hangs import TITLE as HANGS_TITLE
from tui.hangs import HangList
from tui.looking import Looking
from tui.model.address import SCREENS, Address
from tui.model.query.language import QueryError, parse
from tui.model.settings import Settings, load_keys
from tui.model.text import count
from tui.model.trace import TraceModel
from tui.placing import Placing
from tui.processes import TITLE as PROCESSES_TITLE
from tui.processes import ProcessList
from tui.prompt import Prompt
from tui.rows import RowList
from tui.timeline import TimelineView

THEMES = (
    "textual-dark", "textual-light", "ansi-dark", "ansi-light", "nord", "gruvbox", "solarized-light",
    "dracula",
)  # fmt: skip
_WATCH_S = 3.0


class RrPyTui(Finding, Looking, Placing):
    """Browses one trace."""

    TITLE = "rr-py"
    ENABLE_COMMAND_PALETTE = True
    CSS = """
    #bar { dock: top; height: 1; background: $primary-darken-2; color: $text; }
    #status { dock: bottom; height: 1; background: $panel; }
    RrPyTui:ansi #bar { background: ansi_blue; color: ansi_bright_white; link-color: ansi_bright_white; }
    RrPyTui:ansi OptionList > .option-list--option-highlighted { text-style: bold underline; }
    RrPyTui:ansi Tree > .tree--cursor { text-style: underline; }
    RrPyTui:ansi Tree:focus > .tree--cursor { text-style: reverse; }
    #timeline-title { height: 2; }
    .title { height: 1; background: $panel; text-style: bold; }
    #timeline-view { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(action.keys, action.call, action.text, show=False, id=action.id)
            for action in ACTIONS
            if action.id != "quit"
        ),
        Binding("q", "quit", "Quit", show=False, id="quit"),
    ]

    def __init__(self, model: TraceModel, address: Address | None = None) -> None:
        super().__init__(model, address or Address(model.path))
        self.user_keys = load_keys(IDS)

    def compose(self) -> ComposeResult:
        yield Static(id="bar")
        with ContentSwitcher(initial="events"):
            with Vertical(id="events"):
                yield ColumnTitles(self.settings)
                yield self.events
                yield from self.compose_below()
                yield self.detail
            with Vertical(id="timeline"):
                yield Static("", id="timeline-title", classes="title", markup=False)
                yield TimelineView(id="timeline-view")
            with Vertical(id="processes"):
                yield Static(PROCESSES_TITLE, classes="title", markup=False)
                yield ProcessList(id="process-list")
            with Vertical(id="hangs"):
                yield Static(HANGS_TITLE, id="hangs-title", classes="title", markup=False)
                yield HangList(id="hang-list")
                yield DetailTree(id="hang-detail")
            yield from self.compose_more()
        yield Prompt()
        yield Static(id="status", markup=False)

    def compose_below(self) -> ComposeResult:
        """What stands below the list of events."""
        yield from ()

    def compose_more(self) -> ComposeResult:
        """Further screens."""
        yield from ()

    def on_mount(self) -> None:
        """Begin to read the trace."""
        self.set_keymap(self.user_keys)
        self.register_theme(replace(BUILTIN_THEMES["ansi-dark"], primary="ansi_cyan"))
        self.theme = suited(self.settings.theme, self.themes)
        focus_now(self.events)
        self.run_worker(self.feeder.run, thread=True, group="feeder", exit_on_error=True)
        self.set_interval(_WATCH_S, self._watch_file)
        if self._address.filter:
            try:
                self.show_view(parse(self._address.filter), self.everything)
            except QueryError as why:
                self.notify(why.message, severity="error", markup=False)
        if self._address.screen != "events":
            self.action_screen(self._address.screen)
        self._tell_bar()
        self.tell_status()

    def on_unmount(self) -> None:
        self.feeder.stop()
        self.close_looker()

    # -- screens

    def action_screen(self, name: str) -> None:
        if name not in SCREENS or not self.query(f"ContentSwitcher > #{name}"):
            self.notify("nothing to compare with: rr-py diff A B --tui" if name == "diff" else f"no {name}")
            return
        self.query_one(ContentSwitcher).current = name
        if name == "timeline":
            row = self.row
            focus_now(self.lanes)
            self.lanes.set_whole(*self.model.index.span)
            if row is not None:
                self.lanes.point(self.model.index.task_id(row), self.model.index.key(row))
            self.ask_timeline()
        elif name == "processes":
            focus_now(self.query_one(ProcessList))
            self.ask_processes()
        elif name == "hangs":
            focus_now(self.query_one(HangList))
            self.ask_hangs()
        elif name == "events":
            focus_now(self.events)
            self.ask_detail()
        self._tell_bar()
        self.tell_status()

    def show_events(self) -> None:
        if self.current != "events":
            self.action_screen("events")

    def _tell_bar(self) -> None:
        """Write the line at the top: screens to click on, and what the trace is."""
        if not self.going:
            return
        names = []
        for number, name in enumerate(SCREENS, 1):
            if name == "diff" and not self.query("ContentSwitcher > #diff"):
                continue
            label = f"{number} {name.capitalize()}"
            style = "reverse" if name == self.current else ""
            names.append(f"[{style} @click=app.screen('{name}')] {label} [/]")
        reader = self.model.reader
        size = f"{count(max(reader.total_events, self.model.index.rows))} events"
        state = "" if reader.complete or self.feeder.live else "  (incomplete)"
        title = self.model.path.name.replace("[", "\\[")
        self.query_one("#bar", Static).update("".join(names) + f"  {title}  {size}{state}")

    # -- messages

    @on(Changed)
    def _changed(self) -> None:
        if not self.going:
            return
        self.take_changes()
        self._tell_bar()
        if self.current == "timeline":
            self.lanes.set_whole(*self.model.index.span)
            if self.timeline_rows != self.model.index.rows:
                self.ask_timeline()
        elif self.current == "processes":
            self.ask_processes()
        self.ask_detail()

    @on(RowList.Moved, "#event-list")
    def _moved(self, event: RowList.Moved) -> None:
        if event.by_user:
            self.following = False
        self.tell_status()
        self.ask_detail()
        if self.search is not None and self.search.complete:
            self._counted(self.search, self.search.count())

    @on(RowList.Chosen, "#event-list")
    def _chosen_event(self) -> None:
        """Enter: into the detail."""
        self.detail.display = True
        self.ask_detail()
        focus_now(self.detail)

    @on(RowList.Chosen, "#timeline-view")
    def _chosen_lane(self) -> None:
        self.show_events()

    @on(RowList.Chosen, "#process-list")
    def _chosen_process(self) -> None:
        process = self.query_one(ProcessList).chosen
        if process is not None:
            self.show_events()
            self.filter_by_process(process)

    @on(RowList.Chosen, "#hang-list")
    def _chosen_hang(self) -> None:
        hang = self.query_one(HangList).chosen
        if hang is None:
            return
        row = self.model.index.row_of(hang.candidate.domain, hang.candidate.event)
        if row is not None:
            self.show_events()
            self.go(row)

    @on(DetailTree.Follow)
    def _follow_detail(self, event: DetailTree.Follow) -> None:
        self.show_events()
        self.go(event.row)
        focus_now(self.events)

    @on(Prompt.Left)
    def _left(self) -> None:
        self._focus_list()

    @on(Prompt.Answered)
    def _answered(self, event: Prompt.Answered) -> None:
        self._focus_list()
        match event.asking:
            case "filter":
                self.apply_filter(event.text)
            case "search":
                self.begin_search(event.text)
            case "goto":
                self.go_to_place(event.text)
            case "bookmark":
                self.set_bookmark(event.text.strip())
            case "export":
                self.begin_export(event.text.strip())
            case "memory" if event.text.strip():
                self.action_look(event.text.strip())

    async def deliver(self, event: events.Event) -> None:
        """A mark's letter comes before what the key else means."""
        if isinstance(event, events.Key) and self._letter_for and not isinstance(self.focused, Input):
            self.take_letter(event)
        else:
            await super().deliver(event)

    # -- actions

    def action_ask(self, what: str) -> None:
        if what in ("filter", "search") and self.current not in ("events", "timeline"):
            self.show_events()
        match what:
            case "filter":
                self.ask_filter()
            case "search":
                self.ask_search()
            case "goto":
                self.ask_goto()
            case "bookmark":
                self.query_one(Prompt).ask("bookmark", "name of this event")
            case "export":
                self.ask_export()
            case "memory":
                self.query_one(Prompt).ask("memory", "memory at: an address, or a register such as rsp+16")

    def action_shift(self, cells: int) -> None:
        if self.current == "timeline":
            self.lanes.move(1 if cells > 0 else -1)
        else:
            self.events.shift(cells)

    def action_columns(self) -> None:
        self.push_screen(Columns(self.settings))

    def action_follow(self) -> None:
        self.following = not self.following
        if self.following:
            self.events.move_to(self.events.row_count - 1)
        self.tell_status()

    def action_output(self) -> None:
        self.notify("there is no output: rr-py record --tui -- PROGRAM shows it")

    @property
    def themes(self) -> list[str]:
        """The themes to choose from, the usual one first.

        A terminal of 16 colours gets those that are made of its own: others come out as whatever is nearest,
        strings as red as errors. So does one that shall have no colour at all.
        """
        known = [name for name in THEMES if name in self.available_themes]
        if not self.no_color and self.console.color_system in ("eight_bit", "256", "truecolor", "windows"):
            return known
        own = [name for name in known if self.available_themes[name].ansi]
        return own[::-1] if light_background() else own

    def action_next_theme(self) -> None:
        known = self.themes
        at = known.index(self.theme) if self.theme in known else -1
        self.theme = known[(at + 1) % len(known)]
        self.settings.theme = self.theme
        self.settings.save()
        self.events.forget()
        self.notify(f"theme {self.theme}", timeout=2)

    def action_help(self) -> None:
        self.push_screen(Help(self.user_keys))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Everything that can be done, for the palette."""
        for action in ACTIONS:
            if action.palette:
                call = action.call
                yield SystemCommand(action.text, f"{action.group} ({action.id})", self._runner(call))

    def _runner(self, call: str) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            await self.run_action(call)

        return run

    def _focus_list(self) -> None:
        lists = {"timeline": "#timeline-view", "processes": "#process-list", "hangs": "#hang-list"}
        focus_now(self.query_one(lists.get(self.current, "#event-list")))

    def _watch_file(self) -> None:
        """Say so when the trace is gone."""
        if not self.notice and not os.path.exists(self.model.path):
            self.notice = "gone"
            self.notify(
                f"{self.model.path} was deleted: what is open stays readable, replays are no longer possible",
                severity="warning",
                timeout=10,
                markup=False,
            )


def suited(wanted: str, themes: Sequence[str]) -> str:
    """The theme that was chosen once, or what comes nearest to it here."""
    if wanted in themes:
        return wanted
    like = [name for name in themes if ("light" in name) == ("light" in wanted)]
    return like[0] if wanted and like else themes[0]


def light_background() -> bool:
    """Whether the terminal says that its background is light: COLORFGBG, `0;15` for instance."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


__all__ = ["RrPyTui", "Settings"]
