"""A comparison of two traces as rows, and as text and JSON for `rr-py diff`."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tracefile import TraceReader
from tracefile.align import Alignment, Run, Side, align, earliest, pair_threads
from tracefile.threads import ThreadLog
from tui.model.decode import printable
from tui.model.text import clock, count

SHOWN = 400
"""Characters of a string that a line of the comparison shows."""


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line of the comparison: a heading (`title`), or a step with its items (None: none on that side)."""

    title: str = ""
    side: Side = Side.SAME
    alignment: int = 0
    a: int | None = None
    b: int | None = None


class Comparison:
    """All threads of two traces, aligned."""

    def __init__(self, a: TraceReader, b: TraceReader) -> None:
        self.a = a
        self.b = b
        self.alignments: list[Alignment] = []
        self.complete = False
        self._starts: list[int] = []
        self._runs: list[tuple[int, Run | None]] = []
        self._length = 0

    def compute(self, progress: Callable[[], bool] | None = None) -> None:
        """Align thread after thread; `progress` is called now and then and stops by returning False."""
        for pair in pair_threads(self.a, self.b):
            alignment = align(pair, go_on=progress)
            self._append(alignment)
            if progress is not None and not progress():
                return
        self.complete = True

    @property
    def same(self) -> bool:
        """Whether nothing that matters differs."""
        return all(alignment.first_difference is None for alignment in self.alignments)

    @property
    def first(self) -> Alignment | None:
        """The alignment with the difference that happened first."""
        return earliest(self.alignments)

    def __len__(self) -> int:
        return self._length

    def row(self, position: int) -> DiffRow:
        """A line; IndexError where there is none."""
        if not 0 <= position < self._length:
            raise IndexError(position)
        at = bisect.bisect_right(self._starts, position) - 1
        number, run = self._runs[at]
        if run is None:
            alignment = self.alignments[number]
            return DiffRow(heading(alignment), alignment=number)
        step = position - self._starts[at]
        return _step(number, run, step)

    def position_of_first(self) -> int | None:
        """The line of the difference that happened first."""
        alignment = self.first
        if alignment is None:
            return None
        number = next(i for i, one in enumerate(self.alignments) if one is alignment)
        run = alignment.first_difference
        for start, (of, own) in zip(self._starts, self._runs, strict=True):
            if of == number and own == run:
                return start
        return None

    def next_difference(self, position: int, step: int) -> int | None:
        """The beginning of the next (1) or previous (-1) run that differs."""
        starts = [
            start
            for start, (_, run) in zip(self._starts, self._runs, strict=True)
            if run is not None and run.side != Side.SAME
        ]
        at = bisect.bisect_right(starts, position) if step > 0 else bisect.bisect_left(starts, position) - 1
        return starts[at] if 0 <= at < len(starts) else None

    def text(self, row: DiffRow, left: bool, strings: int = 64) -> str:
        """One side of a line, without what differs between recordings anyway."""
        pair = self.alignments[row.alignment].pair
        log, item = (pair.a, row.a) if left else (pair.b, row.b)
        return printable(log.text(item, strings)) if log is not None and item is not None else ""

    def event(self, row: DiffRow, left: bool) -> tuple[int, int] | None:
        """(domain, event) of one side of a line."""
        pair = self.alignments[row.alignment].pair
        log, item = (pair.a, row.a) if left else (pair.b, row.b)
        return (log.thread.domain, int(log.numbers[item])) if log is not None and item is not None else None

    def _append(self, alignment: Alignment) -> None:
        number = len(self.alignments)
        self.alignments.append(alignment)
        for run in (None, *alignment.runs):
            self._starts.append(self._length)
            self._runs.append((number, run))
            self._length += run.count if run is not None else 1


def _step(number: int, run: Run, step: int) -> DiffRow:
    a = None if run.side == Side.ONLY_B else run.a + step
    b = None if run.side == Side.ONLY_A else run.b + step
    return DiffRow("", run.side, number, a, b)


def heading(alignment: Alignment) -> str:
    """Which thread, and what came of it."""
    name = alignment.pair.name
    if alignment.pair.a is None or alignment.pair.b is None:
        return f"{name}: only in {'A' if alignment.pair.b is None else 'B'}"
    if alignment.first_difference is None:
        return f"{name}: {count(alignment.same)} events, no difference"
    return f"{name}: {count(alignment.same)} events the same, {count(alignment.different)} different"


