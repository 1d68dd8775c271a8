"""From operations with stacks to candidates: what belongs together, and how long it would take elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from hangscan.behind import Behind, doing, projected
from hangscan.blame import blamed_index, is_library, pattern_of
from hangscan.environments import Environment, Projected
from hangscan.knowledge import Knowledge, Pattern, default_fix
from hangscan.model import Action, Candidate, Loop, Operation, Resource
from hangscan.walking import Walked
from replayer.backtrace import StackFrame

_TAKES_OVER = {
    "dns": ("dns", "socket", "pipe"), "socket": ("socket", "pipe"), "bus": ("bus", "socket", "pipe", "lock"),
    "display": ("display", "socket", "pipe"), "child": ("child", "pipe"),
    "thread": ("lock", "thread", "pipe"),
    "lock": ("lock",), "sleep": ("sleep",), "terminal": ("terminal", "pipe"), "filelock": ("filelock",),
}  # fmt: skip
_CHAIN = 12
_Path = tuple[tuple[str, str, int], ...]
_Whole = tuple[str, int, _Path]


@dataclass(slots=True)
class Occurrence:
    """What one action has of a candidate."""

    action: Action
    operations: list[Operation] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """Occurrences with one blamed call path and one kind of resource."""

    kind: str
    stack: tuple[StackFrame, ...]
    blamed: int
    pattern: Pattern | None
    occurrences: dict[int, Occurrence] = field(default_factory=dict)


class Grouper:
    """Collects the operations of one loop (or critical thread) into candidates."""

    def __init__(
        self,
        loop: Loop,
        walked: Walked,
        knowledge: Knowledge,
        environments: Sequence[Environment],
        behind: dict[int, Behind],
        stacks: dict[int, tuple[StackFrame, ...]],
        commands: dict[int, str],
    ) -> None:
        """`behind` and `stacks` are by event: whom a wait waited for, and stacks of other threads."""
        self._loop = loop
        self._walked = walked
        self._knowledge = knowledge
        self._environments = environments
        self._behind = behind
        self._stacks = stacks
        self._commands = commands
        self._groups: dict[object, Group] = {}

    def add(self, action: Action) -> None:
        """Take in the operations of an action."""
        wholes: dict[_Whole, list[Operation]] = {}
        shown: dict[_Whole, tuple[tuple[StackFrame, ...], Pattern]] = {}
        for operation in action.operations:
            stack = representative(operation)
            found = pattern_of(stack, self._knowledge)
            pattern = found[1] if found is not None else None
            if found is not None and self._takes_over(found[1], operation):
                at, pattern = found
                if pattern.whole:
                    key = (stack[at].function, stack[at].sp, blamed_path(stack, self._end(stack)))
                    wholes.setdefault(key, []).append(operation)
                    shown[key] = (stack, pattern)
                    continue
                resource = replace(operation.resource, kind=pattern.kind)
                operation = replace(operation, resource=resource)
            self._put(action, operation, stack, pattern)
        for key, parts in wholes.items():
            stack, pattern = shown[key]
            longest = max(parts, key=lambda one: (one.end - one.begin, -one.event))
            stack = representative(longest) or stack
            self._put(action, self._whole(parts, pattern), stack, pattern)

    def candidates(self) -> list[Candidate]:
        """Everything that was collected."""
        return [self._candidate(group) for group in self._groups.values()]

    def _takes_over(self, pattern: Pattern, operation: Operation) -> bool:
        return operation.resource.kind in _TAKES_OVER.get(pattern.kind, ())

    def _end(self, stack: Sequence[StackFrame]) -> int | None:
        """The index of the loop's frame, None where it is not on the stack."""
        frames = self._loop.frames
        return next((at for at, one in enumerate(stack) if at and (one.function, one.sp) in frames), None)

    def _whole(self, parts: Sequence[Operation], pattern: Pattern) -> Operation:
        """One operation for all calls that a function made."""
        talk = [one for one in parts if one.name in ("wait", "receive", "send", "connect", "read")]
        best = max(talk or parts, key=lambda one: (one.resource.kind == pattern.kind, one.end - one.begin))
        kind = pattern.kind
        if kind == "dns" and not any(
            one.resource.kind == "dns" and one.name in ("wait", "receive", "send") for one in parts
        ):
            kind = "socket"
        resource = replace(best.resource, kind=kind)
        if kind == "child":
            resource = Resource(
                "child", command=next((self._command(one) for one in parts if self._command(one)), "")
            )
        longest = max(parts, key=lambda one: one.end - one.begin)
        spent = sum(one.end - one.begin for one in parts)
        begin = min(one.begin for one in parts)
        detail = {**longest.detail, "parts": [one.event for one in parts]}
        name = pattern.operation if kind == pattern.kind else longest.name
        return Operation(
            longest.domain, longest.task, longest.event, name, resource, begin, begin + spent,
            first=any(one.first for one in parts), detail=detail, stack=longest.stack,
        )  # fmt: skip

    def _command(self, operation: Operation) -> str:
        text = operation.resource.command
        if text.startswith("pid "):
            return self._commands.get(int(text[4:]), text)
        return text

    def _put(
        self, action: Action, operation: Operation, stack: tuple[StackFrame, ...], pattern: Pattern | None
    ) -> None:
        kind = operation.resource.kind
        end = self._end(stack)
        key: object = (kind, operation.name, str(operation.resource))
        if stack:
            key = (kind, blamed_path(stack, end, kind == "cpu"))
        group = self._groups.get(key)
        if group is None:
            blamed = blamed_index(stack, end)
            group = self._groups[key] = Group(kind, stack, blamed, pattern)
        occurrence = group.occurrences.setdefault(action.number, Occurrence(action))
        occurrence.operations.append(operation)

    # ---- from groups to candidates ----

    def _candidate(self, group: Group) -> Candidate:
        occurrences = list(group.occurrences.values())
        observed = [sum(one.observed_ms for one in occurrence.operations) for occurrence in occurrences]
        elsewhere = {
            environment.name: max(self._project(environment, occurrence) for occurrence in occurrences)
            for environment in self._environments
        }
        worst = self._worst(occurrences, group.kind)
        stack = representative(worst) or group.stack
        blamed = blamed_index(stack, self._end(stack))
        found = pattern_of(stack, self._knowledge)
        pattern = found[1] if found is not None and self._fits(found[1], group.kind) else None
        toolkit = self._loop.toolkit
        every = [operation for occurrence in occurrences for operation in occurrence.operations]
        resource = worst.resource
        if resource.kind == "child":
            resource = replace(resource, command=self._command(worst))
        return Candidate(
            operation=pattern.operation if pattern is not None and pattern.operation else worst.name,
            resource=resource,
            observed_ms=round(median(observed), 3),
            observed_max_ms=round(max(observed), 3),
            projected_ms={name: round(value, 3) for name, value in elsewhere.items()},
            worst_ms=round(max([*observed, *elsewhere.values()]), 3),
            count=len(occurrences),
            calls=sum(_calls(one) for one in every),
            thread=self._loop.name,
            stack=stack,
            blamed=blamed,
            fix=pattern.advice(toolkit)
            if pattern is not None and pattern.fix
            else default_fix(group.kind, toolkit),
            toolkit=toolkit,
            pattern=pattern.functions[0] if pattern is not None else "",
            detail=self._detail(every),
            operations=tuple(name for name, _count in Counter(one.name for one in every).most_common()),
            paths=tuple(dict.fromkeys(one.resource.path for one in every if one.resource.path)),
            actions=tuple(sorted(group.occurrences)),
            domain=self._loop.domain,
            event=worst.event,
            exact=all(one.detail.get("exact", True) for one in every),
        )

    def _fits(self, pattern: Pattern, kind: str) -> bool:
        if pattern.kind == kind or (pattern.kind == "file" and kind == "fault"):
            return True
        return pattern.kind in ("thread", "lock") and kind in ("thread", "lock")

    def _worst(self, occurrences: Iterable[Occurrence], kind: str) -> Operation:
        """The operation that stands for a candidate: of those that would take longest, give or take a tenth,
        one whose stack tells most."""
        every = [one for occurrence in occurrences for one in occurrence.operations]
        lengths = [max([one.observed_ms, *self._tails(one)]) for one in every]
        least = 0.9 * max(lengths)

        def weight(at: int) -> tuple[bool, bool, float, float, bool]:
            stack = representative(every[at])
            found = pattern_of(stack, self._knowledge)
            fits = found is not None and self._fits(found[1], kind)
            return lengths[at] >= least, fits, lengths[at], every[at].observed_ms, bool(stack)

        return every[max(range(len(every)), key=weight)]

    def _tails(self, one: Operation) -> list[float]:
        return [self._one(environment, one).tail_ms for environment in self._environments]

    def _project(self, environment: Environment, occurrence: Occurrence) -> float:
        """One occurrence under a model: what is usual for all its operations, and one piece of bad luck."""
        total = luck = 0.0
        once: set[int] = set()
        for operation in occurrence.operations:
            one = self._one(environment, operation)
            if one.once:
                if id(one.figure) in once:
                    continue
                once.add(id(one.figure))
            total += one.median_ms
            luck = max(luck, one.tail_ms - one.median_ms)
        return total + luck

    def _one(self, environment: Environment, operation: Operation) -> Projected:
        return projected(environment, operation, self._behind.get(operation.event))

    def _detail(self, operations: Sequence[Operation]) -> dict[str, object]:
        """What else is known: of locks, who held them and what the owner was doing."""
        for operation in sorted(operations, key=lambda one: one.begin - one.end):
            behind = self._behind.get(operation.event)
            if behind is None or operation.resource.kind not in ("lock", "thread"):
                continue
            detail: dict[str, object] = {"waited_for_thread": behind.task}
            said = doing(behind, operation)
            if said:
                detail["which_was_doing"] = said
            if behind.operations and (stack := self._stacks.get(behind.operations[0].event)):
                detail["its_stack"] = [str(frame) for frame in stack[:_CHAIN]]
            return detail
        return {}


def _calls(operation: Operation) -> int:
    """How many system calls an operation stands for."""
    parts = operation.detail.get("parts")
    return len(parts) if isinstance(parts, list) else operation.calls


def representative(operation: Operation) -> tuple[StackFrame, ...]:
    """The stack of an operation; of computing, the sample that stands for most."""
    if operation.stack or not operation.samples:
        return operation.stack
    shapes = Counter(blamed_path(sample, None, True) for sample in operation.samples)
    usual = shapes.most_common(1)[0][0]
    return next(sample for sample in operation.samples if blamed_path(sample, None, True) == usual)


def blamed_path(stack: Sequence[StackFrame], end: int | None, computing: bool = False) -> _Path:
    """The application's frames from the blamed one out to the loop's: what makes two stacks the same.

    Computing moves through lines: there the blamed frame's own line does not count.
    """
    own = [frame for frame in stack[:end] if not is_library(frame)]
    if not own:
        start = max(blamed_index(stack, end), 0)
        return tuple((frame.function, frame.module, 0) for frame in stack[start:end][:_CHAIN])
    path = [(frame.function, frame.file, frame.line) for frame in own[:_CHAIN]]
    if computing:
        path[0] = (*path[0][:2], 0)
    return tuple(path)
