"""Pieces of C that stubs are put together from: values as words, declarations, sizes, choices of a role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from interfaces.libspec.model import CType, Parameter

_OLD = re.compile(r"\bold\s*\(")


class Olds:
    """`old(EXPR)` turned into variables that are set before the call."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def replace(self, text: str) -> str:
        while match := _OLD.search(text):
            depth, at = 1, match.end()
            while depth:
                depth += {"(": 1, ")": -1}.get(text[at], 0)
                at += 1
            inner = text[match.end() : at - 1].strip()
            name = self.found.setdefault(inner, f"rr_old{len(self.found)}")
            text = f"{text[: match.start()]}{name}{text[at:]}"
        return text

    def declare(self) -> Iterator[str]:
        for inner, name in self.found.items():
            yield f"\t__typeof__({inner}) {name} = ({inner});"


def bytes_of(kind: CType, count: str) -> str:
    """Bytes of `count` elements behind a pointer of this type."""
    if kind.pointee_kind == "void" or not kind.pointee or kind.pointee.replace("const", "").strip() == "char":
        return f"(i64)({count})"
    return f"(i64)({count}) * (i64)sizeof({kind.pointee})"


def as_word(name: str, kind: CType) -> str:
    """A value as 64 bits."""
    if kind.kind == "floating":
        return f"({{ double rr_d = {name}; u64 rr_w; memcpy(&rr_w, &rr_d, 8); rr_w; }})"
    if kind.kind == "integer":
        return f"(u64)(i64){name}"
    return f"(u64){name}"


def from_word(word: str, name: str, kind: CType) -> str:
    """Statement that sets a variable from 64 bits."""
    if kind.kind == "floating":
        return f"{{ double rr_d; u64 rr_w = {word}; memcpy(&rr_d, &rr_w, 8); {name} = rr_d; }}"
    return f"{name} = ({kind.bare})({word});"


def names_of(parameters: Sequence[Parameter]) -> str:
    return ", ".join(parameter.name for parameter in parameters)


def declare_all(parameters: Sequence[Parameter]) -> str:
    return ", ".join(parameter.type.declare(parameter.name) for parameter in parameters)


def place_of(i: int) -> str:
    return f"rr_c.args[{i}]" if i < 6 else f"rr_c.more[{i - 6}]"


def branches(parameter: Parameter, statements: Sequence[list[str]]) -> list[str]:
    """The statements of the role whose condition holds."""
    if len(parameter.roles) == 1 and not parameter.roles[0].when:
        return statements[0]
    lines: list[str] = []
    for i, (guarded, body) in enumerate(zip(parameter.roles, statements, strict=True)):
        head = "else " if i else ""
        test = f"if (rr_g_{parameter.name} == {i})"
        lines.append(f"\t{head}{test} {{ {' '.join(line.strip() for line in body)} }}")
        del guarded
    return lines


def guard(parameter: Parameter) -> Iterator[str]:
    if len(parameter.roles) > 1 or parameter.roles[0].when:
        value = "-1"
        for i in reversed(range(len(parameter.roles))):
            when = parameter.roles[i].when
            value = f"({when}) ? {i} : {value}" if when else str(i)
        yield f"\tint rr_g_{parameter.name} = {value};"


def returning(kind: CType, call: str) -> str:
    return f"{call}; return;" if kind.kind == "void" else f"return {call};"


def original(returns: CType, parameters: Sequence[Parameter], name: str, value: str, more: str = "") -> str:
    types = ", ".join([p.type.bare for p in parameters] + ([more] if more else [])) or "void"
    return f"\t{returns.declare(f'(*{name})({types})')} = {value};"
