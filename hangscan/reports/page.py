"""The report as one HTML page that needs nothing else: a timeline of actions, and the stacks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from hangscan.blame import is_library
from hangscan.model import Candidate, Loop, Report
from hangscan.reports import PROJECTION_LIMITS
from hangscan.reports.table import milliseconds, on_what, times

_WIDTH = 1000
_BARS = 4000
_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --dim: #667; --line: #d5d9e0; --back: #fff; --bar: #7aa7d9;
  --hot: #d9534f; --warm: #e6a23c; --card: #f6f7f9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --dim: #9aa; --line: #3a3f47; --back: #16181b;
  --bar: #4a78ad; --card: #1f2226; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 0 auto;
  max-width: 1100px; padding: 1.5rem; }
h1 { font-size: 1.35rem; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; } .dim { color: var(--dim); }
svg { width: 100%; height: 74px; background: var(--card); border: 1px solid var(--line); border-radius: 6px; }
article { border: 1px solid var(--line); border-radius: 6px; background: var(--card); padding: .8rem 1rem;
  margin: .8rem 0; }
article h3 { margin: 0; font-size: 1rem; overflow-wrap: anywhere; }
.kind { display: inline-block; border-radius: 4px; background: var(--line); padding: 0 .5em;
  font-size: .85em; }
table { border-collapse: collapse; margin: .5rem 0; }
td, th { text-align: left; padding: .1rem 1rem .1rem 0; }
code, pre { font: 13px/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; margin: .4rem 0 0; } pre .own { font-weight: 600; }
pre .blamed { color: var(--hot); }
details summary { cursor: pointer; color: var(--dim); }
"""


def text(report: Report) -> str:
    """The page."""
    page = "\n".join(_page(report)) + "\n"
    return page.encode("utf-8", "backslashreplace").decode()


def _page(report: Report) -> Iterator[str]:
    count = len(report.candidates)
    title = f"{count} soft hang{'' if count == 1 else 's'}"
    yield "<!doctype html><html lang=en><head><meta charset=utf-8>"
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>"
    yield f"<title>{title}: {escape(' '.join(report.command))}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{title} of {milliseconds(report.threshold_ms)} or more</h1>"
    yield f"<p><code>{escape(' '.join(report.command))}</code></p>"
    for name, what in report.environments.items():
        yield f"<p class=dim>{escape(name)}: {escape(what)}</p>"
    for note in report.notes:
        yield f"<p class=dim>note: {escape(note)}</p>"
    for loop in report.loops:
        yield from _timeline(report, loop)
    yield "<h2>Where it blocks</h2>"
    if not report.candidates:
        yield "<p>Nothing reached the threshold.</p>"
    for number, one in enumerate(report.candidates, 1):
        yield from _article(number, one)
    if report.below:
        yield f"<p class=dim>{report.below} places below the threshold.</p>"
    if report.suppressed:
        yield f"<p class=dim>{report.suppressed} suppressed.</p>"
    yield f"<p class=dim>{escape(PROJECTION_LIMITS)}</p></body></html>"


def _timeline(report: Report, loop: Loop) -> Iterator[str]:
    """One bar an action: where it lies in time, and as high as it was long."""
    longest = max((action.observed_ms for action in loop.actions), default=0.0)
    yield f"<h2>{escape(loop.name)}, {escape(loop.toolkit or 'critical path')}</h2>"
    yield (
        f"<p class=dim>{len(loop.actions)} actions in {milliseconds((report.end - report.begin) / 1e6)}, "
        f"the longest took {milliseconds(longest)}</p>"
    )
    span = max(report.end - report.begin, 1)
    blamed = {number for one in report.candidates if one.thread == loop.name for number in one.actions}
    chosen = sorted(loop.actions, key=lambda action: -action.observed_ms)[:_BARS]
    yield f"<svg viewBox='0 0 {_WIDTH} 74' preserveAspectRatio=none role=img aria-label='actions over time'>"
    limit = 70 * report.threshold_ms / max(longest, report.threshold_ms)
    yield (
        f"<line x1=0 x2={_WIDTH} y1={72 - limit:.1f} y2={72 - limit:.1f} stroke='var(--dim)' "
        f"stroke-dasharray='4 4' stroke-width=.7 />"
    )
    for action in chosen:
        x = (action.begin - report.begin) / span * _WIDTH
        wide = max((action.end - action.begin) / span * _WIDTH, 1.2)
        high = max(70 * action.observed_ms / max(longest, report.threshold_ms), 1)
        colour = "hot" if action.observed_ms >= report.threshold_ms else "bar"
        if colour == "bar" and action.number in blamed:
            colour = "warm"
        yield (
            f"<rect x={x:.1f} y={72 - high:.1f} width={wide:.1f} height={high:.1f} fill='var(--{colour})'>"
            f"<title>action {action.number}: {milliseconds(action.observed_ms)}</title></rect>"
        )
    yield "</svg>"
    yield (
        "<p class=dim>red: slow when recorded; orange: would be slow elsewhere; the dashed line is the "
        "threshold</p>"
    )


def _article(number: int, one: Candidate) -> Iterator[str]:
    blamed = one.blamed_frame
    yield f"<article id=hang-{number}><h3>{number}. {escape(str(blamed) if blamed else '(no stack)')}</h3>"
    kind = f"<span class=kind>{escape(one.resource.kind)}</span>"
    yield f"<p>{kind} {escape(one.operation)}, {times(one.count)}</p>"
    for line in on_what(one):
        yield f"<p>on <code>{escape(line)}</code></p>"
    yield "<table><tr><th>here<th>up to"
    yield "".join(f"<th>{escape(name)}" for name in one.projected_ms)
    yield f"<tr><td>{milliseconds(one.observed_ms)}<td>{milliseconds(one.observed_max_ms)}"
    yield "".join(f"<td>{milliseconds(value)}" for value in one.projected_ms.values()) + "</table>"
    if "which_was_doing" in one.detail:
        yield (
            f"<p>waited for thread {escape(str(one.detail['waited_for_thread']))}, which was in "
            f"{escape(str(one.detail['which_was_doing']))}</p>"
        )
    yield f"<p><b>fix:</b> {escape(one.fix)}</p>"
    if one.stack:
        yield "<details><summary>stack</summary><pre>"
        for index, frame in enumerate(one.stack):
            kind = "blamed" if index == one.blamed else "" if is_library(frame) else "own"
            yield f"<span class='{kind}'>{escape(str(frame))}</span>"
        yield "</pre></details>"
    yield f"<p class=dim>{escape(one.thread)}; event {one.event} of domain {one.domain}</p></article>"
