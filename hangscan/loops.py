"""Event loops by their heartbeat: threads that keep coming back to one wait; and their actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from hangscan.blame import is_library, loop_of
from hangscan.knowledge import Knowledge, Pattern
from hangscan.library import LibraryCalls
from hangscan.log import DomainLog
from hangscan.model import Action, Operation
from hangscan.operations import EPOLLS, FUTEX, NAPS, WAITS
from hangscan.rounds import in_one_loop
from interfaces.abi import Kind
from replayer.backtrace import StackFrame

_FUTEX_WAITS = (0, 9, 11)
_LEAST = 2
_SAMPLES = 4
_ALL_OF = 12
PLAIN = "plain loop"
LIBRARY_WAIT = -1
"""In place of a call's number: a library function in which loops wait."""
FRAMES = "frame loop"
FRAME_SLEEP = -2
"""In place of a call's number: short sleeps, as a game has between two frames."""
_FRAME_NS = 50_000_000
_LEAST_FRAMES = 10


@dataclass(slots=True)
class WaitGroup:
    """Waits of one thread that look alike: same call, same set of descriptors. (Not the same address: the C
    library has a second place for each call, for programs with threads.)

    `stacks` are those that were taken; `toolkit` is set for idle waits of a loop, `pattern` for waits that
    block; `depth` counts the frames from the outermost to the loop's own, inclusive, in `stack` (of nested
    loops that of the outermost).
    """

    task: int
    nr: int
    argument: int
    events: list[int]
    stacks: dict[int, tuple[StackFrame, ...]] = field(default_factory=dict)
    toolkit: str = ""
    pattern: Pattern | None = None
    depth: int = 0
    stack: tuple[StackFrame, ...] = ()

    def samples(self) -> list[int]:
        """Events whose stacks tell what this is."""
        if len(self.events) <= _ALL_OF:
            return list(self.events)
        step = len(self.events) / _SAMPLES
        return sorted({self.events[int(step * index)] for index in range(_SAMPLES)} | {self.events[-1]})

    @property
    def idle(self) -> bool:
        """Whether these are the idle waits of a loop."""
        return bool(self.toolkit)


def groups_of(
    log: DomainLog, with_futexes: bool, library: LibraryCalls | None = None
) -> dict[int, list[WaitGroup]]:
    """The waits of every thread, grouped; futex waits only where a toolkit may idle in one."""
    events = log.events
    chosen = (events["kind"] == Kind.SYSCALL) & np.isin(events["nr"], list(WAITS))
    if with_futexes:
        operation = events["args"][:, 1] & np.uint64(127)
        chosen |= (
            (events["kind"] == Kind.SYSCALL) & (events["nr"] == FUTEX) & np.isin(operation, _FUTEX_WAITS)
        )
    found: dict[tuple[int, int, int], WaitGroup] = {}
    for number in np.flatnonzero(chosen).tolist():
        row = events[number]
        nr = int(row["nr"])
        argument = int(row["args"][0])
        if nr not in EPOLLS and nr in WAITS and nr != 7 and nr != 271:
            argument = int(row["args"][1])
        key = (int(row["task"]), nr, argument)
        group = found.get(key)
        if group is None:
            group = found[key] = WaitGroup(*key, [])
        group.events.append(number)
    for number in library.idle(log).tolist() if library is not None else ():
        task = int(events[number]["task"])
        found.setdefault((task, LIBRARY_WAIT, 0), WaitGroup(task, LIBRARY_WAIT, 0, [])).events.append(number)
    for group in _frames(log):
        found[group.task, FRAME_SLEEP, 0] = group
    by_task: dict[int, list[WaitGroup]] = {}
    for group in found.values():
        by_task.setdefault(group.task, []).append(group)
    return by_task


