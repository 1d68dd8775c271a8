"""The line at the bottom in which searches, filters, places and names are typed, with proposals above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from tui.focus import focus_now
from tui.model.query.complete import Completion

_PROPOSALS = 8

Propose = Callable[[str, int], Sequence[Completion]]
Check = Callable[[str], str]
"""What is wrong with a text; empty for nothing."""


class PromptInput(Input):
    """An input whose up, down and tab belong to the proposals and to what was typed before.

    They are taken here, not by bindings, so that they act before the next key that is typed.
    """

    async def _on_key(self, event: events.Key) -> None:
        prompt = self.parent
        if isinstance(prompt, Prompt) and event.key in ("tab", "up", "down", "escape"):
            event.stop()
            event.prevent_default()
            match event.key:
                case "tab":
                    prompt.complete()
                case "escape":
                    prompt.cancel()
                case key:
                    prompt.move(1 if key == "down" else -1)


class Prompt(Vertical):
    """Asks for one text at a time."""

    DEFAULT_CSS = """
    Prompt { dock: bottom; height: auto; display: none; background: $panel; margin-bottom: 1; }
    Prompt.open { display: block; }
    Prompt OptionList { height: auto; max-height: 8; border: none; background: $panel; display: none; }
    Prompt.proposing OptionList { display: block; }
    Prompt Label { width: 1fr; color: $text-muted; }
    Prompt Input { border: none; height: 1; padding: 0; background: $surface; }
    Prompt.right Input { color: $text-success; }
    Prompt.wrong Input { color: $text-error; }
    """

    class Answered(Message):
        """A text was entered."""

        def __init__(self, asking: str, text: str) -> None:
            super().__init__()
            self.asking = asking
            self.text = text

    class Left(Message):
        """The question was left without an answer."""

    def __init__(self) -> None:
        super().__init__(id="prompt")
        self.asking = ""
        self._title = ""
        self._propose: Propose | None = None
        self._check: Check | None = None
        self._found: list[Completion] = []
        self._before: dict[str, list[str]] = {}
        self._at = 0

    def compose(self) -> ComposeResult:
        options = OptionList(id="proposals")
        options.can_focus = False
        yield options
        yield Label("", id="prompt-title", markup=False)
        yield PromptInput(id="prompt-input", select_on_focus=False, compact=True)

    def ask(
        self,
        asking: str,
        title: str,
        text: str = "",
        *,
        check: Check | None = None,
        propose: Propose | None = None,
    ) -> None:
        """Open with a question; the answer comes as `Answered`."""
        self.asking, self._title = asking, title
        self._check, self._propose = check, propose
        self._at = len(self._before.get(asking, []))
        self.add_class("open")
        entry = self.query_one(PromptInput)
        entry.value = text
        entry.cursor_position = len(text)
        focus_now(entry)
        self._update(text)

    def close(self) -> None:
        """Disappear."""
        self.asking = ""
        self._found = []
        self.remove_class("open", "proposing", "right", "wrong")

    def cancel(self) -> None:
        """Close without an answer."""
        self.close()
        self.post_message(self.Left())

    def complete(self) -> None:
        """Take the highlighted proposal."""
        options = self.query_one(OptionList)
        if not self._found:
            return
        chosen = self._found[options.highlighted or 0]
        entry = self.query_one(PromptInput)
        text = entry.value
        space = "" if text[chosen.end : chosen.end + 1] == " " else " "
        entry.value = text[: chosen.start] + chosen.text + space + text[chosen.end :]
        entry.cursor_position = chosen.start + len(chosen.text) + 1

    def move(self, step: int) -> None:
        """To another proposal, or where there is none, to a text entered before."""
        options = self.query_one(OptionList)
        if self._found:
            options.highlighted = ((options.highlighted or 0) + step) % len(self._found)
            return
        earlier = self._before.get(self.asking, [])
        self._at = max(0, min(self._at + step, len(earlier)))
        entry = self.query_one(PromptInput)
        entry.value = earlier[self._at] if self._at < len(earlier) else ""
        entry.cursor_position = len(entry.value)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.asking:
            self._update(event.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value
        if self._check is not None and self._check(text):
            return
        asking = self.asking
        if text:
            earlier = self._before.setdefault(asking, [])
            if text in earlier:
                earlier.remove(text)
            earlier.append(text)
        self.close()
        self.post_message(self.Answered(asking, text))

    @on(OptionList.OptionSelected)
    def _picked(self, event: OptionList.OptionSelected) -> None:
        """A click on a proposal."""
        event.stop()
        self.query_one(OptionList).highlighted = event.option_index
        self.complete()
        focus_now(self.query_one(PromptInput))

    def _update(self, text: str) -> None:
        wrong = self._check(text) if self._check is not None else ""
        self.set_class(bool(wrong), "wrong")
        self.set_class(bool(text) and not wrong and self._check is not None, "right")
        self.query_one("#prompt-title", Label).update(wrong or self._title)
        entry = self.query_one(PromptInput)
        self._found = (
            list(self._propose(text, entry.cursor_position))[:_PROPOSALS] if self._propose is not None else []
        )
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            [
                Option(f"{item.text}  [dim]{item.help}[/dim]" if item.help else item.text)
                for item in self._found
            ]
        )
        if self._found:
            options.highlighted = 0
        self.set_class(bool(self._found), "proposing")
