"""What may come next in a filter that is being typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui.model.query.fields import FIELDS, OPERATORS, Field, Type, names_of
from tui.model.query.tokens import QueryError, T, Token, tokens

_CONNECT = ("and", "or")

Values = Callable[[Field], Sequence[str]]
"""Values that a trace has for a field, most useful first; empty where any will do."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A proposal: `text` replaces the characters [start, end) of what was typed; `help` explains it."""

    text: str
    start: int
    end: int
    help: str = ""


def complete(typed: str, cursor: int, values: Values = lambda field: ()) -> list[Completion]:
    """The proposals at a place of the text, best first."""
    try:
        before = tokens(typed[:cursor])[:-1]
    except QueryError:
        return []
    start = cursor
    if before and before[-1].end == cursor and before[-1].kind in (T.WORD, T.NUMBER):
        start = before[-1].start
        before = before[:-1]
    part = typed[start:cursor]
    proposed = _proposals(before, values)
    close = [item for item in proposed if item[0].startswith(part) and item[0] != part]
    close += [item for item in proposed if part and part in item[0] and not item[0].startswith(part)]
    return [Completion(text, start, cursor, help) for text, help in close]


def _proposals(before: list[Token], values: Values) -> list[tuple[str, str]]:
    """What may follow the tokens, each with an explanation."""
    last = before[-1] if before else None
    if last is None or last.kind == T.OPEN or last.text in ("and", "or", "not", "&&", "||", "!"):
        if last is not None and last.kind == T.OPEN and len(before) > 1 and before[-2].text == "in":
            return _values(before[-3] if len(before) > 2 else None, values)
        return [*((field.name, field.help) for field in FIELDS.values()), ("not", "the opposite")]
    if last.kind == T.OPERATOR:
        return _values(before[-2] if len(before) > 1 else None, values)
    if last.kind == T.COMMA:
        owner = next((token for token in reversed(before) if token.text in FIELDS), None)
        return _values(owner, values)
    field = FIELDS.get(last.text) if last.kind == T.WORD else None
    after_operator = len(before) > 1 and before[-2].kind == T.OPERATOR and before[-2].text != "!"
    if field is not None and field.type != Type.FLAG and not after_operator:
        return [(operator, "") for operator in OPERATORS[field.type]]
    return [(word, "") for word in _CONNECT]


def _values(owner: Token | None, values: Values) -> list[tuple[str, str]]:
    field = FIELDS.get(owner.text) if owner is not None else None
    if field is None:
        return []
    own = list(dict.fromkeys(values(field)))
    rest = [name for name in names_of(field.type) if name not in set(own)]
    if field.type == Type.DURATION and not own:
        own = ["1ms", "10ms", "100ms", "1s"]
    return [(name, "in this trace" if name in set(own) and rest else "") for name in [*own, *rest]]
