"""The `rr-py` command: which verbs there are, and how the right module is loaded for one.

Only the module of the verb that is used is imported, so `record` starts quickly: its helps are listed here.
"""

from __future__ import annotations

import importlib

import click

from rr_py import __version__

VERBS = {
    "record": "Run a program and record everything it sees of its environment.",
    "replay": "Run a recording again: same instructions, same memory, same output.",
    "dump": "Print the events of a trace, as strace prints them.",
    "info": "Say what a trace holds, and where it stops.",
    "ps": "Show the tree of recorded processes.",
    "stack": "Show the native and Python stacks of all threads at an event.",
    "why": "Say what a blocked or failed call waited for, and who made it.",
    "core": "Write a core file of a recorded process at an event.",
    "scan": "Find what blocks an event loop: the hangs that were, and those that would be elsewhere.",
    "patterns": "Show, merge and export the patterns of blocking calls that scans have learnt.",
    "interface": "Library interfaces: list them, check them against a program, find the cheapest.",
    "attach": "Watch a running process at a library interface: a live log, and calls that take long.",
    "tui": "Browse a trace in the terminal.",
    "diff": "Compare two traces: the first event that differs in what matters.",
    "pack": "Store all files the recording needs in the trace, to replay it elsewhere.",
    "doctor": "Check whether this machine can record: found, needed, fix.",
    "completion": "Print the completion script for a shell.",
}

EPILOG = """\
\b
Examples:
  rr-py record ./app --verbose        record; the program's options are its own
  rr-py replay                        replay the newest trace here
  rr-py dump --call openat --errno ENOENT
  rr-py doctor                        can this machine record?

\b
Exit status: that of the recorded program (record, replay), or
  124  the replay diverged from the recording
  125  rr-py failed, or was used wrongly
  126  the program cannot be run (or recorded)
  127  the program was not found
A program killed by a signal ends rr-py by the same signal.
"""


class Verbs(click.Group):
    """The verbs, each a module of `rr_py.commands` with a click command named `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command = importlib.import_module(f"rr_py.commands.{name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in VERBS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        message = f"no command {name!r}"
        import shutil
        from difflib import get_close_matches

        if close := get_close_matches(name, VERBS, n=1):
            message += f"; did you mean {close[0]}?"
        elif shutil.which(name):
            message += f"; to record that program: rr-py record {name}"
        raise click.UsageError(message, ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=Verbs,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", "-V", prog_name="rr-py", message="%(prog)s %(version)s")
def cli() -> None:
    """Record a program once, replay it exactly, as often as you like.

    Works in any x86-64 virtual machine or container with Linux 5.11 or newer: no performance counters, no
    root, no kernel module. The trace is one file.
    """
