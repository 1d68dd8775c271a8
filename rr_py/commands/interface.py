"""`rr-py interface`: library interfaces: which there are, whether one is complete, which is cheapest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rr_py.messages import say
from rr_py.text import count, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interfaces.libspec.chooser import Choice, Flow
    from rr_py.suggesting import SystemRun

SHOWN = 30
STACK_SHOWN = 12
FUNCTIONS_SHOWN = 15
COMPLETE = ("libc", "pthread")
"""Interfaces that leave out what works on the program's own memory: their imports are no omissions."""

EPILOG = """\
\b
Examples:
  rr-py interface list
  rr-py interface validate ./thing.toml
  rr-py interface check --interface sqlite3 -- ./app
  rr-py interface suggest -o app.toml -- ./app
"""

PROGRAM_SETTINGS = {"allow_interspersed_args": False}


@click.group(epilog=EPILOG)
def command() -> None:
    """Library interfaces: list them, check them against a program, find the cheapest.

    An interface is a TOML file that says what crosses a library's functions; see docs/interfaces.md.
    """


@command.command("list")
def list_command() -> None:
    """List the interfaces that come with the tool."""
    from interfaces.libspec import load, shipped

    for name in shipped():
        interface = load(name)
        click.echo(f"{name:10}  {count(len(interface.functions), 'function'):>14}  {interface.title}")


@command.command("validate")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def validate_command(files: tuple[str, ...]) -> None:
    """Check interface files, and say what is in them."""
    from interfaces.libspec import load

    for name in files:
        interface = load(name)
        click.echo(
            f"{name}: {', '.join(interface.libraries)}: {count(len(interface.functions), 'function')}, "
            f"{count(len(interface.callbacks), 'callback')}"
        )


@command.command("schema")
def schema_command() -> None:
    """Print the JSON schema of interface files, for editors."""
    import json

    from interfaces.libspec.schema import schema

    click.echo(json.dumps(schema(), indent=2))


@command.command("check", context_settings=PROGRAM_SETTINGS)
@click.option("--interface", "interfaces", multiple=True, required=True, metavar="NAME")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, required=True, metavar="PROGRAM [ARGS]...")
def check_command(interfaces: tuple[str, ...], program: tuple[str, ...]) -> None:
    """Run PROGRAM and list what it takes from its environment past the interface.

    What is listed must come out the same in replay by itself, or needs an interface of its own.
    """
    from interfaces.libspec import load_all
    from recorder import RecordOptions
    from rr_py.escaping import check

    chosen = load_all(interfaces)
    found = check(RecordOptions(command=list(program)), chosen)
    for name, functions in found.missing.items():
        if functions and name not in COMPLETE:
            click.echo(
                f"{name}: {count(len(functions), 'function')} the program imports are not in the file: "
                f"{', '.join(functions[:SHOWN])}{' ...' if len(functions) > SHOWN else ''}"
            )
    click.echo(f"{count(found.crossing, 'system call')} beneath the interface ({', '.join(interfaces)})")
    if found.loading:
        click.echo(f"{count(found.loading, 'system call')} of the dynamic linker, which replay makes again")
    if found.programs > 1:
        click.echo(f"{count(found.programs, 'process', 'processes')} and programs of theirs")
    if found.further:
        click.echo(f"{count(found.further, 'further process', 'further processes')}, not looked at")
    if found.unplaced:
        click.echo(f"{count(found.unplaced, 'system call')} whose stack cannot be read")
    if found.unread:
        click.echo(f"{count(found.unread, 'further system call')}, not looked at")
    for note in found.notes:
        click.echo(note)
    if not found.escapes:
        click.echo("nothing escapes the interface")
        return
    click.echo(f"{count(sum(escape.calls for escape in found.escapes), 'system call')} past the interface:")
    for escape in found.escapes[:SHOWN]:
        why = f"  ({escape.why})" if escape.why else ""
        click.echo(f"\n{count(escape.calls):>9}  {escape.what}  {size(escape.octets)}{why}")
        for line in escape.stack[:STACK_SHOWN]:
            click.echo(f"{'':11}{line}")
        if len(escape.stack) > STACK_SHOWN:
            click.echo(f"{'':11}... {count(len(escape.stack) - STACK_SHOWN, 'more frame')}")
    if len(found.escapes) > SHOWN:
        click.echo(f"\nand {count(len(found.escapes) - SHOWN, 'more place')}")


