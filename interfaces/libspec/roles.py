"""The small language of roles: `in[n]`, `out[result]`, `data`, `option < 10000 ? value`."""

from __future__ import annotations

import re

from interfaces.libspec.model import PART_KINDS, CType, Guarded, Part

_PART = re.compile(r"\s*(?P<kind>[a-z]+)(?:\s*\[(?P<expr>.*)\]|\s+(?P<name>[A-Za-z_]\w*))?\s*", re.DOTALL)


class RoleError(Exception):
    """A role that cannot be read; `str()` says why."""


def parse(text: str) -> Guarded:
    """`CONDITION ? ROLE, ROLE` or `ROLE, ROLE`."""
    when, mark, rest = text.rpartition(" ? ")
    if mark and not _balanced(when):
        when, rest = "", text
    return Guarded(when.strip(), tuple(_part(piece) for piece in _split(rest if mark else text)))


def _part(text: str) -> Part:
    match = _PART.fullmatch(text)
    if match is None or match["kind"] not in PART_KINDS:
        known = ", ".join(PART_KINDS)
        raise RoleError(f"{text.strip()!r} is no role; roles are {known}")
    kind, expression, name = match["kind"], match["expr"], match["name"]
    if kind in ("new", "malloc"):
        if name != "string":
            raise RoleError(f"{kind!r} is followed by 'string'")
        return Part(kind)
    takes = PART_KINDS[kind]
    if takes and expression is None:
        raise RoleError(f"{kind!r} needs a size in brackets, as in {kind}[n]")
    if takes is False and (expression is not None or name is not None):
        raise RoleError(f"{kind!r} takes no argument")
    if kind in ("callback", "param") and name is None:
        raise RoleError(f"{kind!r} is followed by a name")
    return Part(kind, (expression if expression is not None else name or "").strip())


def _balanced(text: str) -> bool:
    return text.count("[") == text.count("]") and text.count("(") == text.count(")")


def _split(text: str) -> list[str]:
    """Pieces between commas that stand outside brackets."""
    pieces, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        elif char == "," and depth == 0:
            pieces.append(text[start:at])
            start = at + 1
    if depth:
        raise RoleError(f"brackets do not match in {text.strip()!r}")
    return [*pieces, text[start:]]


def default(kind: CType, pointee: str, handles: frozenset[str], *, given: bool) -> Guarded | None:
    """What a value is when the file does not say; None where it must say.

    `given`: the value goes to the side that did not make it (a callback's parameter, a result): characters
    are text to be handed over, and a scalar behind a pointer is input.
    """
    part: Part | None = None
    if kind.kind in ("integer", "floating"):
        part = Part("value")
    elif kind.kind == "void":
        part = Part("void")
    elif kind.kind == "pointer":
        if pointee in handles:
            part = Part("handle")
        elif pointee == "char" and kind.constant:
            part = Part("string")
        elif (pointee.rstrip("*").strip() in handles and pointee.count("*") == 1) or (
            not kind.constant
            and kind.pointee_kind in ("integer", "floating")
            and pointee != "char"
            and not given
        ):
            part = Part("out", "1")
    return None if part is None else Guarded("", (part,))
