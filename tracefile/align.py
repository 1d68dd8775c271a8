"""Two recordings side by side: which processes and threads correspond, and where they first differ.

    for pair in pair_threads(a, b):
        alignment = align(pair)
        print(alignment.first_difference)

Threads are compared one by one, so that another schedule is no difference; neither are addresses, ids and
times. Processes correspond when they were made in the same order by corresponding ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import IntEnum

from interfaces.abi import Kind
from tracefile.domains import DomainInfo
from tracefile.reader import TraceReader
from tracefile.threads import ThreadLog, threads_of

_WINDOWS = (32, 256, 2048)
"""How far to look ahead, on both sides, for where two threads agree again."""
_AGREE = 3
"""Equal events in a row that count as agreement, where the window holds more."""


class Side(IntEnum):
    """How two items relate."""

    SAME = 0
    CHANGED = 1
    ONLY_A = 2
    ONLY_B = 3


@dataclass(frozen=True, slots=True)
class Run:
    """`count` steps of one kind; `a` and `b` are the items where it begins in either thread."""

    side: Side
    a: int
    b: int
    count: int


@dataclass(frozen=True, slots=True)
class ThreadPair:
    """Corresponding threads; one of them None where there is none. `number` counts threads of a process."""

    a: ThreadLog | None
    b: ThreadLog | None
    process: int
    number: int

    @property
    def name(self) -> str:
        """Which thread of which process, with its program."""
        log = self.a if self.a is not None else self.b
        assert log is not None
        info = log.reader.domains[log.thread.domain]
        program = "".join(mark if mark.isprintable() else "?" for mark in info.comm or info.exe) or "fork"
        thread = f"thread {self.number}" if self.number else "main thread"
        return f"{thread} of process {self.process} ({program})"


@dataclass(slots=True)
class Alignment:
    """Two threads aligned: runs that cover both completely (unless `stopped`: then up to there)."""

    pair: ThreadPair
    runs: list[Run] = field(default_factory=list)
    stopped: bool = False

    @property
    def first_difference(self) -> Run | None:
        """The first run that is not SAME."""
        return next((run for run in self.runs if run.side != Side.SAME), None)

    @property
    def same(self) -> int:
        """Number of items that correspond."""
        return sum(run.count for run in self.runs if run.side == Side.SAME)

    @property
    def different(self) -> int:
        """Number of items that do not."""
        return sum(run.count for run in self.runs if run.side != Side.SAME)

    def add(self, side: Side, a: int, b: int, count: int) -> None:
        """Append steps; those that go on with the last run lengthen it."""
        if not count:
            return
        last = self.runs[-1] if self.runs else None
        if last is not None and last.side == side:
            self.runs[-1] = Run(side, last.a, last.b, last.count + count)
        else:
            self.runs.append(Run(side, a, b, count))


def pair_domains(a: TraceReader, b: TraceReader) -> list[tuple[DomainInfo | None, DomainInfo | None]]:
    """Corresponding domains, parents before children: by the order in which corresponding ones made them."""
    children_a, children_b = _children(a), _children(b)
    found: list[tuple[DomainInfo | None, DomainInfo | None]] = []
    waiting: list[tuple[int | None, int | None]] = [(0, 0)]
    while waiting:
        parent_a, parent_b = waiting.pop(0)
        of_a = children_a.get(parent_a, []) if parent_a is not None else []
        of_b = children_b.get(parent_b, []) if parent_b is not None else []
        for one, other in _matched(of_a, of_b):
            found.append((one, other))
            waiting.append((one.domain if one else None, other.domain if other else None))
    return found


def _children(reader: TraceReader) -> dict[int, list[DomainInfo]]:
    children: dict[int, list[DomainInfo]] = {}
    for number in sorted(reader.domains):
        info = reader.domains[number]
        parent = info.parent_domain if info.parent_domain in reader.domains else 0
        children.setdefault(parent if parent != number else 0, []).append(info)
    return children


def _matched(
    of_a: list[DomainInfo], of_b: list[DomainInfo]
) -> Iterator[tuple[DomainInfo | None, DomainInfo | None]]:
    """Children of two corresponding domains, those with the same program in the same order together."""
    names_a = [(info.kind, info.exe) for info in of_a]
    names_b = [(info.kind, info.exe) for info in of_b]
    matcher = SequenceMatcher(None, names_a, names_b, autojunk=False)
    for tag, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        count = max(a_to - a_from, b_to - b_from) if tag in ("equal", "replace") else 0
        for i in range(count):
            one = of_a[a_from + i] if a_from + i < a_to else None
            other = of_b[b_from + i] if b_from + i < b_to else None
            yield one, other
        if tag == "delete":
            yield from ((info, None) for info in of_a[a_from:a_to])
        if tag == "insert":
            yield from ((None, info) for info in of_b[b_from:b_to])


def pair_threads(a: TraceReader, b: TraceReader) -> Iterator[ThreadPair]:
    """Corresponding threads of corresponding domains, each in the order of their first events."""
    for process, (one, other) in enumerate(pair_domains(a, b), 1):
        logs_a = threads_of(a, one.domain) if one is not None else []
        logs_b = threads_of(b, other.domain) if other is not None else []
        for number in range(max(len(logs_a), len(logs_b))):
            yield ThreadPair(
                logs_a[number] if number < len(logs_a) else None,
                logs_b[number] if number < len(logs_b) else None,
                process,
                number,
            )


def align(
    pair: ThreadPair, *, first_only: bool = False, go_on: Callable[[], bool] | None = None
) -> Alignment:
    """Align two threads; with `first_only` up to the first difference (and where they agree again).

    `go_on` is asked now and then, and stops the work by returning False.
    """
    found = Alignment(pair)
    a, b = pair.a, pair.b
    if a is None or b is None:
        found.add(Side.ONLY_A, 0, 0, len(a) if a is not None else 0)
        found.add(Side.ONLY_B, 0, 0, len(b) if b is not None else 0)
        return found
    at_a = at_b = 0
    while at_a < len(a) or at_b < len(b):
        same = _common(a, at_a, b, at_b, go_on)
        found.add(Side.SAME, at_a, at_b, same)
        at_a, at_b = at_a + same, at_b + same
        if go_on is not None and not go_on():
            found.stopped = True
            break
        if at_a < len(a) or at_b < len(b):
            at_a, at_b = _resume(found, a, at_a, b, at_b)
            if first_only:
                found.stopped = at_a < len(a) or at_b < len(b)
                break
    return found


def equal(a: ThreadLog, i: int, b: ThreadLog, j: int) -> bool:
    """Whether two items are the same in what matters."""
    raw_a, raw_b = a.raw(i), b.raw(j)
    if raw_a == raw_b:
        return a.event(i).kind not in _NAMED or a.text(i) == b.text(j)
    return raw_a[:2] == raw_b[:2] and a.text(i) == b.text(j)


_NAMED = frozenset({Kind.EXEC, Kind.EXECED})
"""Kinds whose text has more than the event: the program that runs."""


def _common(a: ThreadLog, i: int, b: ThreadLog, j: int, go_on: Callable[[], bool] | None) -> int:
    """How many items are the same from here on."""
    count = 0
    most = min(len(a) - i, len(b) - j)
    while count < most and equal(a, i + count, b, j + count):
        count += 1
        if go_on is not None and count % 4096 == 0 and not go_on():
            break
    return count


def _resume(found: Alignment, a: ThreadLog, i: int, b: ThreadLog, j: int) -> tuple[int, int]:
    """Tell how the threads differ from here on, up to where they agree again."""
    for window in _WINDOWS:
        texts_a = [a.text(k) for k in range(i, min(i + window, len(a)))]
        texts_b = [b.text(k) for k in range(j, min(j + window, len(b)))]
        matcher = SequenceMatcher(None, texts_a, texts_b, autojunk=False)
        least = min(_AGREE, len(texts_a), len(texts_b))
        for block in matcher.get_matching_blocks():
            if block.size >= max(least, 1) and (block.a or block.b):
                _tell(found, a, i, i + block.a, b, j, j + block.b)
                return i + block.a, j + block.b
    end_a, end_b = min(i + _WINDOWS[-1], len(a)), min(j + _WINDOWS[-1], len(b))
    _tell(found, a, i, end_a, b, j, end_b)
    return end_a, end_b


def _tell(found: Alignment, a: ThreadLog, i: int, end_a: int, b: ThreadLog, j: int, end_b: int) -> None:
    """Add what differs: items of one call beside each other, others alone."""
    names_a = [_name(a, k) for k in range(i, end_a)]
    names_b = [_name(b, k) for k in range(j, end_b)]
    matcher = SequenceMatcher(None, names_a, names_b, autojunk=False)
    for tag, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if tag == "equal":
            for k in range(a_to - a_from):
                same = a.text(i + a_from + k) == b.text(j + b_from + k)
                found.add(Side.SAME if same else Side.CHANGED, i + a_from + k, j + b_from + k, 1)
        else:
            found.add(Side.ONLY_A, i + a_from, j + b_from, a_to - a_from)
            found.add(Side.ONLY_B, i + a_to, j + b_from, b_to - b_from)


def _name(log: ThreadLog, i: int) -> tuple[int, int]:
    view = log.event(i)
    return view.kind, view.nr


def earliest(alignments: Iterable[Alignment]) -> Alignment | None:
    """The alignment whose first difference happened first: by time since the start of its recording."""
    best: tuple[int, Alignment] | None = None
    for alignment in alignments:
        run = alignment.first_difference
        if run is None:
            continue
        when = _since_start(alignment.pair, run)
        if best is None or when < best[0]:
            best = (when, alignment)
    return best[1] if best else None


def _since_start(pair: ThreadPair, run: Run) -> int:
    """When a run begins, nanoseconds since its recording began; the earlier of both sides."""
    found = []
    for log, at in ((pair.a, run.a), (pair.b, run.b)):
        if log is not None and len(log):
            zero = min(info.time for info in log.reader.domains.values())
            found.append(max(log.event(min(at, len(log) - 1)).time_out - zero, 0))
    return min(found, default=0)
