"""Keys in the order in which they were typed, each to whom the ones before it gave the keyboard.

Textual sends a key to the widget that has the focus when it arrives, and what the key means is found out only
when it has come up again through all that widget's parents. Of keys that are pasted, or typed quickly, the
second is on its way to the list before the first has opened the line it was meant for. Here a key waits
until nothing that was caused before it is still under way.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from textual import events
from textual.app import App
from textual.worker import WorkerFailed

_PATIENCE_S = 1.0
"""A key waits no longer than this for what hangs."""
_QUIET_TURNS = 2
_FILLING = frozenset({"processes"})
"""Workers that fill a list: keys for it wait until there is something in it."""
_FILLING_S = 0.005


class Typist(App[int]):
    """An application whose keys and pastes are delivered one after the other."""

    def __init__(self) -> None:
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self._key_queue: asyncio.Queue[events.Event] = asyncio.Queue()
        self.keys_waiting = 0
        """Keys that came and were not delivered yet."""

    def on_mount(self) -> None:
        """Begin to deliver."""
        self.run_worker(self._deliver_all(), group="typist", exit_on_error=True)

    @property
    def failure(self) -> BaseException | None:
        """What ended the application unexpectedly; whoever ran it raises it."""
        error = self._exception
        return error.error if isinstance(error, WorkerFailed) else error

    def _print_error_renderables(self) -> None:
        """Print no traceback on the user's terminal: `failure` is reported like every other defect."""
        self._exit_renderables.clear()

    async def on_event(self, event: events.Event) -> None:
        """Keys that come from the terminal wait in line; everything else goes its way."""
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self.keys_waiting += 1
            self._key_queue.put_nowait(event)
        else:
            await super().on_event(event)

    async def deliver(self, event: events.Event) -> None:
        """Send a key or a paste to the widget with the focus."""
        await super().on_event(event)

    async def _deliver_all(self) -> None:
        while True:
            event = await self._key_queue.get()
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._rest()
            await self.deliver(event)
            self.keys_waiting -= 1

    async def _rest(self) -> None:
        """Return at a moment when no widget has a message that it has not dealt with, and no list is filled.

        All run in this thread, each until it has none left or waits, when it is given a turn.
        """
        quiet = 0
        while quiet < _QUIET_TURNS:
            await asyncio.sleep(0)
            busy = self.message_queue_size or any(
                node.message_queue_size and node.is_attached for node in list(self._registry)
            )
            quiet = 0 if busy else quiet + 1
            if any(worker.group in _FILLING and not worker.is_finished for worker in self.workers):
                quiet = 0
                await asyncio.sleep(_FILLING_S)
