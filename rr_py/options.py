"""Options the verbs share, and the click classes that read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class OptionalValue(click.Option):
    """An option whose value may be left out, and is then `bare`: `--checksum` or `--checksum=100`.

    The value is only ever what follows `=`. click's own optional values would take the next word, which in
    `rr-py record --checksum ls` is the program. Works in an `OptionalValueCommand`.
    """

    def __init__(self, *args: Any, bare: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bare = bare

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None:
            return None
        names, text = record
        metavar = self.make_metavar(ctx)
        return names.replace(f" {metavar}", f"[={metavar}]"), text


class OptionalValueCommand(click.Command):
    """A command that may have `OptionalValue` options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        bare: dict[str, str] = {}
        takes_value: set[str] = set()
        for param in self.params:
            if isinstance(param, OptionalValue):
                bare.update(dict.fromkeys(param.opts, param.bare))
            elif isinstance(param, click.Option) and not param.is_flag and not param.count:
                takes_value.update(param.opts)
        return super().parse_args(ctx, _spell_out(args, bare, takes_value, ctx.allow_interspersed_args))


def _spell_out(args: list[str], bare: dict[str, str], takes_value: set[str], interspersed: bool) -> list[str]:
    """`args` with every lone option of `bare` turned into `--option=VALUE`, up to where options end."""
    result: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--" or (not interspersed and not word.startswith("-")):
            result.append(word)
            break
        if word in bare:
            result.append(f"{word}={bare[word]}")
            continue
        result.append(word)
        if word in takes_value and (value := next(words, None)) is not None:
            result.append(value)
    result.extend(words)
    return result


def trace_argument(function: F) -> F:
    """The optional TRACE argument: a file; none means the newest one here."""
    return click.argument("trace", required=False, type=click.Path(), metavar="[TRACE]")(function)


def process_option(function: F) -> F:
    """-p PID: one recorded process instead of the whole tree."""
    return click.option(
        "-p", "--pid", type=click.IntRange(min=1), metavar="PID", help="Only this recorded process."
    )(function)
