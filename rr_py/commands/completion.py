"""`rr-py completion SHELL`: the script that makes a shell complete verbs, options and files."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rr_py.main import COMPLETE_VARIABLE

EPILOG = """\
\b
Examples:
  eval "$(rr-py completion bash)"                        in ~/.bashrc
  eval "$(rr-py completion zsh)"                         in ~/.zshrc
  rr-py completion fish > ~/.config/fish/completions/rr-py.fish
"""


def shell_from_environment() -> str | None:
    """The user's login shell, if there is a script for it."""
    name = Path(os.environ.get("SHELL", "")).name
    return name if name in ("bash", "zsh", "fish") else None


@click.command(epilog=EPILOG)
@click.argument(
    "shell", type=click.Choice(["bash", "zsh", "fish"]), default=shell_from_environment, required=False
)
@click.pass_context
def command(context: click.Context, shell: str | None) -> None:
    """Print the completion script for SHELL (default: the one in $SHELL)."""
    from click.shell_completion import get_completion_class

    if shell is None:
        raise click.UsageError("which shell? bash, zsh or fish", context)
    completion = get_completion_class(shell)
    assert completion is not None
    assert context.parent is not None
    click.echo(completion(context.parent.command, {}, "rr-py", COMPLETE_VARIABLE).source())
