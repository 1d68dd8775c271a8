"""`rr-py dump`: the events of a trace as text, as JSON lines, or in a form made for diffing."""

from __future__ import annotations

import errno
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from rr_py.messages import say
from rr_py.options import process_option, trace_argument

if TYPE_CHECKING:
    from tracefile import TraceReader

ALL_ERRNOS = frozenset(errno.errorcode)

EPILOG = """\
\b
Examples:
  rr-py dump                                    all calls of all processes, in order of time
  rr-py dump --call openat,%network --errno any
  rr-py dump --path '/etc/*' --pid 4711
  rr-py dump --range 1000:1100 --numbers        events 1000 to 1100 of each process
  rr-py dump --json | jq -r 'select(.error) | .call'
  diff <(rr-py dump --deterministic good.bin) <(rr-py dump --deterministic bad.bin)

\b
%FAMILY stands for all calls of a family, as in strace: see rr-py dump --call %list.
"""


def read_calls(
    context: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> frozenset[int] | None:
    """The numbers of the calls that --call names."""
    if not words:
        return None
    from interfaces.calls import CALLS

    by_name = {call.name: number for number, call in CALLS.items()}
    families: dict[str, set[int]] = {}
    for number, call in CALLS.items():
        families.setdefault(call.family, set()).add(number)
    chosen: set[int] = set()
    for name in (name for word in words for name in word.split(",") if name):
        if name == "%list":
            click.echo(
                "\n".join(
                    f"%{family:12} {', '.join(sorted(CALLS[n].name for n in numbers))}"
                    for family, numbers in sorted(families.items())
                )
            )
            context.exit()
        if name.startswith("%") and name[1:] in families:
            chosen |= families[name[1:]]
        elif name in by_name:
            chosen.add(by_name[name])
        elif name.isdecimal():
            chosen.add(int(name))
        else:
            raise click.BadParameter(
                no_such("call", name, [*by_name, *(f"%{family}" for family in families)])
            )
    return frozenset(chosen)


def read_errnos(
    context: click.Context, param: click.Parameter, words: tuple[str, ...]
) -> frozenset[int] | None:
    """The numbers of the errors that --errno names."""
    if not words:
        return None
    by_name = {name: number for number, name in errno.errorcode.items()}
    chosen: set[int] = set()
    for name in (name for word in words for name in word.split(",") if name):
        if name.lower() == "any":
            chosen |= ALL_ERRNOS
        elif name.upper() in by_name:
            chosen.add(by_name[name.upper()])
        elif name.isdecimal():
            chosen.add(int(name))
        else:
            raise click.BadParameter(no_such("error", name, [*by_name, "any"]))
    return frozenset(chosen)


def no_such(what: str, name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"no {what} {name!r}" + (f"; did you mean {close[0]}?" if close else "")


def read_range(context: click.Context, param: click.Parameter, word: str | None) -> tuple[int, int | None]:
    """A:B, A: or :B or a single number, as first and last event."""
    if word is None:
        return 0, None
    match = re.fullmatch(r"(\d*)(:?)(\d*)", word)
    if not match or not (match[1] or match[3]):
        raise click.BadParameter(f"{word!r} is not FIRST:LAST (event numbers; either may be left out)")
    first = int(match[1] or 0)
    last = int(match[3]) if match[3] else (None if match[2] else first)
    if last is not None and last < first:
        raise click.BadParameter(f"{word!r} ends before it begins")
    return first, last


@click.command(epilog=EPILOG)
@trace_argument
@process_option
@click.option(
    "-c",
    "--call",
    "calls",
    multiple=True,
    callback=read_calls,
    metavar="NAME,...",
    help="Only these calls: names, numbers or %FAMILY.",
)
@click.option(
    "--path",
    "paths",
    multiple=True,
    metavar="PATTERN",
    help="Only calls that name a path matching PATTERN (* ? [...]), or one below it.",
)
@click.option(
    "--errno",
    "errnos",
    multiple=True,
    callback=read_errnos,
    metavar="NAME,...",
    help="Only calls that failed with one of these errors; 'any': only those that failed.",
)
@click.option(
    "--range", "span", callback=read_range, metavar="A:B", help="Only events number A to B of each domain."
)
@click.option("-n", "--numbers", is_flag=True, help="Put domain and event number before each line.")
@click.option("-t", "--time", "times", is_flag=True, help="Put the seconds since the start before each line.")
@click.option(
    "-s",
    "--strings",
    type=click.IntRange(min=0),
    default=32,
    show_default=True,
    metavar="N",
    help="Show at most N characters of a string.",
)
@click.option(
    "-a",
    "--all",
    "everything",
    is_flag=True,
    help="Also show what is only about recording: hand-overs, checksums, preemptions.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--deterministic",
    is_flag=True,
    help="Leave out what differs between recordings of the same behaviour (addresses, ids, times), "
    "and print process after process: for diff.",
)
def command(
    trace: str | None,
    pid: int | None,
    calls: frozenset[int] | None,
    paths: tuple[str, ...],
    errnos: frozenset[int] | None,
    span: tuple[int, int | None],
    numbers: bool,
    times: bool,
    strings: int,
    everything: bool,
    as_json: bool,
    deterministic: bool,
) -> None:
    """Print the events of TRACE, as strace -f prints them, in the order in which they ended."""
    from rr_py.events import Filter, Lines, Selection
    from rr_py.events import as_json as json_of
    from rr_py.traces import chosen
    from tracefile import TraceReader

    wanted = Filter(
        pid=pid, calls=calls, errnos=errnos, paths=paths, first=span[0], last=span[1], everything=everything
    )
    with TraceReader.open(chosen(trace)) as reader:
        check_process(reader, pid)
        selection = Selection(reader, wanted, by_domain=deterministic)
        lines = Lines(reader, selection.tasks, deterministic=deterministic, strings=strings)
        zero = min((info.time for info in reader.domains.values()), default=0)

        def rows() -> Iterator[str]:
            for event, regions in selection:
                text = lines.text(event, regions)
                if as_json:
                    yield json.dumps(json_of(event, regions, selection.tasks, text, strings))
                    continue
                label = f"{event.domain}:{event.number:<7} " if numbers else ""
                if times and not deterministic:
                    label += f"{(event.time_out - zero) / 1e9:12.6f} "
                yield label + lines.label(event) + text

        write_lines(rows(), sys.stdout.write)
        if reader.stopped and not as_json:
            sys.stdout.flush()
            say(reader.stopped)


def write_lines(rows: Iterator[str], write: Callable[[str], object], batch: int = 256) -> None:
    """Write lines in batches; a character that has no UTF-8 form is shown by its number."""
    pending: list[str] = []
    for row in rows:
        pending.append(row if row.isascii() else row.encode("utf-8", "backslashreplace").decode("utf-8"))
        if len(pending) >= batch:
            write("\n".join(pending) + "\n")
            pending.clear()
    if pending:
        write("\n".join(pending) + "\n")


def check_process(reader: TraceReader, pid: int | None) -> None:
    """Raise `NoProcessError` if the trace has no such process or thread group."""
    from tracefile.processes import NoProcessError, processes

    if pid is None:
        return
    known = {process.pid for process in processes(reader)}
    if pid not in known:
        raise NoProcessError(pid, known)
