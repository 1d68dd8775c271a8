"""The rows of a trace: all events of all domains in one order, with a few columns of each in memory.

A worker calls `update` until it returns; the interface reads whatever is there meanwhile. Rows are numbered
from 0 and never change their number, also when a trace that is still being written grows.
"""

from __future__ import annotations

import bisect
import errno
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from interfaces.abi import Kind
from interfaces.calls import BY_NAME, CALLS
from interfaces.libspec.show import LibFlag
from tracefile import Chunk, TraceError, TraceReader
from tracefile.chunk import EventArray
from tracefile.library import AsSystemCalls, error_of
from tracefile.passing import Passed, in_chunk
from tui.model.columns import (
    BLOCK_SHIFT,
    CODES,
    ERROR_OTHER,
    NO_DESCRIPTOR,
    PAIR,
    RANGE,
    Block,
    Columns,
    code_of,
    codes_of,
    errors_of,
    kind_of_code,
    table_of,
)
from tui.model.merge import windows

_TAIL = 256
"""Last rows of a block, where most domains have some."""
_ROWS_KNOWN = 16
"""Blocks and domains of which the rows are remembered, 128 kB each at most."""
_PAIRS = ("pipe", "pipe2", "socketpair")
_BY_FIRST = ("close", "connect", "bind")
_DUPFD = (0, 1030)
_FIRST, _RESULT, _PAIR, _RANGE, _FCNTL = 1, 2, 3, 4, 5


def _use_table() -> npt.NDArray[np.uint8]:
    """For each code, how the descriptor that it makes, names or closes is found; 0: none."""
    table = np.zeros(CODES, np.uint8)
    for number, call in CALLS.items():
        if call.returns == "fd":
            table[code_of(Kind.SYSCALL, number)] = _RESULT
    groups = ((_PAIR, _PAIRS), (_FIRST, _BY_FIRST), (_RANGE, ("close_range",)), (_FCNTL, ("fcntl",)))
    for how, names in groups:
        for name in names:
            table[code_of(Kind.SYSCALL, BY_NAME[name].number)] = how
    return table


_USES = _use_table()
_FORKS = table_of(
    [code_of(Kind.SYSCALL, BY_NAME[name].number) for name in ("fork", "vfork", "clone", "clone3")]
)


@dataclass(frozen=True, slots=True)
class Task:
    """A thread of a domain, by the kernel's ids at recording time."""

    domain: int
    tid: int


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What the index has learnt of a task: its process, who made it (0: not known), its span in rows."""

    domain: int
    tid: int
    pid: int
    creator: int
    first_row: int
    last_row: int
    events: int


@dataclass(slots=True)
class _DomainRows:
    """Where a domain's events are: for each block that has any, its number and the events before it."""

    blocks: array[int] = field(default_factory=lambda: array("I"))
    before: array[int] = field(default_factory=lambda: array("Q"))
    count: int = 0


