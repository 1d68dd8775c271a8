"""Traces for the interface, and the interface itself without a terminal."""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from textual.pilot import Pilot

from benchmarks.tui_trace import make_trace, region
from interfaces.abi import EVENT_DTYPE, EventFlag, Kind, RegionKind
from interfaces.calls import BY_NAME
from tracefile import DomainEnd, DomainStart, TraceReader, TraceWriter
from tui.app import RrPyTui
from tui.model.address import Address
from tui.model.feeder import Phase
from tui.model.trace import TraceModel

SNAPSHOTS = Path(__file__).parent / "snapshots"
PATIENCE = 2000


class Story:
    """Writes a small trace event by event; times go on by 1 ms an event unless said otherwise."""

    def __init__(self, path: Path, **meta: object) -> None:
        self.path = path
        self.writer = TraceWriter.create(path, {"command": ["story"], **meta})
        self.now = 1_000_000_000
        self._counts: dict[int, int] = {}

    def domain(
        self, number: int, pid: int, *, kind: str = "exec", parent: int = 0, comm: str = "story"
    ) -> None:
        self.writer.add_domain(
            DomainStart(
                domain=number, kind=kind, pid=pid, ppid=1, parent_domain=parent, time=self.now, comm=comm,
                exe=f"/usr/bin/{comm}", argv=[comm, "-v"], envp=[], cwd="/",
            )
        )  # fmt: skip

    def call(
        self,
        name: str,
        args: tuple[int, ...] = (),
        result: int = 0,
        *,
        task: int = 100,
        domain: int = 1,
        took: int = 1000,
        payload: bytes = b"",
        flags: int = EventFlag.PRECISE,
        kind: Kind = Kind.SYSCALL,
    ) -> int:
        """Add a call; its number in the domain."""
        return self.event(kind, BY_NAME[name].number, args, result, task, domain, took, payload, flags)

    def event(
        self,
        kind: Kind,
        nr: int = 0,
        args: tuple[int, ...] = (),
        result: int = 0,
        task: int = 100,
        domain: int = 1,
        took: int = 0,
        payload: bytes = b"",
        flags: int = EventFlag.PRECISE,
    ) -> int:
        self.now += 1_000_000
        row = np.zeros(1, EVENT_DTYPE)
        row["task"], row["kind"], row["flags"], row["nr"], row["ip"] = task, kind, flags, nr, 0x401000
        row["args"][0, : len(args)] = [value & (2**64 - 1) for value in args]
        row["result"], row["time_in"], row["time_out"] = result, self.now - took, self.now
        row["payload_len"] = len(payload)
        number = self._counts.get(domain, 0)
        self._counts[domain] = number + 1
        self.writer.add_events(domain, number, row.tobytes(), payload)
        return number

    def open(self, path: str, fd: int, **more: int) -> int:
        data = region(RegionKind.IN, 1, 0x7000, path.encode() + b"\0")
        return self.call("openat", (-100, 0x7000, 0), fd, payload=data, **more)  # type: ignore[arg-type]

    def read(self, fd: int, data: bytes, **more: int) -> int:
        payload = region(RegionKind.OUT, 1, 0x8000, data) if data else b""
        return self.call("read", (fd, 0x8000, 4096), len(data), payload=payload, **more)  # type: ignore[arg-type]

    def end(self, domain: int = 1, pid: int = 100, code: int = 0) -> None:
        self.writer.end_domain(DomainEnd(domain=domain, pid=pid, status="exited", code=code, time=self.now))

    def close(self) -> TraceReader:
        self.writer.close({"status": 0})
        return TraceReader.open(self.path)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "story.bin")


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Generated traces by number of events; each is made once. A negative number: its recorder was killed."""
    folder = tmp_path_factory.mktemp("traces")

    def get(events: int) -> Path:
        path = folder / (f"t{events}.bin" if events >= 0 else f"cut{-events}.bin")
        return path if path.exists() else make_trace(path, abs(events), finish=events >= 0)

    return get


@pytest.fixture
def small(traces: Callable[[int], Path]) -> Path:
    return traces(20_000)


def indexed(path: Path) -> TraceModel:
    """A trace with its index."""
    model = TraceModel.open(path)
    model.index.update()
    return model


async def settle(pilot: Pilot[int], *, index: bool = True) -> None:
    """Wait until the trace is read, the view is filled and all other workers are done."""
    app = pilot.app
    assert isinstance(app, RrPyTui)
    for _ in range(PATIENCE):
        await pilot.pause()
        busy = [worker for worker in app.workers if not worker.is_finished and worker.group != "feeder"]
        fed = app.feeder.phase in (Phase.DONE, Phase.WAITING) and app.events.view.complete
        busy = [worker for worker in busy if worker.group != "typist"]
        if not busy and not app.keys_waiting and (fed or not index) and not _timers(app):
            await pilot.pause()
            return
        await asyncio.sleep(0.005)
    raise AssertionError("the interface does not come to rest")


def _timers(app: RrPyTui) -> list[object]:
    """Details that were asked for and have not begun."""
    return [timer for timer in app._timers if timer.name == "detail"]


@asynccontextmanager
async def opened(
    path: Path, address: Address | None = None, size: tuple[int, int] = (110, 34)
) -> AsyncIterator[tuple[RrPyTui, Pilot[int]]]:
    """The interface on a trace, at rest."""
    with TraceModel.open(path) as model:
        app = RrPyTui(model, address)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            yield app, pilot


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Press keys and wait until all they caused is done."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def type_text(pilot: Pilot[int], text: str) -> None:
    """Type a text."""
    names = {" ": "space", '"': "quotation_mark", "'": "apostrophe"}
    await pilot.press(*(names.get(char, char) for char in text))
    await pilot.pause()


def screen_text(app: RrPyTui) -> str:
    """What is on the screen, without messages that pass."""
    lines = ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]
    return "\n".join(line.rstrip() for line in lines) + "\n"


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare a text with the one kept in `snapshots/`; RR_PY_UPDATE_SNAPSHOTS=1 keeps it anew."""
    count = itertools.count()

    def check(text: str) -> None:
        name = request.node.name.replace("[", "-").replace("]", "").replace("/", "_")
        number = next(count)
        path = SNAPSHOTS / (f"{name}.txt" if not number else f"{name}.{number}.txt")
        if os.environ.get("RR_PY_UPDATE_SNAPSHOTS"):
            path.write_text(text, "utf-8")
        assert path.exists(), f"no snapshot {path.name}: make it with RR_PY_UPDATE_SNAPSHOTS=1"
        assert text == path.read_text("utf-8")

    return check


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings and keys of the tests are their own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("RR_PY_KEYS", raising=False)


def interface(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that drives the interface, run to its end."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