@command.command("suggest", context_settings=PROGRAM_SETTINGS)
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write the interface file here.")
@click.option("--svg", type=click.Path(), metavar="FILE", help="Write a picture of the graph and the cut.")
@click.option(
    "--also",
    multiple=True,
    metavar="ARGS",
    help="Profile PROGRAM with these arguments, too (words as a shell reads them); may be given again.",
)
@click.option(
    "--measure/--no-measure",
    default=True,
    help="Also record at the cut, replay that, and suggest what is smaller and replays the same (default).",
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, required=True, metavar="PROGRAM [ARGS]...")
def suggest_command(
    output: str | None, svg: str | None, also: tuple[str, ...], measure: bool, program: tuple[str, ...]
) -> None:
    """Profile runs of PROGRAM and compute the interface that is cheapest to log.

    Each run is made at the system-call interface, where stacks tell what lies beneath each function, and
    once for each of the program's libraries that has an interface. With debug information, the program's own
    functions are watched, too. The data flow makes a graph; the suggestion is the minimum cut between
    environment and program.
    """
    from interfaces.libspec import ADDED
    from interfaces.libspec.chooser import choices, picture
    from recorder import RecordOptions
    from recorder.library_profile import profile
    from recorder.repeat import Repeat, repeatable_input
    from rr_py.internal import OWN
    from rr_py.suggesting import chosen, smallest, system_run, text_of

    runs_of = [list(program), *([program[0], *_words(args)] for args in also)]
    options = [RecordOptions(command=words) for words in runs_of]
    repeat = Repeat()
    with repeatable_input():
        say("profiling at system calls")
        system = system_run(options[0], repeat)
        for one in options[1:]:
            system.add(system_run(one, repeat))
        flows, runs = profile(options, system.shares, system.own.interface(), repeat, say)
        every = choices(flows)
        choice = every[0]
        _show_functions(system)
        _show_flows(flows, choice)
        click.echo("")
        at_calls = False
        if measure:
            say("recording at the cut, and replaying that")
            rows, best = smallest(options, every, runs, system, repeat, say)
            table([("system calls", system.events, system.size), *rows])
            at_calls = best is None
            choice = best or choice
    interfaces = chosen(choice, runs, system.own)
    if svg:
        Path(svg).write_text(picture(choice.flows, choice), encoding="utf-8")
    if at_calls:
        click.echo("suggested: the system-call interface: record without --interface")
        return
    names = " ".join(f"--interface {item.name}" for item in interfaces if item.name not in (*ADDED, OWN))
    own = next((item for item in interfaces if item.name == OWN), None)
    click.echo(f"suggested: {names}" + (f" and at {', '.join(own.functions)} of the program" if own else ""))
    if output:
        text = text_of(program, interfaces, runs, system.own, SHOWN)
        Path(output).write_text(text, encoding="utf-8")
        click.echo(f"written to {output}; record with: rr-py record --interface {output} -- {program[0]} ...")
    elif own:
        click.echo("write the interface file with -o FILE")


def _words(text: str) -> list[str]:
    """The words of a text as a shell reads them."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError as why:
        raise click.BadParameter(f"{text!r} cannot be read: {why}", param_hint="--also") from None


def _show_functions(system: SystemRun) -> None:
    """The functions with most beneath them, and which of the program's own can be cut."""
    own = system.own
    stated = own.statements()
    click.echo(f"{'system calls':>12}  {'bytes':>9}  {'calls':>7}  beneath the function")
    by_size = sorted(system.functions.items(), key=lambda item: (-item[1].octets, -item[1].system_calls))
    for (path, function), beneath in by_size[:FUNCTIONS_SHOWN]:
        note = ""
        if own.homes.get(function) == path:
            note = "  can be cut" if function in stated else f"  {own.refused.get(function, '')}"
        click.echo(
            f"{count(beneath.system_calls):>12}  {size(beneath.octets):>9}  {count(beneath.calls):>7}  "
            f"{function} ({os.path.basename(path)}){note}"
        )
    if own.problem:
        click.echo(f"the program's own functions could not be watched: {own.problem}")


def _show_flows(flows: Sequence[Flow], choice: Choice) -> None:
    click.echo(f"\n{'from':20}  {'to':20}  {'calls':>10}  {'bytes':>9}  {'cost':>9}")
    cut = set(choice.cut)
    for flow in sorted(flows, key=lambda flow: (flow.source, flow.target)):
        mark = f"  cut: {flow.interface}" if flow in cut else ""
        click.echo(
            f"{flow.source:20}  {flow.target:20}  {count(flow.calls):>10}  {size(flow.octets):>9}  "
            f"{size(int(flow.cost)):>9}{mark}"
        )


def table(rows: Sequence[tuple[str, int, int]]) -> None:
    """What each interface costs."""
    click.echo(f"{'interface':40}  {'events':>10}  {'trace':>9}")
    for name, events, octets in rows:
        click.echo(f"{name:40}  {count(events):>10}  {size(octets):>9}")
