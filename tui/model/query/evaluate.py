"""Which rows a filter lets pass: one block at a time, cheapest conditions first.

Conditions on columns in memory are numpy comparisons over the block. Those on headers read the block's events
from the file, still as arrays. Only what is left then is decoded, event by event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from interfaces.abi import EventFlag, Kind
from interfaces.calls import CALLS
from tui.model.columns import CODES, Block, Mask, code_of, table_of, table_of_kinds
from tui.model.query.bulk import BlockEvents, ChunkSource
from tui.model.query.fields import FAMILIES, FIELDS, LIBRARY, Cost
from tui.model.query.language import And, Compare, Node, Not, Or, Query
from tui.model.query.paths import FD_MASKS, PathMatcher
from tui.model.query.pattern import Pattern
from tui.model.query.texts import DataMatcher, TextMatcher

if TYPE_CHECKING:
    from tui.model.trace import TraceModel

_FLAGS = {"blocked": EventFlag.BLOCKED, "unknown": EventFlag.UNKNOWN,
          "echoed": EventFlag.ECHO_OUT | EventFlag.ECHO_ERR}  # fmt: skip


class _Scope:
    """Rows [start, stop) of a block under evaluation."""

    def __init__(self, source: ChunkSource, block: Block, start: int, stop: int) -> None:
        self.block = block
        self.start = start
        self.stop = stop
        self.events = BlockEvents(source, block, stop)

    @property
    def part(self) -> slice:
        return slice(self.start, self.stop)

    def whole(self, candidates: Mask) -> Mask:
        """The candidates as a mask over the block from its beginning."""
        found = np.zeros(self.stop, np.bool_)
        found[self.start :] = candidates
        return found

    def column(self, name: str, candidates: Mask) -> npt.NDArray[Any]:
        """A column of the events; only the values of the candidates count."""
        return self.events.column(name, self.whole(candidates))[self.part]


class Interrupted(Exception):
    """Whoever wanted to know does not any more."""


Leaf = Callable[[_Scope, Mask], Mask]
"""Which of the candidates pass; what it says of other rows does not count."""


class Evaluator:
    """A filter made ready for one trace. It is quickest for rows in ascending order; any order will do."""

    def __init__(self, model: TraceModel, query: Query) -> None:
        self.query = query
        self.stopped: Callable[[], bool] | None = None
        """Asked now and then; Interrupted is raised when it returns True."""
        self._model = model
        self._index = model.index
        self._source = ChunkSource(model.index)
        self._leaves: dict[Compare, Leaf] = {}
        self._root = query.root

    def mask(self, block: Block, start: int, stop: int, candidates: Mask) -> Mask:
        """Which of the candidates among the rows [start, stop) of a block pass."""
        return self._node(self._root, _Scope(self._source, block, start, stop), candidates)

    def _node(self, node: Node, scope: _Scope, candidates: Mask) -> Mask:
        if not candidates.any():
            return candidates
        self._go_on()
        match node:
            case And(parts):
                for part in sorted(parts, key=cost_of):
                    candidates = self._node(part, scope, candidates)
                return candidates
            case Or(parts):
                found = np.zeros(len(candidates), np.bool_)
                for part in sorted(parts, key=cost_of):
                    found |= self._node(part, scope, candidates & ~found)
                return found
            case Not(part):
                return candidates & ~self._node(part, scope, candidates)
            case Compare():
                leaf = self._leaves.get(node)
                if leaf is None:
                    leaf = self._leaves[node] = self._leaf(node)
                return candidates & leaf(scope, candidates)

    def _go_on(self) -> None:
        if self.stopped is not None and self.stopped():
            raise Interrupted

    def _leaf(self, node: Compare) -> Leaf:
        name = node.field.name
        if name in ("call", "family", "kind", "signal"):
            table = _code_table(name, node.numbers)
            return lambda scope, _: table[scope.block.code[scope.part]]
        if name in ("pid", "tid", "domain", "process"):
            return self._of_task(node)
        if name in _FLAGS:
            bits = int(_FLAGS[name])
            return lambda scope, _: (
                ((scope.block.flags[scope.part] & bits) != 0) & ~_LIBRARY_CODES[scope.block.code[scope.part]]
            )
        simple: dict[str, Callable[[Compare], Leaf]] = {
            "failed": lambda node: lambda scope, _: scope.block.error[scope.part] != 0,
            "errno": _errno,
            "duration": _duration,
            "time": self._time,
            "row": _row,
            "event": lambda node: _header(node, "number"),
            "result": lambda node: _of_calls(_header(node, "result")),
            "ip": lambda node: _header(node, "ip"),
            "arg": _any_argument,
            "fd": _descriptor,
            "path": lambda node: self._decoded(PathMatcher(self._model, _pattern(node), self._go_on)),
            "data": lambda node: self._decoded(DataMatcher(self._model, _pattern(node), self._go_on)),
            "text": lambda node: self._decoded(TextMatcher(self._model, _pattern(node), self._go_on)),
        }
        return simple[name](node)

    @staticmethod
    def _decoded(matcher: PathMatcher | DataMatcher | TextMatcher) -> Leaf:
        def leaf(scope: _Scope, candidates: Mask) -> Mask:
            return matcher.mask(scope.block, scope.events, scope.whole(candidates))[scope.start :]

        return leaf

    def _of_task(self, node: Compare) -> Leaf:
        index, name = self._index, node.field.name
        known: list[Mask] = [np.zeros(0, np.bool_)]

        def leaf(scope: _Scope, _: Mask) -> Mask:
            if len(known[0]) < len(index.tasks):
                known[0] = self._task_table(node, name)
            return known[0][scope.block.task[scope.part]]

        return leaf

    def _task_table(self, node: Compare, name: str) -> Mask:
        index = self._index
        tasks = list(index.tasks)
        if name == "process":
            pattern = _pattern(node)
            return np.array(
                [pattern.match(self._model.process_name(task.domain)) for task in tasks], np.bool_
            )
        values = {
            "pid": lambda: [index.pids[i] for i in range(len(tasks))],
            "tid": lambda: [task.tid for task in tasks],
            "domain": lambda: [task.domain for task in tasks],
        }[name]()
        return compare(np.array(values, np.int64), node.operator, node.numbers[0])

    def _time(self, node: Compare) -> Leaf:
        zero = self._index.zero

        def leaf(scope: _Scope, _: Mask) -> Mask:
            since = scope.block.times(scope.start, scope.stop).astype(np.int64) - zero
            return compare(since, node.operator, node.numbers[0])

        return leaf


def cost_of(node: Node) -> Cost:
    """What the dearest condition of a node needs."""
    match node:
        case And(parts) | Or(parts):
            return max(cost_of(part) for part in parts)
        case Not(part):
            return cost_of(part)
        case Compare(field):
            return field.cost


def uses_decoding(query: Query) -> bool:
    """Whether events must be decoded to decide: then a filter over many takes a while."""
    return cost_of(query.root) == Cost.DECODE


def compare(values: npt.NDArray[Any], operator: str, wanted: float) -> Mask:
    """The comparison of a whole column."""
    match operator:
        case "==":
            return np.asarray(values == wanted)
        case "<":
            return np.asarray(values < wanted)
        case "<=":
            return np.asarray(values <= wanted)
        case ">":
            return np.asarray(values > wanted)
        case _:
            return np.asarray(values >= wanted)


def _code_table(name: str, numbers: tuple[float, ...]) -> Mask:
    wanted = [int(number) for number in numbers]
    if name == "family":
        family = FAMILIES[wanted[0]]
        wanted = [number for number, call in CALLS.items() if call.family == family]
    if name == "kind":
        table = np.zeros((32, CODES // 32), np.bool_)
        table[wanted] = True
        return table.reshape(-1)
    functions = [code_of(Kind.LIBCALL, number - LIBRARY) for number in wanted if number >= LIBRARY]
    kinds = (Kind.SIGNAL, Kind.DEATH) if name == "signal" else (Kind.SYSCALL, Kind.RELEASE)
    return table_of(
        functions + [code_of(kind, number) for kind in kinds for number in wanted if number < LIBRARY]
    )


def _errno(node: Compare) -> Leaf:
    wanted = min(int(node.numbers[0]), 255)
    return lambda scope, _: scope.block.error[scope.part] == wanted


def _duration(node: Compare) -> Leaf:
    wanted = np.float32(node.numbers[0])
    return lambda scope, _: compare(scope.block.took[scope.part], node.operator, float(wanted))


def _row(node: Compare) -> Leaf:
    def leaf(scope: _Scope, _: Mask) -> Mask:
        rows = np.arange(scope.block.first + scope.start, scope.block.first + scope.stop)
        return compare(rows, node.operator, node.numbers[0])

    return leaf


def _header(node: Compare, column: str) -> Leaf:
    wanted = int(node.numbers[0])
    return lambda scope, candidates: compare(scope.column(column, candidates), node.operator, wanted)


_CALL_CODES = table_of_kinds({Kind.SYSCALL, Kind.LIBCALL})
_LIBRARY_CODES = table_of_kinds({Kind.LIBCALL})


def _of_calls(leaf: Leaf) -> Leaf:
    return lambda scope, candidates: leaf(scope, candidates) & _CALL_CODES[scope.block.code[scope.part]]


def _any_argument(node: Compare) -> Leaf:
    wanted = int(node.numbers[0])

    def leaf(scope: _Scope, candidates: Mask) -> Mask:
        found = np.zeros(len(candidates), np.bool_)
        for i in range(6):
            words = scope.column(f"arg{i}", candidates)
            if wanted < 0 or node.operator != "==":
                words = words.view(np.int64)
            found |= compare(words, node.operator, wanted)
        return found

    return leaf


def _descriptor(node: Compare) -> Leaf:
    def leaf(scope: _Scope, candidates: Mask) -> Mask:
        masks = FD_MASKS[scope.block.code[scope.part]]
        found = np.zeros(len(masks), np.bool_)
        for i in range(6):
            has = candidates & ((masks >> np.uint8(i)) & np.uint8(1) != 0)
            if has.any():
                values = scope.column(f"arg{i}", has).astype(np.uint32).view(np.int32)
                found |= has & compare(values, node.operator, node.numbers[0])
        return found

    return leaf


def _pattern(node: Compare) -> Pattern:
    assert node.pattern is not None
    return node.pattern


__all__ = ["FIELDS", "Evaluator", "compare", "cost_of", "uses_decoding"]