def report(comparison: Comparison, context: int, most: int) -> Iterator[str]:
    """The comparison as lines: the first difference with `context` lines before it, then each thread's, at
    most `most` differing lines a thread."""
    for name, reader in (("A", comparison.a), ("B", comparison.b)):
        yield f"{name} {printable(str(reader.path))}: {count(reader.total_events)} events"
        if reader.stopped:
            yield f"  {reader.stopped}"
    first = comparison.first
    if first is None:
        yield "no difference in what matters"
    for alignment in sorted(comparison.alignments, key=lambda one: one is not first):
        if alignment.first_difference is None:
            continue
        yield ""
        yield ("first difference: " if alignment is first else "") + heading(alignment)
        yield from _differences(alignment, context, most)
    same = sum(alignment.first_difference is None for alignment in comparison.alignments)
    if same and first is not None:
        yield ""
        yield f"{count(same)} more threads have no difference"


def _differences(alignment: Alignment, context: int, most: int) -> Iterator[str]:
    shown = 0
    pair = alignment.pair
    previous: Run | None = None
    for run in alignment.runs:
        if run.side == Side.SAME:
            previous = run
            continue
        if shown >= most:
            break
        if previous is not None:
            yield f"  @@ A {_number(pair.a, run.a)}, B {_number(pair.b, run.b)}{_when(pair.a, run.a)}"
            for step in range(max(previous.count - context, 0), previous.count):
                yield f"    {_text(pair.a, previous.a + step)}"
            previous = None
        for step in range(min(run.count, most - shown)):
            if run.side in (Side.CHANGED, Side.ONLY_A):
                yield f"  - {_text(pair.a, run.a + step)}"
            if run.side in (Side.CHANGED, Side.ONLY_B):
                yield f"  + {_text(pair.b, run.b + step)}"
        shown += min(run.count, most - shown)
    if alignment.different > shown:
        yield f"  ... {count(alignment.different - shown)} more differing events: --limit shows more"


def _number(log: ThreadLog | None, item: int) -> str:
    if log is None or not len(log):
        return "-"
    if item >= len(log):
        return "end"
    return f"event {log.thread.domain}:{int(log.numbers[item])}"


def _when(log: ThreadLog | None, item: int) -> str:
    if log is None or item >= len(log):
        return ""
    zero = min(info.time for info in log.reader.domains.values())
    return f", {clock(log.event(item).time_out - zero)} s after the start of A"


def _text(log: ThreadLog | None, item: int) -> str:
    return printable(log.text(item, SHOWN)) if log is not None else ""


def as_json(comparison: Comparison, most: int) -> dict[str, Any]:
    """The comparison as an object."""
    first = comparison.first
    return {
        "a": str(comparison.a.path),
        "b": str(comparison.b.path),
        "same": comparison.same,
        "first": comparison.alignments.index(first) if first is not None else None,
        "threads": [_thread(alignment, most) for alignment in comparison.alignments],
    }


def _thread(alignment: Alignment, most: int) -> dict[str, Any]:
    differences: list[dict[str, Any]] = []
    for run in alignment.runs:
        for step in range(run.count if run.side != Side.SAME else 0):
            if len(differences) >= most:
                break
            row = _step(0, run, step)
            differences.append(
                {
                    "side": run.side.name.lower(),
                    "a": _item(alignment.pair.a, row.a),
                    "b": _item(alignment.pair.b, row.b),
                }
            )
    return {
        "thread": alignment.pair.name,
        "a": _ids(alignment.pair.a),
        "b": _ids(alignment.pair.b),
        "same": alignment.same,
        "different": alignment.different,
        "differences": differences,
        "left_out": alignment.different - len(differences),
    }


def _item(log: ThreadLog | None, item: int | None) -> dict[str, Any] | None:
    if log is None or item is None:
        return None
    return {"event": int(log.numbers[item]), "text": log.text(item, SHOWN)}


def _ids(log: ThreadLog | None) -> dict[str, int] | None:
    return {"domain": log.thread.domain, "task": log.thread.task} if log is not None else None
