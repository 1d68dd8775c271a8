"""The one list of what can be done: keys, command palette and help are made from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """Something the user can ask for.

    `id` is what the keymap file names; `keys` as Textual writes them, separated by commas; `call` is the
    application's action; `group` is the heading in the help.
    """

    id: str
    keys: str
    call: str
    text: str
    group: str
    palette: bool = True


MOVE, FIND, PLACES, LOOK, SCREENS, TIMELINE, OTHER = (
    "Moving in lists",
    "Finding",
    "Places",
    "Looking into an event",
    "Screens",
    "Timeline",
    "Everything else",
)

ACTIONS: tuple[Action, ...] = (
    Action("screen.events", "1", "screen('events')", "Events", SCREENS),
    Action("screen.timeline", "2", "screen('timeline')", "Timeline", SCREENS),
    Action("screen.processes", "3", "screen('processes')", "Processes", SCREENS),
    Action("screen.hangs", "4", "screen('hangs')", "Hangs", SCREENS),
    Action("screen.diff", "5", "screen('diff')", "Comparison with another trace", SCREENS),
    Action("find.search", "slash", "ask('search')", "Search the lines: text, or /regex/", FIND),
    Action("find.next", "n", "hit(1)", "Next hit", FIND),
    Action("find.previous", "N", "hit(-1)", "Previous hit", FIND),
    Action("find.filter", "f", "ask('filter')", "Filter: show only some events", FIND),
    Action("find.terms", "F", "terms", "Make a filter of this event", FIND),
    Action("find.clear", "escape", "clear", "Take the search or the filter away", FIND),
    Action("find.all", "a", "everything", "Show all kinds of events, or only calls and signals", FIND),
    Action("find.failed", "w", "next_failed(1)", "Next failed call", FIND),
    Action("find.failed_back", "W", "next_failed(-1)", "Previous failed call", FIND),
    Action("find.slow", "u", "next_slow(1)", "Next slow call (10 ms or more)", FIND),
    Action("find.slow_back", "U", "next_slow(-1)", "Previous slow call", FIND),
    Action("go.to", "colon", "ask('goto')", "Go to a row, PID:EVENT, or +TIME", PLACES),
    Action("go.thread_next", "right_square_bracket", "same_thread(1)", "Next event of this thread", PLACES),
    Action(
        "go.thread_previous",
        "left_square_bracket",
        "same_thread(-1)",
        "Previous event of this thread",
        PLACES,
    ),
    Action("go.back", "less_than_sign,alt+left", "travel(-1)", "Back to where you were", PLACES),
    Action("go.forward", "greater_than_sign,alt+right", "travel(1)", "Forward again", PLACES),
    Action("go.mark", "m", "mark", "Set a mark: a letter follows", PLACES),
    Action("go.to_mark", "apostrophe", "to_mark", "Go to a mark: a letter follows", PLACES),
    Action("go.bookmark", "b", "ask('bookmark')", "Name this event; kept beside the trace", PLACES),
    Action("go.bookmarks", "B", "bookmarks", "List of marks and bookmarks", PLACES),
    Action("look.detail", "d", "toggle_detail", "Show or hide the detail", LOOK),
    Action("look.stack", "s", "look('stack')", "Stack at this event, by replay", LOOK),
    Action("look.registers", "r", "look('registers')", "Registers at this event, by replay", LOOK),
    Action("look.threads", "T", "look('threads')", "Threads at this event, by replay", LOOK),
    Action("look.memory", "x", "ask('memory')", "Memory at an address, by replay", LOOK),
    Action("list.left", "left", "shift(-8)", "Left", MOVE, False),
    Action("list.right", "right", "shift(8)", "Right", MOVE, False),
    Action("list.columns", "c", "columns", "Choose and size columns", LOOK),
    Action("time.in", "plus,equals_sign", "zoom(1)", "Zoom in", TIMELINE),
    Action("time.out", "minus", "zoom(-1)", "Zoom out", TIMELINE),
    Action("time.all", "0", "zoom(0)", "The whole run", TIMELINE),
    Action("time.pin", "p", "pin", "Keep this thread on top, or no longer", TIMELINE),
    Action("hangs.environment", "v", "environment(1)", "Next environment", "Hangs"),
    Action("hangs.environment_back", "V", "environment(-1)", "Previous environment", "Hangs"),
    Action("copy.line", "y", "copy('line')", "Copy the line", OTHER),
    Action("copy.address", "Y", "copy('address')", "Copy the address of this place", OTHER),
    Action("export", "e", "ask('export')", "Export the shown events (.txt, .jsonl, .csv)", OTHER),
    Action("live.follow", "G", "follow", "Follow a trace that grows", OTHER),
    Action("live.output", "o", "output", "The program's output (record --tui)", OTHER),
    Action("theme", "t", "next_theme", "Next theme", OTHER),
    Action("help", "question_mark,f1", "help", "Help", OTHER),
    Action("quit", "q", "quit", "Quit", OTHER),
)

BY_ID = {action.id: action for action in ACTIONS}

LIST_KEYS: tuple[tuple[str, str, str, str], ...] = (
    ("list.up", "up,k", "cursor(-1)", "One up"),
    ("list.down", "down,j", "cursor(1)", "One down"),
    ("list.page_up", "pageup,ctrl+u", "page(-1)", "A page up"),
    ("list.page_down", "pagedown,space", "page(1)", "A page down"),
    ("list.first", "home,g", "first", "To the first"),
    ("list.last", "end", "last", "To the last"),
    ("list.choose", "enter", "choose", "Open: detail, or the event it stands for"),
)
"""(id, keys, action, text) of what every list understands."""

IDS = (*BY_ID, *(row[0] for row in LIST_KEYS))
"""What a key file may name."""

KEY_NAMES = {
    "slash": "/", "colon": ":", "right_square_bracket": "]", "left_square_bracket": "[",
    "less_than_sign": "<", "greater_than_sign": ">", "apostrophe": "'", "plus": "+", "equals_sign": "=",
    "minus": "-", "question_mark": "?", "space": "Space", "escape": "Esc", "enter": "Enter",
    "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End", "up": "↑", "down": "↓",
    "left": "←", "right": "→", "tab": "Tab", "f1": "F1",
}  # fmt: skip
"""Keys as people write them."""


def shown_keys(keys: str) -> str:
    """`n`, `<, alt+←`: keys as the help writes them."""
    return " ".join("+".join(KEY_NAMES.get(part, part) for part in key.split("+")) for key in keys.split(","))
