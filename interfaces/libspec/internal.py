"""What crosses a function that no interface file describes: stated from its types and what it was seen to do.

A function can be cut only if every byte that its calls changed for the rest of the program is one that its
parameters' types say (isolation). Whoever reads types and watches calls fills in `Signature` and `Watched`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from interfaces.libspec.cdecl import HELPERS, PRELUDE

MOST_BYTES = 65536
"""A structure larger than this is not handed over."""
_TAKEN = HELPERS | set(PRELUDE.replace(";", " ").split()) | {"result", "memcpy", "malloc", "free"}
_TAKEN |= {"u8", "u16", "u32", "u64", "i32", "i64", "asm", "inline", "typeof"}
"""Words that a parameter cannot be called in the C text made from an interface."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A C type. `text` declares a name in place of `%s`.

    `kind` is 'integer', 'floating', 'pointer', 'struct', 'void' or 'other', with the reason in `why`. `size`
    is in bytes, 0 for an incomplete type. `constant`: what is behind the pointer is const. Of what is not a
    pointer, `plain` are the ranges (offset, size) that hold no pointer and `pointers` those that do.
    """

    text: str
    kind: str
    size: int = 0
    target: Shape | None = None
    constant: bool = False
    tag: str = ""
    plain: tuple[tuple[int, int], ...] = ()
    pointers: tuple[tuple[int, int], ...] = ()
    why: str = ""

    @property
    def is_char(self) -> bool:
        return self.kind == "integer" and self.size == 1


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's prototype: `name` as in the symbol table. `statics`: linked addresses and sizes of
    variables that only this function can name."""

    name: str
    returns: Shape
    parameters: tuple[tuple[str, Shape], ...]
    statics: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Watched:
    """One call as it was watched. `words`: arguments that are no floating-point numbers, in order. `changed`:
    ranges (address, size) of memory, outside its own frame, that hold something else afterwards and that the
    rest of the program can see, each with where that is. `problems`: what rules the function out. `texts`:
    whether each word, as an address, pointed to a text before the call. `returned`: what the result points
    to: 'new' (a block it allocated), 'text', or ''."""

    words: tuple[int, ...]
    result: int
    changed: tuple[tuple[int, int, str], ...] = ()
    problems: tuple[str, ...] = ()
    texts: tuple[bool, ...] = ()
    returned: str = ""


class UncuttableError(Exception):
    """A function that cannot be cut; `str()` is the reason, as the end of a sentence that its name begins."""


@dataclass(slots=True)
class Statement:
    """A function as an interface file states it."""

    signature: Signature
    arguments: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    returns: str = ""

    def text(self) -> str:
        """Its table in the file."""
        names = [name for name, _ in named(self.signature)]
        parameters = ", ".join(
            shape.text.replace("%s", name, 1).strip()
            for name, (_, shape) in zip(names, self.signature.parameters, strict=True)
        )
        declared = self.signature.returns.text.replace(
            "%s", f"{self.signature.name}({parameters or 'void'})", 1
        )
        lines = [f"[function.{self.signature.name}]", f"prototype = {json.dumps(declared.strip())}"]
        lines.append(f"symbol = {json.dumps(self.signature.name)}")
        if self.arguments:
            roles = ", ".join(f"{name} = {json.dumps(role)}" for name, role in self.arguments.items())
            lines.append(f"args = {{ {roles} }}")
        if self.returns:
            lines.append(f"returns = {json.dumps(self.returns)}")
        if self.outputs:
            lines.append(f"outputs = {json.dumps(self.outputs)}")
        return "\n".join(lines) + "\n"


def named(signature: Signature) -> Iterator[tuple[str, Shape]]:
    """The parameters with names that can stand in an interface file."""
    for i, (name, shape) in enumerate(signature.parameters):
        usable = name and name not in _TAKEN and not name.startswith("rr_")
        yield (name if usable else f"p{i}_{name}" if name else f"p{i}"), shape


def state(signature: Signature, calls: Sequence[Watched]) -> Statement:
    """What crosses the function. Raises UncuttableError."""
    for shape in (signature.returns, *(shape for _, shape in signature.parameters)):
        if shape.kind in ("other", "struct"):
            raise UncuttableError(shape.why or "passes a structure by value")
    if sum(shape.kind != "floating" for _, shape in signature.parameters) > 6:
        raise UncuttableError("has parameters on the stack")
    if not calls:
        raise UncuttableError("was not seen to return")
    for call in calls:
        if call.problems:
            raise UncuttableError(call.problems[0])
    found = Statement(signature)
    words = [pair for pair in named(signature) if pair[1].kind != "floating"]
    left = [list(call.changed) for call in calls]
    for i, (name, shape) in enumerate(words):
        if shape.kind == "pointer":
            following = words[i + 1] if i + 1 < len(words) else None
            _pointer(found, i, name, shape, following, calls, left)
    for pieces in left:
        for _, _, where in pieces:
            raise UncuttableError(f"changes {where}, which its parameters do not state")
    _result(found, calls)
    return found