def _frames(log: DomainLog) -> list[WaitGroup]:
    """The short sleeps of a process's first thread, where they come as often as pictures do."""
    events = log.events
    task = int(events[0]["task"]) if len(events) else 0
    chosen = (events["kind"] == Kind.SYSCALL) & np.isin(events["nr"], list(NAPS)) & (events["task"] == task)
    numbers = np.flatnonzero(chosen)
    began, ended = events["time_in"][numbers].astype(np.int64), events["time_out"][numbers].astype(np.int64)
    short = ended - began <= _FRAME_NS
    numbers, ended = numbers[short], ended[short]
    if len(numbers) < _LEAST_FRAMES or float(np.median(np.diff(ended))) > _FRAME_NS:
        return []
    return [WaitGroup(task, FRAME_SLEEP, 0, numbers.tolist())]


def may_loop(groups: Sequence[WaitGroup]) -> bool:
    """Whether a thread with these waits may be an event loop."""
    return any(len(group.events) >= _LEAST for group in groups)


def classify(groups: Sequence[WaitGroup], knowledge: Knowledge, resources: dict[int, Operation]) -> None:
    """Say of each of a thread's groups whether it is a loop's idle wait: by stacks; where they name no
    toolkit and no known loop has called it, by heartbeat.

    `resources` are the waits as operations, by event: what they wait for.
    """
    unknown = []
    for group in groups:
        for stack in group.stacks.values():
            told = loop_of(stack, knowledge) if stack else None
            if isinstance(told, Pattern):
                if not group.idle:
                    group.pattern = told
            elif told is not None:
                index, rule = told
                group.pattern = None
                if not group.idle or len(stack) - index < group.depth:
                    group.toolkit, group.depth, group.stack = rule.toolkit, len(stack) - index, stack
        if not group.idle and group.pattern is None:
            unknown.append(group)
    calling = [group for group in groups if group.idle and not returns(group, group.stack, knowledge)]
    frames = own_frames(calling, knowledge)
    for group in groups:
        if group.nr == FRAME_SLEEP and group.pattern is not None and group.pattern.kind == "sleep":
            group.pattern = None
            unknown.append(group)
    for group in sorted(unknown, key=lambda one: one.nr == FRAME_SLEEP):
        others = sum(len(one.events) for one in groups if one.idle)
        if group.nr == FRAME_SLEEP and 2 * others > len(group.events):
            continue
        called = any((frame.function, frame.sp) in frames for one in group.stacks.values() for frame in one)
        if not called:
            _by_heartbeat(group, resources)


