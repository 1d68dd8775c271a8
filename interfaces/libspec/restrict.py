"""An interface without the functions that a program does not need: a shorter text in the trace."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection

from interfaces.libspec.errors import SpecError
from interfaces.libspec.model import Interface

_LINE = re.compile(r"([A-Za-z_]\w*) = \{.*\}\s*")
_TABLE = re.compile(r"\[function\.([A-Za-z_]\w*)\]\s*")


def restrict(interface: Interface, only: Collection[str]) -> Interface:
    """The interface with only these functions and those their sizes call, and with a text that says the same.

    Raises SpecError for a function that it does not have.
    """
    from interfaces.libspec.load import parse

    for name in only:
        if name not in interface.functions:
            raise SpecError(interface.path, "", "only", f"{interface.name} has no function {name!r}")
    wanted = set(only)
    while more := {word for name in wanted for word in _called(interface, name)} - wanted:
        wanted |= more
    kept = {name: function for name, function in interface.functions.items() if name in wanted}
    text = _without(interface.text, interface.functions.keys() - kept.keys())
    try:
        same = parse(text, interface.path).functions.keys() == kept.keys()
    except SpecError:
        same = False
    if not same:
        raise SpecError(
            interface.path,
            "",
            "only",
            "cannot be shortened: functions must stand on a line or in a table of their own",
        )
    return dataclasses.replace(interface, functions=kept, text=text)


def _called(interface: Interface, name: str) -> set[str]:
    function = interface.functions[name]
    roles = [function.result, *(role for parameter in function.parameters for role in parameter.roles)]
    texts = [part.argument for role in roles for part in role.parts]
    texts += [
        text for extra in (*function.outputs, *function.inputs) for text in (extra.size, extra.expression)
    ]
    return set(re.findall(r"[A-Za-z_]\w*(?=\s*\()", " ".join(texts))) & interface.functions.keys()


def _without(text: str, dropped: Collection[str]) -> str:
    """The text without comments, empty lines and the functions that are dropped."""
    kept: list[str] = []
    section, leaving = "", False
    for line in text.splitlines():
        if line.startswith("["):
            table = _TABLE.fullmatch(line)
            leaving = table is not None and table[1] in dropped
            section = line.strip()
        if leaving or not line.strip() or line.startswith("#"):
            continue
        one = _LINE.fullmatch(line) if section == "[function]" else None
        if one is None or one[1] not in dropped:
            kept.append(line)
    return "\n".join(kept) + "\n"