def _pointer(
    found: Statement,
    i: int,
    name: str,
    shape: Shape,
    following: tuple[str, Shape] | None,
    calls: Sequence[Watched],
    left: list[list[tuple[int, int, str]]],
) -> None:
    """State a pointer parameter, and take from `left` what it accounts for."""
    target = shape.target
    if target is None or target.kind == "other":
        raise UncuttableError(f"takes {name}: {target.why if target else 'a pointer that cannot be stated'}")
    counted = following is not None and following[1].kind == "integer"
    if shape.constant:
        text = target.is_char and not counted and _all_texts(i, calls)
        found.arguments[name] = "string" if text else "data"
        return
    if target.kind in ("void", "integer", "floating") and counted:
        assert following is not None
        element = max(target.size, 1)
        sizes = [_signed(call.words[i + 1]) * element for call in calls]
        if any(
            size > 0 and _inside(call.words[i], size, pieces)
            for call, size, pieces in zip(calls, sizes, left, strict=True)
        ):
            for call, size, pieces in zip(calls, sizes, left, strict=True):
                _take(pieces, call.words[i], max(size, 0))
            found.arguments[name] = f"out[{following[0]}]"
            return
    if target.is_char and _all_texts(i, calls):
        found.arguments[name] = "string"
        found.outputs.append(f"kept: {name} | strlen((const char *){name}) + 1")
        return
    found.arguments[name] = "data"
    if target.kind == "void" or not target.size or target.is_char:
        return
    if target.size > MOST_BYTES:
        raise UncuttableError(f"takes {name}, {target.size} bytes")
    for offset, size in target.plain:
        found.outputs.append(f"bytes: (char *){name} + {offset} | {size}")
        for call, pieces in zip(calls, left, strict=True):
            if call.words[i]:
                _take(pieces, call.words[i] + offset, size)
    for offset, size in target.pointers:
        found.outputs.append(f"kept: (char *){name} + {offset} | {size}")
        for call, pieces in zip(calls, left, strict=True):
            if call.words[i] and _inside(call.words[i] + offset, size, pieces):
                raise UncuttableError(f"stores a pointer behind {name}")


def _result(found: Statement, calls: Sequence[Watched]) -> None:
    """State the result."""
    shape = found.signature.returns
    if shape.kind != "pointer":
        return
    some = [call for call in calls if call.result]
    char = shape.target is not None and shape.target.is_char
    if not some:
        raise UncuttableError("returned only NULL: what its result points to is not known")
    if char and all(call.returned == "new text" for call in some):
        found.returns = "malloc string"
    elif char and shape.constant and all(call.returned == "text" for call in some):
        found.returns = "string"
    else:
        raise UncuttableError("returns a pointer")


def _all_texts(i: int, calls: Sequence[Watched]) -> bool:
    return all(call.texts[i] or not call.words[i] for call in calls if i < len(call.texts))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _inside(start: int, size: int, pieces: Sequence[tuple[int, int, str]]) -> bool:
    """Whether a changed piece lies in a range."""
    return any(start < at + length and at < start + size for at, length, _ in pieces)


def _take(pieces: list[tuple[int, int, str]], start: int, size: int) -> None:
    """Cut a range out of pieces."""
    kept: list[tuple[int, int, str]] = []
    for at, length, where in pieces:
        if at < start:
            kept.append((at, min(at + length, start) - at, where))
        if at + length > start + size:
            begin = max(at, start + size)
            kept.append((begin, at + length - begin, where))
    pieces[:] = [piece for piece in kept if piece[1] > 0]


def tags(signatures: Sequence[Signature]) -> list[str]:
    """The structures that prototypes name."""
    found: dict[str, None] = {}
    for signature in signatures:
        for shape in (signature.returns, *(shape for _, shape in signature.parameters)):
            target: Shape | None = shape
            while target is not None:
                if target.tag:
                    found[target.tag] = None
                target = target.target
    return sorted(found)


def file_text(program: str, libraries: Sequence[str], statements: Mapping[str, Statement]) -> str:
    """The part of an interface file that states these functions."""
    chosen = [statements[name] for name in sorted(statements)]
    lines = [f"program = {json.dumps(program)}"]
    if libraries:
        lines.append(f"library = {json.dumps(list(libraries))}")
    declared = " ".join(f"{tag};" for tag in tags([one.signature for one in chosen]))
    if declared:
        lines.append(f"types = {json.dumps(declared)}")
    return "\n".join(lines) + "\n\n" + "\n".join(one.text() for one in chosen)
