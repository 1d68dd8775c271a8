"""Filters over whole blocks find what decoding each event finds: on traces of random calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.tui_trace import region
from interfaces.abi import EVENT_DTYPE, EventFlag, Kind, RegionKind
from interfaces.calls import BY_NAME
from tests.tui.conftest import Story, indexed
from tui.model.columns import BLOCK
from tui.model.query.language import Compare, parse
from tui.model.query.texts import text_of
from tui.model.trace import TraceModel

PATHS = ("/srv/app.db", "/etc/hosts", "/srv/" + "long/" * 70 + "app.db", "/tmp/\udcff.db", "app.db", "/db")
CONTENTS = (b"", b"fox", b"the quick fox", b"x" * 700 + b"fox", b"FOX", b"\xe9t\xe9", b"fo" * 40)
FILTERS = (
    'path ~ "*.db"', "path ~ db", 'path == "/etc/hosts"', "path ~ /^.srv.*db$/", 'path !~ "*.db"',
    'path ~ "*"', 'path ~ "event*"', "path ~ nowhere", 'path ~ "*[\udcff].db"', "path ~ socket",
    'data ~ "fox"', 'data == "fox"', 'data ~ "*k fox"', "data ~ /f[aeiou]x/", "data !~ fox", 'data ~ "\xe9t"',
    'data ~ "zzzzzzzzzz"', 'data ~ "\u20ac"', 'data ~ ""', 'data ~ "needle"',
    "text ~ db", 'text ~ "read(5*"', "text ~ /= -1 E/", "text !~ 5", 'text ~ "*made by 7*"',
    "not path ~ db and (data ~ fox or text ~ hosts)",
)  # fmt: skip


class Teller:
    """Adds random events to a story: files, copies, sockets, children; whole, blocked, in pieces, damaged."""

    def __init__(self, story: Story, seed: int) -> None:
        self.story = story
        self.random = random.Random(seed)
        self.domains = {1: [100, 101]}
        story.domain(1, 100)
        self.call: dict[str, Any] = {"domain": 1, "task": 100}

    def some(self, events: int) -> None:
        """Add at least so many events."""
        tell = (
            self.open, self.open, self.read, self.read, self.read, self.write, self.close, self.close,
            self.copy, self.other, self.two, self.socket, self.begin, self.damaged, self.child,
        )  # fmt: skip
        for _ in range(events):
            domain = self.random.choice(list(self.domains))
            self.call = {"domain": domain, "task": self.random.choice(self.domains[domain])}
            self.random.choice(tell)()
            if self.random.random() < 0.05:
                self.story.writer.flush()

    def fd(self) -> int:
        return self.random.choice((0, 3, 4, 5, 5, 6, 70000, -1))

    def path(self) -> bytes:
        path = self.random.choice(PATHS).encode("utf-8", "surrogateescape")
        return path + self.random.choice((b"\0", b"\0", b"\0junk.db", b""))

    def content(self) -> bytes:
        return self.random.choice(CONTENTS)

    def add(self, name: str, args: tuple[int, ...], result: int, *regions: bytes) -> None:
        """A call; now and then one that blocked, whose inputs are in the event that began it."""
        held = self.random.random() < 0.15
        flags = EventFlag.PRECISE
        payload = b"".join(regions)
        if held:
            begun = b"".join(part for part in regions if part[12] == RegionKind.IN)
            payload = b"".join(part for part in regions if part[12] != RegionKind.IN)
            self.story.call(name, args, payload=begun, kind=Kind.RELEASE, **self.call)
            if self.random.random() < 0.5:
                self.story.call("getpid", domain=1, task=999, result=1)
            flags |= EventFlag.BLOCKED
        self.story.call(name, args, result, payload=payload, flags=flags, **self.call)

    def open(self) -> None:
        result = self.random.choice((3, 4, 5, 6, 70000, -2))
        self.add("openat", (self.random.choice((-100, 4)), 0x7000, 0), result,
                 region(RegionKind.IN, 1, 0x7000, self.path()))  # fmt: skip

    def read(self) -> None:
        data = self.content()
        begin = 0x8000
        for _ in range(self.random.choice((0, 0, 0, 1, 2))):
            part = self.random.choice((data or b".", b"nee"))
            self.piece(begin, part)
            begin += len(part)
            data = b"dle" if part == b"nee" else data
        parts = [region(RegionKind.OUT, 1, begin, data)] if data else []
        if self.random.random() < 0.1:
            fill = self.random.choice((b"zzzzzzzz", b"foxfoxfo"))
            parts.append(region(RegionKind.FILL, 1, 0x9000, (64).to_bytes(8, "little") + fill))
        self.add("read", (self.fd(), 0x8000, 4096), len(data), *parts)

    def piece(self, address: int, data: bytes) -> None:
        """A piece of what the next call reads."""
        self.story.event(Kind.DATA, BY_NAME["read"].number, (), int(Kind.SYSCALL),
                         payload=region(RegionKind.OUT, 1, address, data), **self.call)  # fmt: skip

    def write(self) -> None:
        data = self.content()
        self.add("write", (self.fd(), 0x8000, len(data)), len(data), region(RegionKind.IN, 1, 0x8000, data))

    def close(self) -> None:
        self.add("close", (self.fd(),), self.random.choice((0, 0, -9)))

    def copy(self) -> None:
        new = self.random.choice((4, 5, 6))
        self.add("dup2", (self.fd(), new), self.random.choice((new, -9)))

    def other(self) -> None:
        name, args = self.random.choice((("eventfd2", ()), ("epoll_create1", ()), ("socket", (2, 1))))
        self.add(name, args, self.random.choice((3, 4, 5)))

    def two(self) -> None:
        name = self.random.choice(("sendfile", "epoll_ctl"))
        self.add(name, (self.fd(), self.fd(), self.fd()), 0)

    def socket(self) -> None:
        address = b"\1\0/run/app.db\0"
        self.add(self.random.choice(("connect", "bind")), (self.fd(), 0x7100, len(address)), 0,
                 region(RegionKind.IN, 1, 0x7100, address))  # fmt: skip

    def begin(self) -> None:
        if self.random.random() < 0.5:
            first, last = sorted((self.random.randrange(3, 7), self.random.randrange(3, 7)))
            self.add("close_range", (first, last), 0)
            return
        made = sum(fd << 32 * i for i, fd in enumerate((5, 6))).to_bytes(8, "little")
        self.add("pipe2", (0x7200, 0), 0, region(RegionKind.OUT, 0, 0x7200, made))

    def damaged(self) -> None:
        whole = region(RegionKind.IN, 1, 0x7000, b"/srv/app.db\0") + region(RegionKind.OUT, 1, 0x8000, b"fox")
        cut = self.random.choice((whole[:-9], whole[:12] + b"\xee" + whole[13:], whole + b"odd", whole[:40]))
        name = self.random.choice(("openat", "read", "rename"))
        self.story.call(name, (5, 0x7000), -14, payload=cut, **self.call)

    def child(self) -> None:
        if len(self.domains) > 4:
            self.story.event(Kind.TASK_START, args=(self.random.choice((7, 8)), 7, 0), **self.call)
            return
        domain = len(self.domains) + 1
        self.story.call("fork", (), 100 * domain, **self.call)
        parent = self.call["domain"]
        self.story.domain(domain, 100 * domain, kind="fork", parent=parent, comm=f"child{domain}")
        self.domains[domain] = [100 * domain, 100 * domain + 1]
        self.story.event(Kind.FORK, args=(parent, 100), domain=domain, task=100 * domain)


def fill(story: Story, events: int) -> None:
    """Add so many events of domain 1 that are about nothing."""
    rows = np.zeros(events, EVENT_DTYPE)
    rows["task"], rows["kind"], rows["nr"] = 100, Kind.SYSCALL, BY_NAME["getppid"].number
    rows["time_in"] = rows["time_out"] = story.now + np.arange(events)
    story.now += events
    first = story._counts.get(1, 0)
    story._counts[1] = first + events
    for start in range(0, events, 4096):
        part = rows[start : start + 4096]
        story.writer.add_events(1, first + start, part.tobytes(), b"")


def texts_of(model: TraceModel, row: int) -> dict[str, list[str]]:
    """What conditions compare of one event, decoded: by field."""
    event = model.decode_once(row)
    labels = [label for fd in event.descriptors if (label := model.label(row, fd))]
    kinds = (RegionKind.IN, RegionKind.OUT)
    named = [model.label_made(row)] if event.name in ("connect", "bind") else []
    return {
        "path": event.paths + labels + named,
        "data": [part.data.decode("latin-1") for part in event.regions if part.kind in kinds],
        "text": [text_of(model, row)],
    }


def expected(texts: dict[int, dict[str, list[str]]], text: str) -> list[int]:
    """The rows that pass, by looking at the texts of each."""
    query = parse(text)
    assert query is not None

    def holds(node: object, row: int) -> bool:
        match node:
            case Compare():
                assert node.pattern is not None
                return any(map(node.pattern.test, texts[row][node.field.name]))
            case _ if hasattr(node, "part"):
                return not holds(node.part, row)
            case _:
                every: Callable[[list[bool]], bool] = all if type(node).__name__ == "And" else any
                return every([holds(part, row) for part in node.parts])  # type: ignore[attr-defined]

    return [row for row in texts if holds(query.root, row)]


def compared(model: TraceModel, start: int = 0) -> None:
    """Compare all filters over the rows from `start` on."""
    texts = {row: texts_of(model, row) for row in range(start, model.index.rows)}
    for text in FILTERS:
        view = model.view(parse(text), everything=True)
        model.fill(view)
        found = [row for row in view.rows(0, len(view)) if row >= start]
        assert found == expected(texts, text), text


@pytest.mark.parametrize("seed", range(8))
def test_filters_on_random_traces(tmp_path: Path, seed: int) -> None:
    """GIVEN a trace of random calls WHEN filtered THEN the rows are those of deciding each event alone."""
    story = Story(tmp_path / "t.bin")
    Teller(story, seed).some(220)
    story.close().close()
    with indexed(story.path) as model:
        compared(model)


@pytest.mark.parametrize("seed", range(100, 102))
def test_filters_where_blocks_meet(tmp_path: Path, seed: int) -> None:
    """GIVEN random calls around the end of a block WHEN filtered THEN the block before counts."""
    story = Story(tmp_path / "t.bin")
    teller = Teller(story, seed)
    teller.some(80)
    already = sum(story._counts.values())
    fill(story, BLOCK - already - 100)
    teller.some(160)
    story.close().close()
    with indexed(story.path) as model:
        assert len(model.index.blocks) == 2
        compared(model, BLOCK - 100)


def test_the_random_traces_have_what_they_should(tmp_path: Path) -> None:
    """GIVEN the traces above WHEN looked at THEN each filter finds something in them, and not all."""
    found = dict.fromkeys(FILTERS, 0)
    for seed in range(4):
        story = Story(tmp_path / f"{seed}.bin")
        Teller(story, seed).some(220)
        story.close().close()
        with indexed(story.path) as model:
            for text in FILTERS:
                view = model.view(parse(text), everything=True)
                model.fill(view)
                assert len(view) < model.index.rows
                found[text] += len(view)
    nothing = [text for text, count in found.items() if not count]
    assert nothing == ["path ~ nowhere", 'data ~ "\u20ac"']