class EventIndex:
    """Rows, columns and places of all events that were taken in so far."""

    def __init__(self, reader: TraceReader) -> None:
        self.reader = reader
        self.system_calls = AsSystemCalls.of(reader.meta)
        self.blocks: list[Block] = []
        self.tasks: list[Task] = []
        self.pids: list[int] = []
        self.creators: list[int] = []
        self.rows = 0
        self.zero = min((info.time for info in reader.domains.values()), default=0)
        self.passed: list[Passed] = []
        """Messages that carried descriptors from process to process."""
        self.received: dict[tuple[int, int], tuple[int, ...]] = {}
        """Descriptors that the event (domain, number) brought."""
        self._ids: dict[Task, int] = {}
        self._known: dict[int, tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]] = {}
        self._domains: dict[int, _DomainRows] = {}
        self._room = np.empty(0, np.uint32)
        self._domain_of_task = self._room[:0]
        self._numbers_of: dict[int, list[tuple[int, int]]] = {}
        self._latest: dict[int, int] = {}
        self._rows_known: dict[tuple[int, int], npt.NDArray[np.uint16]] = {}
        self._execs: dict[int, tuple[int, int]] = {}
        self._forks: dict[tuple[int, int], int] = {}
        self._events = np.empty(0, np.int64)
        self._first = np.empty(0, np.int64)
        self._last = np.empty(0, np.int64)
        """Facts of the tasks, with room for more."""

    def update(self, progress: Callable[[], bool] | None = None) -> bool:
        """Take in what the trace has and the index has not; whether there was anything.

        `progress` is called now and then and stops the work by returning False; the next `update` goes on
        from the same place. Raises TraceFormatError at a damaged chunk; what precedes it is there.
        """
        before = self.rows
        if not self.zero:
            self.zero = min((info.time for info in self.reader.domains.values()), default=0)
        seen = {domain: rows.count for domain, rows in self._domains.items()}
        for columns in windows(self.reader, seen, self._latest, self._reduce):
            self._add(columns)
            if progress is not None and not progress():
                break
        return self.rows > before

    def task_id(self, row: int) -> int:
        """The number of a row's task, an index of `tasks` and `pids`."""
        block = self.blocks[row >> BLOCK_SHIFT]
        return int(block.task[row - block.first])

    def facts(self, number: int) -> TaskFacts:
        """What is known of a task so far."""
        task = self.tasks[number]
        return TaskFacts(
            task.domain,
            task.tid,
            self.pids[number],
            self.creators[number],
            int(self._first[number]),
            int(self._last[number]),
            int(self._events[number]),
        )

    def place(self, row: int) -> tuple[int, int]:
        """(domain, event number) of a row; IndexError where there is none."""
        if not 0 <= row < self.rows:
            raise IndexError(f"there is no row {row} of {self.rows}")
        number = row >> BLOCK_SHIFT
        block = self.blocks[number]
        domain = self.tasks[int(block.task[row - block.first])].domain
        rows = self._domains[domain]
        at = bisect.bisect_right(rows.blocks, number) - 1
        own = self._rows_in(number, domain, row - block.first)
        return domain, rows.before[at] + int(np.searchsorted(own, row - block.first))

    def row_of(self, domain: int, event: int) -> int | None:
        """The row of an event; None where the index does not have it (yet)."""
        rows = self._domains.get(domain)
        if rows is None or not 0 <= event < rows.count:
            return None
        at = bisect.bisect_right(rows.before, event) - 1
        block = self.blocks[rows.blocks[at]]
        places = self._rows_in(rows.blocks[at], domain, block.count)
        wanted = event - rows.before[at]
        return block.first + int(places[wanted]) if wanted < len(places) else None

    def previous_of_task(self, row: int) -> int | None:
        """The row of the same task before a row; None for its first."""
        task = self.task_id(row)
        number = row >> BLOCK_SHIFT
        stop = row - self.blocks[number].first
        while number >= 0:
            block = self.blocks[number]
            places = np.flatnonzero(block.task[:stop] == task)
            if len(places):
                return block.first + int(places[-1])
            number -= 1
            stop = self.blocks[number].count
        return None

    def birth(self, domain: int) -> tuple[int, int] | None:
        """(parent's domain, row) of the event that made a domain; None for the first one, or where the
        recording does not tell."""
        info = self.reader.domains[domain]
        parent, event = info.parent_domain, info.parent_event
        if domain in self._execs:
            parent, event = self._execs[domain]
        elif event is None:
            event = self._forks.get((parent, info.pid))
        if not parent or parent not in self._domains:
            return None
        row = self.row_of(parent, event) if event is not None else None
        return parent, row if row is not None else self.row_at(info.time)

    def events_before(self, domain: int, number: int) -> int:
        """How many events of a domain precede block `number`."""
        rows = self._domains.get(domain)
        if rows is None:
            return 0
        at = bisect.bisect_left(rows.blocks, number)
        return rows.before[at] if at < len(rows.blocks) else rows.count

    def last_kind(self, domain: int, number: int) -> int:
        """The kind of the last event of a domain before block `number`; 0 where there is none."""
        rows = self._domains.get(domain)
        at = bisect.bisect_left(rows.blocks, number) - 1 if rows is not None else -1
        if rows is None or at < 0:
            return 0
        block = self.blocks[rows.blocks[at]]
        for start in (max(block.count - _TAIL, 0), 0):
            own = np.flatnonzero(self._domain_of_task[block.task[start : block.count]] == domain)
            if len(own):
                return kind_of_code(int(block.code[start + int(own[-1])]))
        return 0

    def count(self, domain: int) -> int:
        """Events of a domain that are indexed."""
        rows = self._domains.get(domain)
        return rows.count if rows else 0

    def key(self, row: int) -> int:
        """When a row ended as the order has it, CLOCK_MONOTONIC nanoseconds (see Block.times)."""
        block = self.blocks[row >> BLOCK_SHIFT]
        return int(block.times(row - block.first, row - block.first + 1)[0])

    def row_at(self, when: int) -> int:
        """The first row that ended at `when` or later; the last row where there is none."""
        number = bisect.bisect_left(self.blocks, when, key=lambda block: block.end)
        if number == len(self.blocks):
            return max(self.rows - 1, 0)
        block = self.blocks[number]
        return block.first + int(np.searchsorted(block.times(), np.uint64(max(when, 0))))

    @property
    def span(self) -> tuple[int, int]:
        """(start, end) of the whole trace, CLOCK_MONOTONIC nanoseconds."""
        return self.zero, max(self.blocks[-1].end if self.blocks else 0, self.zero)

    def tasks_of(self, *, pid: int | None = None, tid: int | None = None) -> list[int]:
        """Numbers of the tasks of a process, or with an id."""
        return [
            number
            for number, (task, own_pid) in enumerate(zip(self.tasks, self.pids, strict=False))
            if (pid is None or own_pid == pid) and (tid is None or task.tid == tid)
        ]

    def task_table(self, numbers: list[int]) -> npt.NDArray[np.bool_]:
        """A table that is true at the given tasks; index it with a column of tasks."""
        table = np.zeros(max(len(self.tasks), 1), np.bool_)
        table[numbers] = True
        return table

    def domain_table(self) -> npt.NDArray[np.uint32]:
        """The domain of each task; index it with a column of tasks."""
        return self._domain_of_task

    def blocks_from(self, row: int) -> Iterator[Block]:
        """The blocks from the one that holds `row` on."""
        yield from self.blocks[row >> BLOCK_SHIFT :]

    def _rows_in(self, number: int, domain: int, stop: int) -> npt.NDArray[np.uint16]:
        """The rows of a domain in block `number`, as offsets; those before `stop` at least."""
        known = self._rows_known.get((number, domain))
        if known is not None:
            return known
        block = self.blocks[number]
        full = not block.room
        tasks = block.task[: block.count if full else stop]
        own = np.flatnonzero(self._domain_of_task[tasks] == domain).astype(np.uint16)
        if full:
            if len(self._rows_known) >= _ROWS_KNOWN:
                self._rows_known = {}
            self._rows_known[number, domain] = own
        return own

    def _reduce(self, chunk: Chunk, latest: int) -> Columns:
        """The columns of a chunk, whose tasks become known."""
        if self.system_calls is not None:
            chunk = self.system_calls.chunk(chunk)
        events = chunk.events
        kinds = np.ascontiguousarray(events["kind"])
        codes = codes_of(kinds, events["nr"])
        results = np.ascontiguousarray(events["result"])
        begin, end = np.ascontiguousarray(events["time_in"]), np.ascontiguousarray(events["time_out"])
        tasks = self._task_numbers(chunk.domain, np.ascontiguousarray(events["task"]))
        for i in np.flatnonzero(kinds == Kind.TASK_START).tolist():
            number = int(tasks[i])
            self.creators[number] = int(events["args"][i, 0])
            self.pids[number] = int(events["args"][i, 1]) or self.pids[number]
        for i in np.flatnonzero(kinds == Kind.EXECED).tolist():
            self._execs[int(events["args"][i, 0])] = (chunk.domain, chunk.first_event + i)
        for i in np.flatnonzero(_FORKS[codes] & (results > 0)).tolist():
            self._forks[chunk.domain, int(results[i])] = chunk.first_event + i
        errors = errors_of(kinds, results)
        for i in np.flatnonzero((kinds == Kind.LIBCALL) & (events["flags"] & LibFlag.ERRNO != 0)).tolist():
            errors[i] = min(error_of(chunk.event_payload(i)), ERROR_OTHER)
        uses = _descriptors(events, results, _USES[codes])
        with suppress(TraceError):
            for message in in_chunk(chunk):
                self.passed.append(message)
                if not message.sent:
                    place = message.domain, message.event
                    self.received[place] = self.received.get(place, ()) + message.fds
                    uses[message.event - chunk.first_event] = PAIR
        return Columns(
            tasks,
            codes,
            errors,
            np.ascontiguousarray(events["flags"]),
            np.where(end > begin, end - begin, 0).astype(np.float32),
            uses,
            np.maximum(np.maximum.accumulate(end), np.uint64(latest)),
        )

    def _add(self, columns: Columns) -> None:
        """Append rows to the blocks.

        Other threads read along: nothing is told of rows that are not there yet.
        """
        at = 0
        while at < len(columns):
            if not self.blocks or not self.blocks[-1].room:
                self.blocks.append(Block(self.rows))
            block = self.blocks[-1]
            stop = min(at + block.room, len(columns))
            part = columns.part(slice(at, stop))
            block.append(part)
            self._count(len(self.blocks) - 1, part.task)
            if not self.rows:
                self.zero = min(self.zero, block.start)
            self.rows += len(part)
            at = stop

    def _count(self, number: int, tasks: npt.NDArray[np.uint32]) -> None:
        """Note how many events of which domain and task come in block `number`, from the next row on."""
        present, counts = _counted(tasks)
        self._events[present] += counts
        rows = np.arange(self.rows, self.rows + len(tasks))
        self._last[tasks] = rows
        new = tasks[self._first[tasks] < 0]
        if len(new):
            fresh = np.unique(new)
            self._first[fresh] = [self.rows + int(np.argmax(tasks == task)) for task in fresh]
        domains = self._domain_of_task[present]
        for domain in np.unique(domains).tolist():
            of_domain = self._domains.setdefault(domain, _DomainRows())
            if not of_domain.blocks or of_domain.blocks[-1] != number:
                of_domain.blocks.append(number)
                of_domain.before.append(of_domain.count)
            of_domain.count += int(counts[domains == domain].sum())

    def _task_numbers(self, domain: int, tids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """The number of each event's task, made where it is new."""
        known = self._known.get(domain)
        if known is None or not self._all_known(known[0], tids):
            known = self._learn_tasks(domain, tids)
        return known[1][np.searchsorted(known[0], tids)]

    @staticmethod
    def _all_known(known: npt.NDArray[np.uint32], tids: npt.NDArray[np.uint32]) -> bool:
        at = np.minimum(np.searchsorted(known, tids), len(known) - 1)
        return bool(np.all(known[at] == tids))

    def _learn_tasks(
        self, domain: int, tids: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        pid = self.reader.domains[domain].pid
        new = [task for tid in np.unique(tids).tolist() if (task := Task(domain, tid)) not in self._ids]
        count = len(self.tasks) + len(new)
        if count > len(self._room):
            more = np.full(max(count, 64), -1, np.int64)
            self._events = np.concatenate([self._events, np.zeros_like(more)])
            self._first = np.concatenate([self._first, more])
            self._last = np.concatenate([self._last, more])
            self._room = np.concatenate([self._room, np.zeros(len(more), np.uint32)])
        self._room[len(self.tasks) : count] = domain
        self._domain_of_task = self._room[:count]
        self.pids.extend([pid] * len(new))
        self.creators.extend([0] * len(new))
        for task in new:
            self._ids[task] = len(self.tasks)
            self._numbers_of.setdefault(domain, []).append((task.tid, len(self.tasks)))
            self.tasks.append(task)
        own = sorted(self._numbers_of[domain])
        known = (np.array([tid for tid, _ in own], np.uint32), np.array([n for _, n in own], np.uint32))
        self._known[domain] = known
        return known


def _counted(tasks: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The tasks that occur and how often; quick for few rows among many tasks and for many among few."""
    least, most = int(tasks.min()), int(tasks.max())
    if most - least > 4 * len(tasks) + 64:
        values, counts = np.unique(tasks, return_counts=True)
        return values.astype(np.intp), counts
    counts = np.bincount(tasks - np.uint32(least))
    present = np.flatnonzero(counts)
    return present + least, counts[present]


def _descriptors(
    events: EventArray, results: npt.NDArray[np.int64], how: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int32]:
    """For each event the descriptor it makes, names or closes; calls that failed to make one are out."""
    fds = np.full(len(events), NO_DESCRIPTOR, np.int32)
    found = np.flatnonzero(how)
    if not len(found):
        return fds
    how, results = how[found], results[found]
    args = events["args"][found]
    first = args[:, 0].astype(np.uint32).view(np.int32)
    duplicates = (how == _FCNTL) & np.isin(args[:, 1] & np.uint64(0xFFFFFFFF), _DUPFD)
    made = (how == _RESULT) | duplicates
    fd = np.where(made, np.clip(results, -1, 1 << 30), first).astype(np.int32)
    fd[how == _PAIR] = PAIR
    fd[how == _RANGE] = RANGE
    wanted = (results >= 0) & ((how != _FCNTL) | duplicates)
    wanted |= (how == _FIRST) & (results != -errno.EBADF)
    fds[found] = np.where(wanted, fd, NO_DESCRIPTOR)
    return fds
