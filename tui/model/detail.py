"""Everything about one event: its fields as a tree, its data, and its descriptors' histories."""

from __future__ import annotations

from dataclasses import dataclass, field

from interfaces.abi import EventFlag, Kind, Region, RegionKind
from interfaces.calls import CALLS
from interfaces.decode import Field
from interfaces.decode.field import Style
from interfaces.decode.scalars import quoted
from interfaces.libspec.show import LibFlag, declaration
from interfaces.names.signals import errno_name, errno_text
from tui.model.decode import Decoded, line_of, plain_text, printable, result_of
from tui.model.fds import History
from tui.model.hexdump import hex_lines
from tui.model.text import clock, duration
from tui.model.trace import TraceModel

DATA_LINES = 256
"""Lines of data that a detail shows of each region."""
_ROWS = 4


@dataclass(slots=True)
class Node:
    """A line of the tree. `row` is where following it leads, None for nowhere; `open`: shown unfolded."""

    text: str
    value: str = ""
    children: list[Node] = field(default_factory=list)
    row: int | None = None
    open: bool = True


def detail(model: TraceModel, row: int) -> Node:
    """The tree of one event; IndexError where there is none, TraceError where the trace is damaged."""
    event = model.decode(row)
    line = plain_text(line_of(event, model.reader, model.label))
    result = plain_text(result_of(event, model.label))
    root = Node(f"{line} = {result}" if result else line)
    root.children.append(_facts(model, event))
    if event.is_call or event.is_library:
        arguments = Node("arguments", children=[_field(model, event.row, item) for item in event.fields])
        if arguments.children:
            root.children.append(arguments)
        root.children.append(_result(event))
    root.children.extend(_data(event))
    root.children.extend(_descriptors(model, event))
    return root


def _facts(model: TraceModel, event: Decoded) -> Node:
    view = event.view
    index = model.index
    process = index.pids[index.task_id(event.row)]
    facts = [
        Node("place", f"event {view.number} of domain {view.domain}, row {event.row}"),
        Node("thread", f"{view.task} of process {process} ({printable(model.process_name(view.domain))})"),
        Node("time", f"{clock(view.time_out - index.zero)} since the start, took {duration(event.took)}"),
        Node("caller", f"{view.ip:#x}"),
    ]
    kinds: type[EventFlag] | type[LibFlag] = LibFlag if event.is_library else EventFlag
    flags = [flag.name.lower().replace("_", " ") for flag in kinds if view.flags & flag and flag.name]
    if flags:
        facts.append(Node("flags", ", ".join(flags)))
    if event.is_library and event.function is not None:
        facts.append(Node("declared", printable(declaration(event.function))))
    call = CALLS.get(event.nr) if event.is_call else None
    if call is not None:
        waits = f", may wait for: {call.waits_on}" if call.waits_on else ""
        facts.append(Node("family", f"{call.family}{waits}"))
    return Node("event", children=facts)


def _field(model: TraceModel, row: int, item: Field) -> Node:
    value = item.value
    if (item.name == "fd" or item.type in ("fd", "dirfd")) and value.isdecimal():
        label = model.label(row, int(value))
        value += f"<{printable(label)}>" if label else ""
    children = [_field(model, row, child) for child in item.children]
    return Node(item.name, value, children, open=False)


def _result(event: Decoded) -> Node:
    if event.kind == Kind.RELEASE:
        return Node("result", "comes with a later event of this thread")
    if event.error and event.is_call:
        return Node("result", f"-1 {errno_name(event.error)}: {errno_text(event.error)}")
    return Node("result", plain_text(result_of(event)))


_NAMES = {
    RegionKind.OUT: "written to memory", RegionKind.IN: "read from memory", RegionKind.FILE: "mapped file",
    RegionKind.SEQ: "output number", RegionKind.REGS: "registers", RegionKind.INFO: "signal information",
    RegionKind.PATH: "path", RegionKind.DOMAIN: "domain of the child", RegionKind.SIZE: "segment size",
}  # fmt: skip


def _data(event: Decoded) -> list[Node]:
    call = CALLS.get(event.nr) if event.is_call else None
    parameters = [one.name for one in call.args] if call is not None else []
    if event.is_library and event.function is not None:
        parameters = [one.name for one in event.function.parameters]
    found = []
    for region in event.regions:
        name = _NAMES.get(region.kind, "data")
        if region.arg < len(parameters):
            name = f"{parameters[region.arg]}: {name}"
        found.append(_region(name, region))
    return found


def _region(name: str, region: Region) -> Node:
    size = len(region.data)
    if region.kind in (RegionKind.SEQ, RegionKind.DOMAIN, RegionKind.SIZE) and size == 8:
        return Node(name, str(int.from_bytes(region.data, "little")))
    place = f" at {region.addr:#x}" if region.addr else ""
    lines = [Node(line) for line in hex_lines(region.data[: DATA_LINES * 16], region.addr)]
    if size > DATA_LINES * 16:
        lines.append(Node(f"... {size - DATA_LINES * 16} more bytes: e in this pane saves them all"))
    text = quoted(region.data, Style(strings=48))
    return Node(f"{name}{place}", f"{size} bytes {text}", lines, open=size <= _ROWS * 16)


def _descriptors(model: TraceModel, event: Decoded) -> list[Node]:
    fds = list(dict.fromkeys(event.descriptors))
    return [_history(model, model.history(event.row, fd)) for fd in fds]


def _history(model: TraceModel, life: History) -> Node:
    node = Node(f"descriptor {life.fd}", printable(life.label) or "not known")
    if life.opened is None:
        node.children.append(Node("opened", "before the recording, or inherited"))
    else:
        node.children.append(_place(model, "opened", life.opened))
    node.children.extend(_place(model, "named", row) for row in life.named)
    if life.closed is not None:
        node.children.append(_place(model, "closed", life.closed))
    else:
        node.children.append(Node("closed", "not by a call of this process"))
    return node


def _place(model: TraceModel, what: str, row: int) -> Node:
    event = model.decode(row)
    when = clock(event.view.time_out - model.index.zero)
    return Node(what, f"row {row}, {when}: {plain_text(line_of(event, model.reader))}", row=row)
