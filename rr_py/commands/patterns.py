"""`rr-py patterns`: the patterns of blocking calls that scans have learnt."""

from __future__ import annotations

import click


@click.group()
def command() -> None:
    """Show, merge and export learnt patterns."""
