"""`rr-py doctor`: can this machine record? Each check says what was found, what is needed and the fix."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from interfaces.errors import ExitStatus
from rr_py import checks
from rr_py.checks import Check

TRIAL_SECONDS = 60
TRIAL_OUTPUT = b"recorded\n"

EPILOG = """\
\b
Examples:
  rr-py doctor
  rr-py doctor --json | jq '.checks[] | select(.state != "ok")'

\b
Exit status: 0 if recording works here, 125 if not.
"""


def check_trial() -> Check:
    """Record a small program and replay it, with this installation."""
    needed = "a program recorded and replayed"
    tool = [sys.executable, "-m", "rr_py"]
    program = [sys.executable, "-I", "-S", "-c", "print('recorded')"]
    with tempfile.TemporaryDirectory(prefix="rr-py-doctor-") as folder:
        trace = str(Path(folder) / "trial.bin")
        for verb in (["record", "-q", "-o", trace, "--", *program], ["replay", trace]):
            try:
                run = subprocess.run(
                    [*tool, *verb], stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_SECONDS
                )
            except subprocess.TimeoutExpired:
                return Check(
                    "trial",
                    "fail",
                    f"{verb[0]} did not end in {TRIAL_SECONDS} s",
                    needed,
                    "This is a bug: please report it with the output of rr-py doctor --json.",
                )
            if run.returncode != 0 or run.stdout != TRIAL_OUTPUT:
                said = run.stderr.decode(errors="replace").strip().splitlines()
                found = f"{verb[0]} ended with status {run.returncode}" + (f": {said[0]}" if said else "")
                return Check(
                    "trial",
                    "fail",
                    found,
                    needed,
                    "If all checks above are well, this is a bug: please report it.",
                )
    return Check("trial", "ok", "a program was recorded and replayed", needed)


def all_checks() -> list[Check]:
    """Every check in order; the trial only where nothing before it failed."""
    from interfaces.abi import RING_SIZE

    found = [
        checks.check_machine(),
        checks.check_kernel(),
        checks.check_user_dispatch(),
        checks.check_time_stamp_counter(),
        checks.check_cpuid(),
        checks.check_ptrace(),
        checks.check_personality(),
        checks.check_container(),
        checks.check_proc(),
        checks.check_disk(Path.cwd()),
        checks.check_log_memory(RING_SIZE),
        checks.check_core(),
    ]
    if all(check.state != "fail" for check in found):
        found.append(check_trial())
    return found


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def command(as_json: bool) -> int:
    """Check whether this machine can record: kernel, permissions, container, disk, memory."""
    found = all_checks()
    works = all(check.state != "fail" for check in found)
    if as_json:
        report = {"works": works, "checks": [dataclasses.asdict(check) for check in found]}
        click.echo(json.dumps(report, indent=2))
    else:
        width = max(len(check.name) for check in found)
        for check in found:
            click.echo(f"{check.state:4}  {check.name:{width}}  {check.found}")
            if check.state != "ok":
                indent = " " * (width + 8)
                click.echo(f"{indent}needed: {check.needed}\n{indent}fix: {check.fix}")
        click.echo("recording works here" if works else "recording cannot work here")
    return int(ExitStatus.OK if works else ExitStatus.TOOL_FAILED)
