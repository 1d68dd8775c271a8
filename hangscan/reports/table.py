"""The report for people: worst first, each with where, what, on what, how long here and elsewhere, and the
fix."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from hangscan.blame import is_library
from hangscan.model import Candidate, Report
from hangscan.reports import PROJECTION_LIMITS

_FRAMES = 8
_PATHS = 4


def milliseconds(value: float) -> str:
    """`0.4 ms`, `250 ms`, `2.5 s`, `3 min 0 s`."""
    if value < 10:
        return f"{value:.1f} ms"
    if value < 1000:
        return f"{value:.0f} ms"
    if value < 60_000:
        return f"{value / 1000:.1f} s"
    minutes, rest = divmod(round(value / 1000), 60)
    return f"{minutes} min {rest} s"


def times(number: int) -> str:
    """`once`, `3 times`."""
    return "once" if number == 1 else f"{number} times"


def text(report: Report, width: int = 100, most: int | None = 30) -> str:
    """The whole report; at most `most` candidates (None: all), and how many are not shown."""
    return "\n".join(printable(line) for line in _lines(report, width, most)) + "\n"


def printable(text: str) -> str:
    """Names in a trace may hold anything: what a terminal would obey is escaped."""
    if text.isprintable():
        return text
    return "".join(
        mark if mark.isprintable() else mark.encode("unicode_escape", "backslashreplace").decode()
        for mark in text
    )


def _lines(report: Report, width: int, most: int | None) -> Iterator[str]:
    found = len(report.candidates)
    yield (
        f"{found or 'no'} hang{'' if found == 1 else 's'} of {milliseconds(report.threshold_ms)} or more in "
        f"{len(report.loops)} event loop{'' if len(report.loops) == 1 else 's'} of {report.trace}"
    )
    for loop in report.loops:
        longest = max((action.observed_ms for action in loop.actions), default=0.0)
        yield (
            f"  {loop.name}, {loop.toolkit or 'critical path'}: {len(loop.actions)} actions, "
            f"the longest took {milliseconds(longest)}"
        )
    if report.environments:
        yield "projected onto: " + "; ".join(
            f"{name} ({title})" if title else name for name, title in report.environments.items()
        )
    shown = report.candidates if most is None else report.candidates[:most]
    for number, candidate in enumerate(shown, 1):
        yield ""
        yield from _candidate(number, candidate, width)
    yield ""
    if len(shown) < found:
        yield f"{found - len(shown)} more: --all shows them"
    if report.below:
        yield f"{report.below} places below the threshold: --threshold 0ms shows them"
    if report.suppressed:
        yield f"{report.suppressed} suppressed by the suppression file"
    for note in report.notes:
        yield from textwrap.wrap(f"note: {note}", width, subsequent_indent="  ")
    if found and report.environments:
        yield from textwrap.wrap(PROJECTION_LIMITS, width)


def _candidate(number: int, one: Candidate, width: int) -> Iterator[str]:
    blamed = one.blamed_frame
    where = str(blamed) if blamed is not None else "(no stack)"
    yield f"{number:3}. {where}"
    yield f"     {one.resource.kind}: {one.operation}, {times(one.count)}" + (
        f" ({one.calls} calls)" if one.calls > one.count else ""
    )
    for line in on_what(one):
        yield from textwrap.wrap(line, width, initial_indent="     on ", subsequent_indent="        ")
    here = milliseconds(one.observed_ms)
    if one.observed_max_ms > one.observed_ms * 1.5 and one.observed_max_ms >= 1:
        here += f" (up to {milliseconds(one.observed_max_ms)})"
    elsewhere = [
        f"{name} {milliseconds(value)}"
        for name, value in sorted(one.projected_ms.items(), key=lambda item: -item[1])
        if value > one.observed_max_ms * 1.05 + 0.1
    ]
    yield f"     here {here}" + (f"; would be: {', '.join(elsewhere)}" if elsewhere else "")
    detail = one.detail
    if "waited_for_thread" in detail:
        doing = f", which was in {detail['which_was_doing']}" if "which_was_doing" in detail else ""
        line = f"held by thread {detail['waited_for_thread']}{doing}"
        yield from textwrap.wrap(line, width, initial_indent="     ", subsequent_indent="        ")
    path = call_path(one)
    if path:
        yield from textwrap.wrap(path, width, initial_indent="     by ", subsequent_indent="        ")
    yield from textwrap.wrap(one.fix, width, initial_indent="     fix: ", subsequent_indent="          ")
    yield f"     in {one.thread}; event {one.event} of domain {one.domain}" + (
        "" if one.exact else "; some of the calls by the stack of a like one"
    )


def on_what(one: Candidate) -> list[str]:
    """The resources, a few of them by name."""
    if len(one.paths) > 1:
        more = f" and {len(one.paths) - _PATHS} more" if len(one.paths) > _PATHS else ""
        return [", ".join(one.paths[:_PATHS]) + more]
    text = str(one.resource)
    return [text] if text != one.resource.kind else []


def call_path(one: Candidate) -> str:
    """The way from the blamed frame down to the call, and up: `main > handler > [read_all] > read`."""
    if not one.stack or one.blamed < 0:
        return ""
    inner = [frame.function for frame in one.stack[: one.blamed]]
    own = [frame for frame in one.stack[one.blamed + 1 :] if not is_library(frame)][:_FRAMES]
    names = [frame.function for frame in reversed(own)]
    return " > ".join([*names, f"[{one.stack[one.blamed].function}]", *reversed(inner[-3:])])
