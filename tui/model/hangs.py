"""The hang scanner's candidates as rows, ranked anew for each environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hangscan import Candidate, Options, Report, scan
from hangscan.environments import available
from tui.model.decode import printable
from tui.model.detail import Node
from tui.model.look import source_lines

OBSERVED = "observed"


@dataclass(frozen=True, slots=True)
class Hang:
    """A candidate under one environment; times in milliseconds."""

    candidate: Candidate
    projected_ms: float

    @property
    def what(self) -> str:
        """The operation and what it works on."""
        return printable(f"{self.candidate.operation} {self.candidate.resource}")

    @property
    def where(self) -> str:
        """The application's frame that is blamed."""
        frame = self.candidate.blamed_frame
        if frame is None:
            return ""
        place = f" {os.path.basename(frame.file)}:{frame.line}" if frame.file else ""
        return printable(f"{frame.function}{place}")


class Hangs:
    """A finished scan. `environments` begins with "observed": as recorded."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.environments = [OBSERVED, *report.environments]

    @property
    def nothing(self) -> str:
        """What to say where there is no candidate."""
        report = self.report
        text = f"nothing takes {report.threshold_ms:.0f} ms or more under any environment"
        if report.below:
            text += f"; {report.below} places are below that"
        return text if report.loops else f"no event loop was found; {text}"

    def ranked(self, environment: str) -> list[Hang]:
        """The candidates, worst first, as a scan of this environment alone ranks them: by the time they took
        or would take, times how often. Those that such a scan would leave out are last."""
        observed = environment == OBSERVED

        def projected(one: Candidate) -> float:
            return one.observed_max_ms if observed else one.projected_ms.get(environment, 0.0)

        def rank(one: Candidate) -> tuple[bool, float, float, int]:
            worst = max(one.observed_max_ms, projected(one))
            return worst < self.report.threshold_ms, -worst * max(one.count, 1), -worst, one.event

        return [Hang(one, projected(one)) for one in sorted(self.report.candidates, key=rank)]


def scan_trace(trace: Path) -> Hangs:
    """Scan a trace under all environments that are built in. RrPyError where that is impossible."""
    return Hangs(scan(trace, Options(environments=tuple(available()))))


def explanation(hang: Hang) -> Node:
    """The detail of a candidate: times, stack, fix."""
    one = hang.candidate
    root = Node(hang.what)
    root.children = [
        Node("thread", printable(one.thread)),
        Node("observed", f"{one.observed_ms:.1f} ms (median), {one.observed_max_ms:.1f} ms (longest)"),
        Node("times", f"{one.count} actions, {one.calls} calls"),
        Node(
            "projected",
            children=[Node(name, f"{value:.0f} ms") for name, value in sorted(one.projected_ms.items())],
        ),
        Node("fix", printable(one.fix) or "not known"),
    ]
    if one.paths:
        root.children.append(Node("paths", children=[Node(printable(path)) for path in one.paths]))
    frames = [
        Node(
            ("> " if number == one.blamed else "  ") + printable(frame.function),
            printable(f"{frame.file}:{frame.line}" if frame.file else os.path.basename(frame.module)),
            [Node(line) for line in source_lines(frame.file, frame.line)],
            open=number == one.blamed,
        )
        for number, frame in enumerate(one.stack)
    ]
    root.children.append(Node("stack", children=frames or [Node("not known: the replay did not reach it")]))
    return root
