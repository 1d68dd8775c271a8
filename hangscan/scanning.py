"""A scan from beginning to end: loops, actions, stacks by replay, projection, report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from hangscan import suppress
from hangscan.behind import Behind, Owners
from hangscan.blame import is_complete, is_library, wants_lines
from hangscan.environments import Environment, load
from hangscan.errors import ScanError
from hangscan.grouping import Grouper
from hangscan.knowledge import Knowledge, builtin
from hangscan.library import LibraryCalls
from hangscan.log import DomainLog
from hangscan.loops import (
    PLAIN,
    WaitGroup,
    actions_of,
    classify,
    comes_round,
    groups_of,
    may_loop,
    own_frames,
)
from hangscan.model import Action, Candidate, Loop, Operation, Report
from hangscan.operations import Judge
from hangscan.options import Options
from hangscan.places import Places
from hangscan.selecting import choose
from hangscan.walking import Walked, Walker, commands
from interfaces.abi import Kind
from interfaces.errors import RrPyError
from replayer.backtrace import StackFrame, StackReader
from replayer.errors import LibraryTraceError
from replayer.session import Session
from replayer.stacks import Collector, Found, Wanted
from tracefile import TraceReader

_LEAST_COMPUTE_NS = 20_000_000
_PR_SET_NAME = 15
_PRCTL = 157
_REPRODUCED = 0.3
"""Computing that a replay does in less than this part of the time was no computing: the machine was busy
with something else, or read pages from the disk."""
_HELPERS = (
    "gmain",
    "gdbus",
    "dconf worker",
    "pool-*",
    "QDBusConnection*",
    "QXcbEventQueue",
    "Thread (pooled)",
)


@dataclass(slots=True)
class _Domain:
    """One domain that is looked into."""

    log: DomainLog
    groups: dict[int, list[WaitGroup]]
    tasks: list[int]
    walked: Walked | None = None
    stacks: dict[int, tuple[StackFrame, ...]] = field(default_factory=dict)
    behind: dict[int, Behind] = field(default_factory=dict)


def scan(trace: Path | str, options: Options | None = None) -> Report:
    """Scan a recording.

    Raises TraceError for what is no trace, ScanError when there is nothing of what the options ask for,
    EnvironmentFileError, SuppressionError or KnowledgeError for their files. A replay that fails is no error:
    the report then has no stacks from there on, and says so.
    """
    with TraceReader.open(trace) as reader:
        return _Scan(Path(trace), reader, options or Options()).run()


class _Scan:
    """One scan."""

    def __init__(self, path: Path, reader: TraceReader, options: Options) -> None:
        self._path = path
        self._reader = reader
        self._options = options
        self._knowledge: Knowledge = builtin()
        self._environments: list[Environment] = load(options.environments, options.environment_folders)
        self._suppressions = suppress.read(options.suppressions) if options.suppressions else []
        self._notes: list[str] = []
        self._commands = commands(reader)
        self._library = LibraryCalls.of(reader.meta)
        if self._library is not None:
            why = LibraryTraceError(reader.meta)
            self._notes.append(
                f"{why.message}; only calls of the interface are judged, not what lies between them. "
                f"{why.remedy}"
            )

    def run(self) -> Report:
        reader = self._reader
        if not reader.complete and reader.stopped:
            self._notes.append(reader.stopped.rstrip("."))
        domains = self._look()
        walker = Walker(reader, Judge(self._places()), self._environments)
        for number, domain in domains.items():
            least = _LEAST_COMPUTE_NS if self._library is None else None
            domain.walked = walker.walk(domain.log, domain.tasks, least)
            if self._library is not None:
                self._add_library_calls(self._library, domain)
            elif domain.tasks:
                self._collect(number, domain)
        loops: list[Loop] = []
        candidates: list[Candidate] = []
        for domain in domains.values():
            for task in domain.tasks:
                for loop, found in self._of_task(domain, task):
                    loops.append(loop)
                    candidates.extend(found)
        return self._report(loops, candidates)

    def _add_library_calls(self, library: LibraryCalls, domain: _Domain) -> None:
        """Put in the calls that are no system calls; what stands for stacks, since nothing can be replayed to
        a place in the program."""
        walked = domain.walked
        assert walked is not None
        for task in domain.tasks:
            operations = walked.operations[task]
            operations.extend(library.operations(domain.log, task))
            operations.sort(key=lambda one: (one.begin, one.event))
            for one in operations:
                one.stack = library.stack(domain.log, one.event, str(one.detail["call"]))

    # ---- what to look at ----

    def _places(self) -> Places:
        infos = list(self._reader.domains.values())
        first = min(infos, key=lambda info: info.domain, default=None)
        home = ""
        if first is not None:
            home = next((one[5:] for one in first.envp if one.startswith("HOME=")), "")
        folders = [first.cwd] if first is not None else []
        programs = {info.exe for info in infos if info.kind == "exec"}
        return Places(folders, home, self._options.remote, programs)

    def _look(self) -> dict[int, _Domain]:
        """The domains with threads of interest, and their ancestors (whose descriptors they inherit)."""
        reader, options = self._reader, self._options
        tcl = any("libtcl" in entry.path or "libtk" in entry.path for entry in reader.files.values())
        found: dict[int, _Domain] = {}
        for number in sorted(reader.domains):
            info = reader.domains[number]
            if not info.event_count:
                continue
            log = DomainLog(reader, number)
            if log.damage:
                self._notes.append(f"domain {number}: {log.damage}")
            groups = groups_of(log, tcl, self._library)
            tasks = self._tasks(log, groups)
            if options.pid is not None and info.pid != options.pid:
                tasks = []
            found[number] = _Domain(log, groups, tasks)
        needed: set[int] = set()
        for number, domain in found.items():
            at = number if domain.tasks else 0
            while at and at not in needed:
                needed.add(at)
                at = reader.domains[at].parent_domain if at in reader.domains else 0
        if options.threads and not any(domain.tasks for domain in found.values()):
            raise ScanError(
                f"the trace has no thread {', '.join(options.threads)}",
                "Name a thread id or a thread name: `rr-py dump` shows ids, `rr-py ps` processes.",
            )
        return {number: domain for number, domain in found.items() if number in needed}

    def _tasks(self, log: DomainLog, groups: dict[int, list[WaitGroup]]) -> list[int]:
        options = self._options
        tasks = log.tasks()
        if options.threads:
            names = _names(log)
            return [
                task for task in tasks if str(task) in options.threads or names.get(task) in options.threads
            ]
        if options.critical:
            return tasks
        return [task for task in tasks if may_loop(groups.get(task, []))]

    # ---- stacks ----

    def _collect(self, number: int, domain: _Domain) -> None:
        """Replay the domain once and take the stacks of waits, operations and lock owners."""
        walked = domain.walked
        assert walked is not None
        owners = Owners(
            domain.log, [*walked.context, *(one for task in domain.tasks for one in walked.operations[task])]
        )
        every = [one for task in domain.tasks for one in walked.operations[task]]
        for one in every:
            if one.resource.kind == "lock" and one.observed_ms >= 1:
                behind = owners.behind(one)
                if behind is not None:
                    domain.behind[one.event] = behind
        chosen, left_out = choose(every, domain.groups, domain.behind, self._environments, self._options)
        wanted = [Wanted(one.event, one.until) for one in chosen]
        for task in domain.tasks:
            for group in domain.groups.get(task, []):
                wanted.extend(Wanted(event) for event in group.samples())
        owning = [domain.behind[one.event] for one in chosen if one.event in domain.behind]
        wanted.extend(
            Wanted(one.operations[0].event)
            for one in owning
            if one.operations and one.operations[0].until is None
        )
        wanted = list(dict.fromkeys(wanted))
        if left_out and len(chosen) >= self._options.most_stops:
            self._notes.append(
                f"domain {number}: the replay was stopped {len(chosen)} times; {left_out} more operations, "
                "of less weight, have the stack of a like one"
            )
        samples = self._replay(number, wanted, domain)
        for one in every:
            if one.until is None:
                one.stack = domain.stacks.get(one.event, ())
            elif (found := samples.get(one.event)) is not None:
                one.samples = found.samples
                one.detail["replayed_ms"] = found.seconds * 1000
        _share_stacks(every)
        for groups in domain.groups.values():
            for group in groups:
                group.stacks = {
                    event: domain.stacks[event] for event in group.events if event in domain.stacks
                }

    def _replay(self, number: int, wanted: Sequence[Wanted], domain: _Domain) -> dict[int, Found]:
        samples: dict[int, Found] = {}
        if not wanted:
            return samples
        name = f"process {self._reader.domains[number].pid} ({self._reader.domains[number].comm})"
        try:
            with ExitStack() as stack:
                session = stack.enter_context(
                    Session.open(self._path, number, ignore_cpu=self._options.ignore_cpu)
                )
                collector = Collector(session, StackReader(wants_lines=wants_lines))
                stack.callback(collector.close)
                for found in collector.collect(wanted):
                    if found.wanted.until is None:
                        domain.stacks[found.wanted.event] = found.frames
                    else:
                        samples[found.wanted.event] = found
                if collector.ended is not None:
                    ended = collector.ended
                    why = ended.message.splitlines()[0] if ended.message else f"it ended ({ended.end.value})"
                    self._notes.append(f"{name}: no stacks after event {ended.events}: {why}")
        except RrPyError as error:
            self._notes.append(f"{name}: no stacks, it cannot be replayed: {error.message}")
        return samples

    # ---- candidates ----

    def _of_task(self, domain: _Domain, task: int) -> Iterable[tuple[Loop, list[Candidate]]]:
        walked = domain.walked
        assert walked is not None
        operations = walked.operations[task]
        groups = domain.groups.get(task, [])
        by_event = {one.event: one for one in operations if one.wait}
        classify(groups, self._knowledge, by_event)
        idle = [group for group in groups if group.idle]
        if self._options.critical:
            yield from self._critical(domain, task, operations)
            return
        waits = sorted(event for group in idle for event in group.events)
        whole = bool(self._options.threads)
        if not whole and (len(waits) < 2 or is_helper(_names(domain.log).get(task, ""))):
            return
        main = max(idle, key=lambda group: len(group.events), default=None)
        loop = self._loop(domain, task, main)
        if not whole and loop.toolkit == PLAIN and task != loop.pid and all(map(is_library, loop.stack)):
            return
        loop.frames = own_frames(idle, self._knowledge, operations)
        loop.waits = len(waits)
        loop.actions = (
            actions_of(domain.log, task, waits, self._options.startup or whole)
            if waits
            else [_life(domain.log, task)]
        )
        _assign(loop.actions, operations, set(waits), loop.frames, whole)
        if not whole:
            _leave_out_what_follows(loop, idle, self._knowledge)
        yield loop, self._group(domain, walked, loop)

    def _critical(
        self, domain: _Domain, task: int, operations: list[Operation]
    ) -> Iterable[tuple[Loop, list[Candidate]]]:
        """The calls of the functions that the user calls critical, each an action.

        Stacks do not tell two calls from the same place apart: a new one is taken to begin when the function
        is back at the line where the last one first blocked.
        """
        wanted = self._options.critical
        loop = self._loop(domain, task, None)
        loop.toolkit = ""
        actions: list[Action] = []
        current: tuple[str, int] | None = None
        first_line = 0
        for one in operations:
            stack = one.stack or (one.samples[0] if one.samples else ())
            frame = next((frame for frame in stack if matches_function(frame, wanted)), None)
            if frame is None:
                current = None if stack else current
                continue
            begins = one.until is None and 0 < frame.line <= first_line
            if current != (frame.function, frame.sp) or begins:
                current, first_line = (frame.function, frame.sp), frame.line
                actions.append(
                    Action(one.domain, task, len(actions), one.begin, one.end, one.event, one.event)
                )
            action = actions[-1]
            action.end, action.last_event = max(action.end, one.end), one.event
            action.operations.append(one)
        loop.actions = actions
        walked = domain.walked
        assert walked is not None
        if loop.actions:
            yield loop, self._group(domain, walked, loop)

    def _loop(self, domain: _Domain, task: int, main: WaitGroup | None) -> Loop:
        info = self._reader.domains[domain.log.domain]
        pid = domain.walked.pids.get(task, info.pid) if domain.walked is not None else info.pid
        stack = main.stack if main is not None else ()
        own = _names(domain.log).get(task, "")
        named = info
        while not named.comm and named.parent_domain in self._reader.domains:
            named = self._reader.domains[named.parent_domain]
        name = f"{own or named.comm} ({'main thread' if task == pid else f'thread {task}'} of {pid})"
        toolkit = main.toolkit if main is not None else ""
        return Loop(info.domain, task, pid, info.comm, toolkit, 0, [], stack, name=name)

    def _group(self, domain: _Domain, walked: Walked, loop: Loop) -> list[Candidate]:
        grouper = Grouper(
            loop, walked, self._knowledge, self._environments, domain.behind, domain.stacks, self._commands
        )
        for action in loop.actions:
            action.operations = [
                one for one in action.operations if one.stack or one.samples or self._weighs(one)
            ]
            grouper.add(action)
        return grouper.candidates()

    def _weighs(self, one: Operation) -> bool:
        """Whether an operation without a stack is worth a word."""
        tails = [environment.project(one).tail_ms for environment in self._environments]
        return max([one.observed_ms, *tails]) >= self._options.threshold_ms / 2

    # ---- the report ----

    def _report(self, loops: list[Loop], candidates: list[Candidate]) -> Report:
        options = self._options
        above = [one for one in candidates if one.worst_ms >= options.threshold_ms]
        kept, suppressed = suppress.split(above, self._suppressions)
        kept.sort(key=lambda one: (-one.worst_ms * one.count, -one.worst_ms, one.event))
        infos = list(self._reader.domains.values())
        first = min(infos, key=lambda info: info.domain, default=None)
        for loop in loops:
            self._many_small(loop, above)
        if not loops:
            what = "no call of " + ", ".join(options.critical) if options.critical else "no event loop"
            self._notes.append(
                f"{what} was found: no thread comes back to poll, ppoll, select or epoll_wait"
                if not options.critical
                else f"{what} was found on the stacks of what blocked"
            )
        return Report(
            trace=str(self._path),
            command=first.argv if first is not None else [],
            environments={one.name: one.title for one in self._environments},
            threshold_ms=options.threshold_ms,
            loops=loops,
            candidates=kept,
            below=len(candidates) - len(above),
            suppressed=suppressed,
            notes=self._notes,
            begin=min((loop.actions[0].begin for loop in loops if loop.actions), default=0),
            end=max((loop.actions[-1].end for loop in loops if loop.actions), default=0),
        )

    def _many_small(self, loop: Loop, above: Sequence[Candidate]) -> None:
        """Say of slow actions in which no single place was slow."""
        threshold = self._options.threshold_ms
        told = {number for one in above if one.thread == loop.name for number in one.actions}
        slow = [one for one in loop.actions if one.observed_ms >= threshold and one.number not in told]
        if loop.toolkit and slow:
            longest = max(slow, key=lambda one: one.observed_ms)
            self._notes.append(
                f"{loop.name}: {len(slow)} actions took {threshold:g} ms or more (at most "
                f"{longest.observed_ms:.0f} ms, after event {longest.first_event} of domain {loop.domain}) "
                "without one place that did; a lower --threshold shows their parts"
            )


def is_helper(name: str) -> bool:
    """Whether a thread is one that a toolkit runs for itself, whose waits no user sees."""
    return any(fnmatchcase(name, glob) for glob in _HELPERS)


def matches_function(frame: StackFrame, wanted: Iterable[str]) -> bool:
    """Whether a frame is one of the functions: by its whole name or its last part."""
    return any(
        frame.function == name or frame.function.endswith((f".{name}", f"::{name}")) for name in wanted
    )


def _assign(
    actions: Sequence[Action], operations: Sequence[Operation], idle_waits: set[int],
    frames: frozenset[tuple[str, int]], whole: bool,
) -> None:  # fmt: skip
    """Give each action its operations: what the loop itself called, as far as stacks tell."""
    starts = [action.first_event for action in actions]
    for one in operations:
        if one.event in idle_waits and one.until is None:
            continue
        index = int(np.searchsorted(starts, one.event, side="right")) - 1
        if index < 0 or one.event >= actions[index].last_event:
            continue
        replayed = one.detail.get("replayed_ms")
        if replayed is not None and (not one.samples or replayed < one.observed_ms * _REPRODUCED):
            continue
        stack = one.stack or (one.samples[0] if one.samples else ())
        action = actions[index]
        known = is_complete(stack) or (action.last and not stack)
        inside = any((frame.function, frame.sp) in frames for frame in stack)
        if known and frames and not inside and not whole:
            continue
        action.operations.append(one)


def _leave_out_what_follows(loop: Loop, idle: Sequence[WaitGroup], knowledge: Knowledge) -> None:
    """What a function does before and after its loop, between waits of whatever kind, is no action; nor is
    what a thread does after its last wait if the loop is left by then."""
    for action in loop.actions:
        before = len(action.operations)
        action.operations = [
            one
            for one in action.operations
            if comes_round(one.stack or (one.samples or ((),))[0], idle, knowledge)
        ]
        left = any(one.stack or one.samples for one in action.operations)
        action.follows = len(action.operations) < before and not left
    loop.actions = [action for action in loop.actions if not action.follows]


def _share_stacks(operations: Sequence[Operation]) -> None:
    """Operations that were not stopped at get the stack of a like one nearby."""
    known: dict[object, Operation] = {}
    for one in (*operations, *reversed(operations)):
        if one.until is not None:
            continue
        key = (one.task, one.name, one.detail.get("ip"), str(one.resource))
        if one.stack and one.detail.get("exact", True):
            known[key] = one
        elif not one.stack and (like := known.get(key)) is not None:
            one.stack = like.stack
            one.detail["exact"] = False


def _life(log: DomainLog, task: int) -> Action:
    mine = log.of_task(task)
    first, last = int(mine[0]), int(mine[-1])
    begin, end = int(log.events[first]["time_in"]), int(log.events[last]["time_out"])
    return Action(log.domain, task, 0, begin, max(begin, end), first, last + 1)


def _names(log: DomainLog) -> dict[int, str]:
    """Names that threads gave themselves."""
    events = log.events
    chosen = (events["kind"] == Kind.SYSCALL) & (events["nr"] == _PRCTL)
    chosen &= events["args"][:, 0] == _PR_SET_NAME
    found: dict[int, str] = {}
    for number in np.flatnonzero(chosen).tolist():
        for region in log.regions(number):
            if region.arg == 1 and region.data:
                name = region.data.split(b"\0", 1)[0].decode("utf-8", "replace")
                found[int(events[number]["task"])] = name
    return found
