"""The background work that keeps index and view up to date: one thread that runs `Feeder.run`.

First it indexes what the trace has, filling the current view as rows come; then it waits for another view to
fill, or, with a trace that is still being written, for more events.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum

from tracefile import TraceError
from tui.model.query.language import Query
from tui.model.trace import TraceModel
from tui.model.view import View

POLL_S = 0.1
_TELL_S = 0.5
"""How often progress is told: each time, the screen is drawn anew while the work waits."""


class Phase(Enum):
    """What the feeder is doing."""

    INDEXING = "indexing"
    FILTERING = "filtering"
    WAITING = "waiting for more"
    DONE = "done"


class Feeder:
    """Feeds `view`, which `show` replaces. `changed` is called, a few times a second, in its thread."""

    def __init__(self, model: TraceModel, changed: Callable[[], None]) -> None:
        self.model = model
        self.view = model.view()
        self.phase = Phase.INDEXING
        self.live = False
        self._changed = changed
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._told = 0.0

    def show(self, query: Query | None, everything: bool) -> View:
        """Begin to fill another view, and return it."""
        self.view = self.model.view(query, everything=everything)
        self.phase = Phase.FILTERING
        self._told = 0.0
        self._wake.set()
        return self.view

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()
        self._wake.set()

    def run(self) -> None:
        """Work until `stop`. An error of the trace ends indexing; what precedes it stays usable."""
        model = self.model
        self.live = model.reader.live
        self._index()
        while not self._stop.is_set():
            self._wake.clear()
            self._fill()
            self.live = self.live and model.reader.live
            idle = Phase.WAITING if self.live else Phase.DONE
            if self.view.complete and self.phase != idle:
                self.phase = idle
                self._tell(force=True)
            self._wake.wait(POLL_S if self.live else None)
            if self.live and not self._stop.is_set():
                self._follow()

    def _follow(self) -> None:
        model = self.model
        try:
            was_live = model.reader.live
            if not model.reader.refresh() and was_live:
                return
        except (TraceError, OSError) as why:
            self._fail(why)
            return
        self._index()
        self.live = was_live

    def _index(self) -> None:
        try:
            self.model.index.update(self._progress)
        except (TraceError, OSError) as why:
            self._fail(why)
        self._fill()
        self._tell(force=True)

    def _fail(self, why: Exception) -> None:
        self.live = False
        self.model.damage = str(getattr(why, "message", why))
        self._tell(force=True)

    def _progress(self) -> bool:
        self._fill()
        self._tell()
        return not self._stop.is_set()

    def _fill(self) -> None:
        """Fill the view; begins anew when another one is shown meanwhile."""
        while not self._stop.is_set():
            view = self.view
            try:
                self.model.fill(
                    view,
                    lambda view=view: self._goes_on(view),  # type: ignore[misc]
                    lambda view=view: self._unwanted(view),  # type: ignore[misc]
                )
            except (TraceError, OSError) as why:
                self._fail(why)
                return
            if view is self.view:
                return

    def _goes_on(self, view: View) -> bool:
        self._tell()
        return not self._unwanted(view)

    def _unwanted(self, view: View) -> bool:
        return view is not self.view or self._stop.is_set()

    def _tell(self, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self._told > _TELL_S:
            self._told = now
            self._changed()
