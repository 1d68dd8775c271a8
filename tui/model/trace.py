"""An open trace as the screens see it: rows, decoded events, labels of descriptors. Safe from any thread."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from tracefile import TraceReader
from tui.model.columns import BLOCK_SHIFT
from tui.model.decode import Decoded, decode_event, printable
from tui.model.fds import Descriptors, History
from tui.model.index import EventIndex
from tui.model.query.evaluate import Evaluator, Interrupted
from tui.model.query.language import Query
from tui.model.view import CALLS_AND_SIGNALS, View

_CACHED_EVENTS = 2048


class TraceModel:
    """A trace, its index, and what is decoded of it. Use as a context manager or call `close`."""

    def __init__(self, reader: TraceReader) -> None:
        self.reader = reader
        self.path = Path(reader.path)
        self.index = EventIndex(reader)
        self.damage = ""
        """Why indexing stopped early; empty while nothing is wrong."""
        self._lock = threading.RLock()
        self._events: OrderedDict[int, Decoded] = OrderedDict()
        self.descriptors = Descriptors(self.index, self.decode)
        self._evaluator: Evaluator | None = None

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open a trace; TraceError where that is impossible."""
        return cls(TraceReader.open(path))

    def close(self) -> None:
        """Close the file."""
        self.reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def decode(self, row: int) -> Decoded:
        """The event at a row. IndexError where there is none, TraceFormatError where it is damaged."""
        with self._lock:
            found = self._events.get(row)
            if found is not None:
                self._events.move_to_end(row)
                return found
            domain, number = self.index.place(row)
            found = self._decoded(row, domain, number)
            self._events[row] = found
            if len(self._events) > _CACHED_EVENTS:
                self._events.popitem(last=False)
            return found

    def decode_once(self, row: int) -> Decoded:
        """As `decode`, for passing over many events: remembers nothing."""
        domain, number = self.index.place(row)
        return self._decoded(row, domain, number)

    def _decoded(self, row: int, domain: int, number: int) -> Decoded:
        translate = self.index.system_calls
        return decode_event(
            self.reader,
            row,
            domain,
            number,
            lambda: self._released(row),
            translate.view if translate is not None else None,
        )

    def _released(self, row: int) -> tuple[int, int] | None:
        """The place of the event of the same task before a row."""
        before = self.index.previous_of_task(row)
        return self.index.place(before) if before is not None else None

    def label(self, row: int, fd: int) -> str:
        """What a descriptor stands for at a row."""
        with self._lock:
            return self.descriptors.label(row, fd)

    def label_made(self, row: int) -> str:
        """What the descriptor stands for that the event at a row made, or that it named."""
        with self._lock:
            return self.descriptors.label_of_opening(row)

    def history(self, row: int, fd: int) -> History:
        """Where a descriptor was opened and closed."""
        with self._lock:
            return self.descriptors.history(row, fd)

    def view(self, query: Query | None = None, *, everything: bool = False) -> View:
        """An empty view; `fill` puts in what passes."""
        return View(self.index, query, everything)

    def fill(
        self,
        view: View,
        progress: Callable[[], bool] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        """Extend a view by all rows that were indexed since. For one thread at a time.

        `progress` is called after each block and stops the work by returning False; `stopped` is asked more
        often, also before each event that must be decoded, and stops it by returning True.
        """
        evaluator = self._evaluator_of(view)
        if evaluator is not None:
            evaluator.stopped = stopped
        try:
            while view.done < self.index.rows:
                block = self.index.blocks[view.done >> BLOCK_SHIFT]
                start, stop = view.done - block.first, block.count
                if start >= stop:
                    return
                shown = CALLS_AND_SIGNALS[block.code[start:stop]]
                mask = np.ones(stop - start, np.bool_) if view.everything else shown
                if evaluator is not None:
                    mask = mask & evaluator.mask(block, start, stop, mask)
                view.extend(block, mask)
                if progress is not None and not progress():
                    return
        except Interrupted:
            return
        finally:
            if evaluator is not None:
                evaluator.stopped = None

    def _evaluator_of(self, view: View) -> Evaluator | None:
        """The evaluator of a view's filter: the latest is kept, since a view grows with the trace."""
        if view.query is None:
            return None
        if self._evaluator is None or self._evaluator.query is not view.query:
            self._evaluator = Evaluator(self, view.query)
        return self._evaluator

    def process_name(self, domain: int) -> str:
        """The short name of a domain's process, without control characters."""
        info = self.reader.domains.get(domain)
        return printable(info.comm) if info else ""
