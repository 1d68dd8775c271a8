"""Recording and watching at once: `rr-py record --tui -- PROGRAM`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, RichLog

from tui.app import RrPyTui
from tui.focus import focus_now
from tui.model.address import Address
from tui.model.recording import Recording
from tui.model.trace import TraceModel
from tui.run import check_terminal, run_application

_LINES = 20_000
_IDLE = "o: type to the program"
_ACTIVE = "Enter sends to the program, Esc leaves"


class TypeIn(Input):
    """The line that is typed to the program."""

    def on_focus(self) -> None:
        self.placeholder = _ACTIVE

    def on_blur(self) -> None:
        self.placeholder = _IDLE

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.leave_output", "Back to the events", show=False, id="output.leave"),
        Binding("ctrl+d", "app.end_input", "End of input", show=False, id="output.end"),
        Binding("ctrl+c", "app.interrupt", "Interrupt the program", show=False, id="output.interrupt"),
    ]


class Output(Vertical):
    """The program's output, and a line to type to it."""

    DEFAULT_CSS = """
    Output { height: 12; border-top: solid $accent; display: none; }
    Output.open { display: block; }
    Output RichLog { height: 1fr; background: $surface; scrollbar-size-vertical: 1; }
    """

    def compose(self) -> ComposeResult:
        log = RichLog(id="output-log", max_lines=_LINES, wrap=True, markup=False)
        log.can_focus = False
        yield log
        yield TypeIn(id="type-in", placeholder=_IDLE, compact=True)


class LiveTui(RrPyTui):
    """Shows a recording while it is made."""

    def __init__(self, model: TraceModel, recording: Recording) -> None:
        super().__init__(model, Address(model.path))
        self.recording = recording
        self.following = True
        self._line = ""

    def compose_below(self) -> ComposeResult:
        yield Output(id="output")

    def on_mount(self) -> None:
        self.detail.display = False
        self.query_one(Output).add_class("open")
        self.run_worker(self._pump, thread=True, group="output")

    def action_output(self) -> None:
        pane = self.query_one(Output)
        if pane.has_class("open") and not self.query_one(TypeIn).has_focus:
            focus_now(self.query_one(TypeIn))
            return
        pane.toggle_class("open")
        self._focus_list()

    def action_leave_output(self) -> None:
        focus_now(self.events)

    def action_end_input(self) -> None:
        self.recording.write_input("\x04")

    def action_interrupt(self) -> None:
        self.recording.write_input("\x03")

    @on(Input.Submitted, "#type-in")
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        self.recording.write_input(event.value + "\n")
        event.input.value = ""

    def on_resize(self, event: events.Resize) -> None:
        self.recording.resize(event.size.width, 11)

    def _pump(self) -> None:
        status = self.recording.pump(lambda text: self.hand_over(self._take, text))
        self.hand_over(self._ended, status)

    def _take(self, text: str) -> None:
        """Show output, line by line; what is not a whole line yet waits."""
        log = self.query_one("#output-log", RichLog)
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            log.write(Text.from_ansi(line.rstrip("\r").rpartition("\r")[2]))

    def _ended(self, status: int | None) -> None:
        if self._line:
            self._take("\n")
        if status is None:
            return
        text = f"ended with status {status}" if status >= 0 else f"was killed by signal {-status}"
        self.notify(f"the program {text}", timeout=6)


def record_and_watch(options: Sequence[str], command: Sequence[str], trace: Path | None) -> int:
    """Record a program and browse the trace meanwhile; the recorder's exit status, negative for a signal."""
    check_terminal()
    recording = Recording(options, command, trace)
    try:
        with recording.wait_for_trace() as model:
            run_application(LiveTui(model, recording))
    finally:
        status = recording.close()
    return status
