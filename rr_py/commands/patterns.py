"""`rr-py patterns`: what scans have learnt about calls that block."""

from __future__ import annotations

from pathlib import Path

import click

from rr_py.messages import say

EPILOG = """\
\b
Examples:
  rr-py scan --learn app.bin               learn from a recording
  rr-py patterns list
  rr-py patterns export > team.json        and on another machine
  rr-py patterns merge team.json
"""


@click.group(epilog=EPILOG)
@click.option("--store", type=click.Path(), metavar="FILE", help="The pattern store (default: your own).")
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Show, merge and export the patterns of blocking calls that `scan --learn` has collected."""
    from hangscan.store import default_path

    context.obj = Path(store) if store is not None else default_path()


@command.command("list")
@click.pass_obj
def list_patterns(path: Path) -> None:
    """List the learnt patterns, the most seen first."""
    from hangscan.store import PatternStore

    with PatternStore(path, create=False) as store:
        for one in store.all():
            names = " < ".join(one.suffix)
            click.echo(f"{one.identity}  {one.kind:8} seen {one.seen:3}  {one.worst_ms:8.1f} ms  {names}")


@command.command()
@click.argument("names", nargs=-1, metavar="[FUNCTION]...")
@click.pass_obj
def show(path: Path, names: tuple[str, ...]) -> None:
    """Show what is known of FUNCTION: built-in and learnt patterns (or all learnt ones)."""
    from hangscan.knowledge import builtin
    from hangscan.store import PatternStore
    from replayer.backtrace import StackFrame

    for name in names:
        pattern = builtin().patterns.match(StackFrame(name, "", 0, "", "native"))
        if pattern is not None:
            click.echo(f"{name} ({pattern.toolkit}, built in)\n  {pattern.kind}: {pattern.operation}")
            click.echo(f"  fix: {pattern.fix}")
            for toolkit, fix in pattern.fix_for:
                click.echo(f"  fix in {toolkit}: {fix}")
    learnt = []
    if path.exists():
        with PatternStore(path, create=False) as store:
            learnt = [one for one in store.all() if not names or set(names) & set(one.suffix)]
    for one in learnt:
        click.echo(f"{one.identity} (learnt)\n  {one.kind}: {one.operation}, seen in {one.seen} traces")
        click.echo(f"  {' < '.join(one.suffix)}\n  at most {one.worst_ms:.1f} ms\n  fix: {one.fix}")


@command.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.pass_obj
def merge(path: Path, files: tuple[str, ...]) -> None:
    """Take in other stores or exports."""
    from hangscan.store import PatternStore

    with PatternStore(path) as store:
        for name in files:
            added = store.merge(Path(name))
            say(f"{name}: {added} new patterns")


@command.command()
@click.pass_obj
def export(path: Path) -> None:
    """Print all learnt patterns as JSON."""
    from hangscan.store import PatternStore

    with PatternStore(path, create=False) as store:
        click.echo(store.export())
