"""`rr-py scan`: what blocks an event loop, here or in a slower world."""

from __future__ import annotations

import click

from rr_py.options import trace_argument


@click.command()
@trace_argument
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@click.option("--environment", "environments", multiple=True, metavar="NAME")
def command(trace: str | None, form: str, environments: tuple[str, ...]) -> int:
    """Find what blocks the event loops of the recording TRACE."""
    from hangscan import Options, scan
    from hangscan.reports import document
    from rr_py.traces import chosen

    options = Options(environments=environments) if environments else Options()
    report = scan(chosen(trace), options)
    click.echo(document.text(report))
    return 0
