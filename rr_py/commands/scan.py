"""`rr-py scan`: what blocks an event loop, here or in a slower world."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rr_py import __version__
from rr_py.messages import say

if TYPE_CHECKING:
    from hangscan import Options, Report

FAILED = 1
"""Exit status when --fail-above finds something."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min)?")
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60000.0, None: 1.0}

EPILOG = """\
\b
Examples:
  rr-py scan                                       the newest trace here
  rr-py scan -- ./app --verbose                    record first, then scan
  rr-py scan --environment nfs-down --environment hdd app.bin
  rr-py scan --critical train_step train.bin       the calls of a function
  rr-py scan --static ./app                        also what did not run
  rr-py scan --format sarif --fail-above 200ms app.bin > hangs.sarif

\b
Environments: ssd, hdd, nfs, nfs-down, slow-dns, dns-down, offline, slow-network, dead-service, busy-cpu,
cold-cache, swap; or the path of a TOML file of yours. Default: hdd, slow-dns. They move your data (working
folder, home, /mnt, /media, /run/user, --remote) and leave the system's own files where they are.

\b
Exit status: 0; with --fail-above 1 if something takes or would take that long; 125 if rr-py failed.
"""


def read_duration(context: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Milliseconds of `200ms` or `1.5s`; a bare number is milliseconds."""
    if value is None:
        return None
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is no time: write it as 200ms or 1.5s")
    return float(match[1]) * _UNITS[match[2]]


def complete_environment(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of environment models, built in and the user's own."""
    from hangscan.environments import available

    names = ["none", *available((user_environments(),))]
    return [name for name in names if name.startswith(incomplete)]


def no_options(context: click.Context, param: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Paths that are none of this command's options, which a forgotten value makes of them."""
    for path in paths:
        if path.startswith("-"):
            raise click.BadParameter(f"it is followed by {path}, not by a program, library or package")
    return paths


@click.command(epilog=EPILOG, options_metavar="[OPTIONS]")
@click.option(
    "-e", "--environment", "environments", multiple=True, metavar="NAME", shell_complete=complete_environment,
    help="Project onto this environment model (a name, or the path of a TOML file). May be repeated; "
    "'none' for what was observed alone.",
)  # fmt: skip
@click.option(
    "--threshold", callback=read_duration, default="100ms", show_default=True, metavar="TIME",
    help="Report what blocks, or would, for so long.",
)  # fmt: skip
@click.option(
    "--critical", multiple=True, metavar="FUNCTION",
    help="Calls of this function are what must not block (a request handler, a training step), instead of "
    "event loops. May be repeated.",
)  # fmt: skip
@click.option(
    "--thread", "threads", multiple=True, metavar="THREAD",
    help="This thread (id or name) must never block, instead of event loops. May be repeated.",
)  # fmt: skip
@click.option(
    "--remote", multiple=True, metavar="GLOB", help="Paths that environments move as well. May be repeated."
)
@click.option("--startup", is_flag=True, help="Also report what a loop's thread does before its first wait.")
@click.option("-p", "--pid", type=click.IntRange(min=1), metavar="PID", help="Only this recorded process.")
@click.option(
    "--suppress", type=click.Path(), metavar="FILE", help="Leave out what this file lists, and count it."
)
@click.option(
    "--learn", is_flag=True, help="Add what blocked to the pattern store, for --static (see rr-py patterns)."
)
@click.option(
    "--static", "static", multiple=True, type=click.Path(), metavar="PATH", callback=no_options,
    help="Search a program, library or Python package for hang points in code that need not have run. "
    "May be repeated; no trace is needed.",
)  # fmt: skip
@click.option("--store", type=click.Path(), metavar="FILE", help="The pattern store (default: your own).")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "sarif", "html"]), default="table",
    show_default=True, help="Form of the report.",
)  # fmt: skip
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write the report to FILE.")
@click.option("-a", "--all", "everything", is_flag=True, help="Show all findings in the table.")
@click.option(
    "--fail-above", callback=read_duration, metavar="TIME",
    help=f"End with status {FAILED} if something blocks, or would, for so long.",
)  # fmt: skip
@click.option("--ignore-cpu", is_flag=True, help="Replay on a CPU that lacks features of the recorded one.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[TRACE | -- PROGRAM [ARGS]...]")
@click.pass_context
def command(
    context: click.Context,
    environments: tuple[str, ...],
    threshold: float,
    critical: tuple[str, ...],
    threads: tuple[str, ...],
    remote: tuple[str, ...],
    startup: bool,
    pid: int | None,
    suppress: str | None,
    learn: bool,
    static: tuple[str, ...],
    store: str | None,
    form: str,
    output: str | None,
    everything: bool,
    fail_above: float | None,
    ignore_cpu: bool,
    words: tuple[str, ...],
) -> int:
    """Find what blocks the event loops of a recording, or would in a slower world.

    The work of each event loop between two waits is one action. What blocks in it is named with its stack,
    what it works on, how long it took, how long it would take under environment models, and what to call
    instead.
    """
    from hangscan import Options
    from hangscan.options import DEFAULT_ENVIRONMENTS

    named = tuple(name for name in environments if name != "none")
    options = Options(
        environments=named if environments else DEFAULT_ENVIRONMENTS,
        threshold_ms=threshold,
        critical=critical,
        threads=threads,
        remote=remote,
        pid=pid,
        startup=startup,
        suppressions=Path(suppress) if suppress is not None else None,
        patterns=Path(store) if store is not None else None,
        ignore_cpu=ignore_cpu,
        environment_folders=(user_environments(),),
    )
    if static and not words:
        return search(static, options, form, output, fail_above)
    report = scanned(words, options)
    if learn:
        from hangscan.store import PatternStore, default_path

        with PatternStore(options.patterns or default_path()) as patterns:
            added, known = patterns.learn(report.candidates, report.trace)
        say(f"learnt {added} new patterns, {known} known ones seen again")
    text = rendered(report, form, everything)
    if output is not None:
        Path(output).write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=not text.endswith("\n"))
    status = 0
    if fail_above is not None and any(one.worst_ms >= fail_above for one in report.candidates):
        status = FAILED
    if static:
        status = max(status, search(static, options, form, None, fail_above))
    return status


