"""`rr-py diff`: two recordings compared, as text, as JSON, or side by side in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import click

DIFFERENT = 1
"""Exit status when the traces differ, as diff(1) has it."""

EPILOG = """\
\b
Examples:
  rr-py diff good.bin bad.bin
  rr-py diff good.bin bad.bin --json | jq '.threads[] | select(.different > 0) | .thread'
  rr-py diff --tui good.bin bad.bin

\b
Threads are compared one by one: another schedule is no difference, nor are addresses, process ids and times.
Exit status: 0 no difference, 1 a difference, 125 something went wrong.
"""


@click.command(epilog=EPILOG)
@click.argument("a", type=click.Path(), metavar="A")
@click.argument("b", type=click.Path(), metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--tui", "in_tui", is_flag=True, help="Show both side by side in the terminal.")
@click.option(
    "-C",
    "--context",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Show N equal events before a difference.",
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Show at most N differing events of each thread.",
)
def command(a: str, b: str, as_json: bool, in_tui: bool, context: int, limit: int) -> int:
    """Say where trace B first does something else than trace A."""
    from tracefile import TraceReader

    with TraceReader.open(a) as first, TraceReader.open(b) as second:
        if in_tui:
            return browse(first.path, second)
        from tui.model.diff import Comparison, report
        from tui.model.diff import as_json as json_of

        comparison = Comparison(first, second)
        comparison.compute()
        if as_json:
            click.echo(json.dumps(json_of(comparison, limit), indent=2))
        else:
            for line in report(comparison, context, limit):
                click.echo(line if line.isascii() else line.encode("utf-8", "backslashreplace").decode())
        return 0 if comparison.same else DIFFERENT


def browse(a: str, b: object) -> int:
    """Both in the terminal interface."""
    from rr_py.commands.tui import check_textual
    from tracefile import TraceReader
    from tui.run import check_terminal, run_application

    check_textual()
    check_terminal()
    from tui.diff import DiffTui
    from tui.model.trace import TraceModel

    assert isinstance(b, TraceReader)
    with TraceModel.open(Path(a)) as model:
        return run_application(DiffTui(model, b))