def _by_heartbeat(group: WaitGroup, resources: dict[int, Operation]) -> None:
    least = _LEAST if group.nr in EPOLLS else _LEAST + 1
    if len(group.events) < least or group.nr == FUTEX:
        return
    waits_for = resources.get(group.events[0])
    if waits_for is not None and waits_for.resource.kind in ("dns", "sleep") and group.nr != FRAME_SLEEP:
        return
    stacks = [stack for stack in group.stacks.values() if stack]
    shapes = Counter(tuple((frame.function, frame.sp) for frame in stack) for stack in stacks)
    if group.nr == FRAME_SLEEP:
        most = max(shapes.values(), default=0)
        if 2 * most < len(stacks):
            return
        stacks.sort(key=lambda stack: -shapes[tuple((frame.function, frame.sp) for frame in stack)])
    elif len(shapes) > max(1, len(group.stacks) // 2):
        return
    stack = stacks[0] if stacks else ()
    group.toolkit = FRAMES if group.nr == FRAME_SLEEP else PLAIN
    index = next((index for index, frame in enumerate(stack) if not is_library(frame)), 0)
    group.depth, group.stack = len(stack) - index, stack


def actions_of(log: DomainLog, task: int, waits: Sequence[int], startup: bool) -> list[Action]:
    """What a thread does between the waits (event numbers, ascending), and after the last one."""
    events = log.events
    mine = log.of_task(task)
    actions: list[Action] = []
    bounds = [*waits, int(mine[-1]) + 1]
    if startup and waits and int(mine[0]) < waits[0]:
        bounds.insert(0, int(mine[0]) - 1)
    for number, (first, last) in enumerate(pairwise(bounds)):
        is_last = last > int(mine[-1])
        begin = int(events[first]["time_out"]) if first >= int(mine[0]) else int(events[mine[0]]["time_in"])
        end = int(events[last]["time_in"]) if not is_last else int(events[mine[-1]]["time_out"])
        actions.append(Action(log.domain, task, number, begin, max(begin, end), first, last, is_last))
    return actions


def own_frames(
    groups: Sequence[WaitGroup], knowledge: Knowledge, operations: Sequence[Operation] = ()
) -> frozenset[tuple[str, int]]:
    """The loops' own activations, as (function, stack pointer): what an action's stacks go through.

    The function that waits may be one that a loop only calls, and returns to it; `operations` between two
    of its waits tell which one that loop is in.
    """
    found: set[tuple[str, int]] = set()
    for group in groups:
        between = _between(group, operations)
        for stack in group.stacks.values():
            index = _own_index(stack, group, knowledge)
            if index < 0:
                continue
            if returns(group, stack, knowledge):
                index = max([index, *(_meeting(stack, index, one) for one in between)])
            found.add((stack[index].function, stack[index].sp))
    return frozenset(found)


def returns(group: WaitGroup, stack: Sequence[StackFrame], knowledge: Knowledge) -> bool:
    """Whether what waits here returns to the application, which calls the handlers."""
    told = loop_of(stack, knowledge) if group.toolkit not in (PLAIN, FRAMES) else None
    return group.toolkit in (PLAIN, FRAMES) or (isinstance(told, tuple) and not is_library(stack[told[0]]))


def _own_index(stack: Sequence[StackFrame], group: WaitGroup, knowledge: Knowledge) -> int:
    if group.toolkit in (PLAIN, FRAMES):
        return len(stack) - group.depth if 0 < group.depth <= len(stack) else -1
    told = loop_of(stack, knowledge)
    return told[0] if isinstance(told, tuple) else -1


def _between(group: WaitGroup, operations: Sequence[Operation]) -> list[Operation]:
    """Those with a stack that lie between two waits of the group and are none of these."""
    if not group.events:
        return []
    waits = set(group.events)
    first, last = group.events[0], group.events[-1]
    return [
        one
        for one in operations
        if first < one.event < last and one.event not in waits and (one.stack or one.samples)
    ]


def _meeting(stack: Sequence[StackFrame], index: int, operation: Operation) -> int:
    """The index in a wait's stack of the innermost activation of the application, from `index` outwards,
    that an operation has in its stack, too; -1 if there is none."""
    other = operation.stack or operation.samples[0]
    keys = {(frame.function, frame.sp) for frame in other}
    outer = range(index, len(stack))
    return next(
        (at for at in outer if not is_library(stack[at]) and (stack[at].function, stack[at].sp) in keys), -1
    )


def comes_round(stack: Sequence[StackFrame], groups: Sequence[WaitGroup], knowledge: Knowledge) -> bool:
    """Whether an operation is one of a loop's round, and not of what precedes or follows the loop in the
    same function. Where toolkits call the handlers it is."""
    own = {(frame.function, frame.sp): frame for frame in stack if not is_library(frame)}
    judged = False
    for group in groups:
        for wait in group.stacks.values():
            index = _own_index(wait, group, knowledge) if wait else -1
            if index < 0:
                continue
            if not returns(group, wait, knowledge):
                if any(
                    (frame.function, frame.sp) == (wait[index].function, wait[index].sp) for frame in stack
                ):
                    return True
                continue
            for frame in wait:
                here = own.get((frame.function, frame.sp))
                if here is None or frame.kind == "inlined":
                    continue
                judged = True
                if in_one_loop(frame, here):
                    return True
    return not judged
