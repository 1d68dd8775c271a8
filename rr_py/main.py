"""The one funnel: whatever a verb raises becomes a message on stderr and an exit status here.

    RrPyError            rr-py: what is wrong (found, needed)
                           the remedy                                    its own status
    click.UsageError     the same, with a pointer to --help              125
    closed stdout        nothing                                         dies of SIGPIPE
    Ctrl-C               nothing                                         dies of SIGINT
    anything else        one line, and the path of a saved report        125

A traceback is shown only with RR_PY_DEBUG=1.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from interfaces.errors import ExitStatus, RrPyError
from rr_py import __version__
from rr_py.ending import die_of, drop_output, flush_streams
from rr_py.messages import say
from rr_py.quick import plain

COMPLETE_VARIABLE = "_RR_PY_COMPLETE"
"""Set by a completing shell; the name is what click's scripts expect of `rr-py`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `rr-py` with `argv` (default: the process's own) and return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if instruction := os.environ.get(COMPLETE_VARIABLE):
            return _complete(instruction)
        simple = plain(arguments)
        status = simple() if simple is not None else _run(arguments)
        flush_streams()
        return status
    except KeyboardInterrupt:
        drop_output()
        die_of(signal.SIGINT)
    except RrPyError as why:
        if _debugging():
            raise
        say(why.message, why.remedy)
        return int(why.status)
    except OSError as why:
        if _debugging():
            raise
        return _os_error(why)
    except Exception as why:
        if _debugging():
            raise
        return _internal_error(why, arguments)


def _complete(instruction: str) -> int:
    """Answer a completing shell."""
    from click.shell_completion import shell_complete

    from rr_py.cli import cli

    return shell_complete(cli, {}, "rr-py", COMPLETE_VARIABLE, instruction)


def _run(arguments: list[str]) -> int:
    """Parse and run one verb; click's ways to end become a status."""
    import click

    from rr_py.cli import cli

    try:
        with cli.make_context("rr-py", arguments) as context:
            status = cli.invoke(context)
        return int(status) if status is not None else int(ExitStatus.OK)
    except click.exceptions.NoArgsIsHelpError as why:
        click.echo(why.format_message())
        return int(ExitStatus.TOOL_FAILED)
    except click.exceptions.Exit as why:
        return why.exit_code
    except click.UsageError as why:
        path = why.ctx.command_path if why.ctx else "rr-py"
        say(why.format_message().rstrip("."), f"See {path} --help.")
        return int(ExitStatus.TOOL_FAILED)
    except click.ClickException as why:
        say(why.format_message())
        return int(ExitStatus.TOOL_FAILED)


def _debugging() -> bool:
    return os.environ.get("RR_PY_DEBUG", "") not in ("", "0")


def _stdout_closed() -> bool:
    """True if nobody can read what this process writes to stdout."""
    poll = select.poll()
    poll.register(1, select.POLLOUT)
    return any(events & (select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0))


def _os_error(why: OSError) -> int:
    """An operating-system error no layer below has explained."""
    if isinstance(why, BrokenPipeError) and _stdout_closed():
        drop_output()
        die_of(signal.SIGPIPE)
    if why.filename is not None:
        name = os.fsdecode(why.filename) if isinstance(why.filename, str | bytes) else str(why.filename)
        say(f"{name}: {why.strerror}", "Check that the path exists and that you may use it.")
        return int(ExitStatus.TOOL_FAILED)
    if why.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        say(f"cannot write the output: {why.strerror}", "Free some space, or write elsewhere.")
        drop_output()
        return int(ExitStatus.TOOL_FAILED)
    return _internal_error(why, sys.argv[1:])


def _internal_error(why: Exception, arguments: list[str]) -> int:
    """Save what a bug report needs and name the file."""
    summary = f"{type(why).__name__}: {why}".splitlines()[0]
    try:
        path = _save_report(why, arguments)
    except OSError as cannot:
        say(
            f"internal error: {summary}",
            f"The report could not be saved ({cannot.strerror}). RR_PY_DEBUG=1 shows the traceback.",
        )
    else:
        say(
            f"internal error: {summary}",
            f"This is a bug. The report is in {path}\nRR_PY_DEBUG=1 shows the traceback.",
        )
    return int(ExitStatus.TOOL_FAILED)


def _save_report(why: Exception, arguments: list[str]) -> Path:
    """Write a report file, readable by its owner only, to the user's state folder or to the temporary one."""
    import platform
    import shlex
    import tempfile
    import traceback

    import platformdirs

    text = "\n".join(
        [
            f"rr-py {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: rr-py {shlex.join(arguments)}",
            "",
            "".join(traceback.format_exception(why)),
        ]
    )
    folder: Path | None = Path(platformdirs.user_state_dir("rr-py")) / "reports"
    assert folder is not None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="error-", suffix=".txt", dir=folder)
    except OSError:
        handle, name = tempfile.mkstemp(prefix="rr-py-error-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return Path(name)