def user_environments() -> Path:
    """Where the user's own environment models are."""
    import platformdirs

    return Path(platformdirs.user_config_dir("rr-py")) / "environments"


def scanned(words: tuple[str, ...], options: Options) -> Report:
    """Scan a trace, or record a program first. One word that is a file of traces, or none, means a trace."""
    from hangscan import scan
    from rr_py.traces import chosen

    if not words or (len(words) == 1 and not _is_program(words[0])):
        return scan(chosen(words[0] if words else None), options)
    from recorder import RecordOptions, record

    result = record(RecordOptions(command=list(words), version=__version__))
    say(f"recorded to {result.trace}")
    return scan(result.trace, options)


def _is_program(word: str) -> bool:
    path = Path(word)
    if not path.is_file():
        return "/" not in word and not path.exists() and shutil.which(word) is not None
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF" or (file.seek(0) == 0 and file.read(2) == b"#!")


def rendered(report: Report, form: str, everything: bool) -> str:
    """The report in the form that was asked for."""
    from hangscan.reports import document, page, sarif, table

    if form == "json":
        return document.text(report)
    if form == "sarif":
        return sarif.text(report, __version__, Path.cwd())
    if form == "html":
        return page.text(report)
    width = min(max(shutil.get_terminal_size().columns, 60), 120)
    return table.text(report, width, None if everything else 30)


def search(
    paths: tuple[str, ...], options: Options, form: str, output: str | None, fail_above: float | None
) -> int:
    """Search code for hang points without running it."""
    from hangscan.static import report as reports
    from hangscan.static import search as look

    found = look([Path(path) for path in paths], options)
    text = reports.render(found, form, __version__, Path.cwd())
    if output is not None:
        Path(output).write_text(text, encoding="utf-8")
    else:
        click.echo(text, nl=not text.endswith("\n"))
    return FAILED if fail_above is not None and found.points else 0
