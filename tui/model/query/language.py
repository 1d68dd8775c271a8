"""From the text of a filter to its tree.

either     = both { ("or" | "||") both }
both       = single { ["and" | "&&"] single }
single     = ("not" | "!") single | "(" either ")" | comparison | string
comparison = field operator value | field "in" "(" value { "," value } ")" | flag
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from interfaces.calls import BY_NAME, CALLS
from tui.model.query.fields import (
    ERRNOS,
    FAMILIES,
    FIELDS,
    KINDS,
    OPERATORS,
    SIGNALS,
    Field,
    Type,
    integer,
    library_calls,
    names_of,
    nanoseconds,
)
from tui.model.query.pattern import Pattern
from tui.model.query.tokens import QueryError, T, Token, tokens

__all__ = ["And", "Compare", "Node", "Not", "Or", "Query", "QueryError", "parse", "quote"]

_WORDS = frozenset({"and", "or", "not", "in"})


@dataclass(frozen=True, slots=True)
class And:
    """All of them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """A field and what it is compared with.

    `operator` is "==", "<", "<=", ">", ">=", or "~"; for the opposite of "==" and "~" there is Not. `numbers`
    are the values of a numeric field (for calls, kinds, errors and signals, the numbers that match; times in
    nanoseconds); `pattern` is what a text is matched with.
    """

    field: Field
    operator: str
    numbers: tuple[float, ...] = ()
    pattern: Pattern | None = None


Node = And | Or | Not | Compare


@dataclass(frozen=True, slots=True)
class Query:
    """A filter: its text and its tree."""

    text: str
    root: Node


def parse(text: str) -> Query | None:
    """The filter a text describes; None for an empty one. QueryError says what is wrong, and where."""
    if not text.strip():
        return None
    parser = _Parser(tokens(text))
    root = parser.either()
    parser.expect(T.END)
    return Query(text.strip(), root)


def quote(value: str) -> str:
    """A text as a filter writes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def next(self) -> Token:
        token = self.token
        if token.kind != T.END:
            self._at += 1
        return token

    def expect(self, kind: T) -> Token:
        if self.token.kind != kind:
            raise QueryError(f"expected {kind.value}, found {_shown(self.token)}", self.token.start)
        return self.next()

    def either(self) -> Node:
        parts = [self.both()]
        while self._word("or", "||"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def both(self) -> Node:
        parts = [self.single()]
        while self._word("and", "&&") or self._begins_single():
            parts.append(self.single())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def single(self) -> Node:
        if self._word("not", "!"):
            return Not(self.single())
        token = self.next()
        if token.kind == T.OPEN:
            inside = self.either()
            self.expect(T.CLOSE)
            return inside
        if token.kind == T.STRING:
            return Compare(FIELDS["text"], "~", pattern=Pattern.of(token.text))
        if token.kind != T.WORD or token.text in _WORDS:
            raise QueryError(f"expected a field, found {_shown(token)}", token.start)
        field = FIELDS.get(token.text)
        if field is None:
            raise QueryError(_no_such("field", token.text, list(FIELDS)), token.start)
        return Compare(field, "==") if field.type == Type.FLAG else self._comparison(field)

    def _comparison(self, field: Field) -> Node:
        allowed = OPERATORS[field.type]
        token = self.next()
        operator = "==" if token.text == "=" and token.kind == T.OPERATOR else token.text
        if token.kind not in (T.OPERATOR, T.WORD) or operator not in allowed:
            raise QueryError(
                f"{field.name} is followed by one of {' '.join(allowed)}, not by {_shown(token)}", token.start
            )
        if operator == "in":
            self.expect(T.OPEN)
            parts = [self._value(field, "==")]
            while self.token.kind == T.COMMA:
                self.next()
                parts.append(self._value(field, "=="))
            self.expect(T.CLOSE)
            return parts[0] if len(parts) == 1 else Or(tuple(parts))
        if operator in ("!=", "!~"):
            return Not(self._value(field, "==" if operator == "!=" else "~"))
        return self._value(field, operator)

    def _value(self, field: Field, operator: str) -> Compare:
        token = self.next()
        if token.kind not in (T.WORD, T.NUMBER, T.STRING, T.REGEX):
            raise QueryError(f"expected {field.type.value}, found {_shown(token)}", token.start)
        if token.kind == T.REGEX and operator != "~":
            raise QueryError("a regular expression follows ~ or !~", token.start)
        if field.type == Type.TEXT:
            return Compare(field, operator, pattern=_text_pattern(token, operator))
        if field.type == Type.CALL:
            return Compare(field, operator, numbers=_calls(token, operator))
        return Compare(field, operator, numbers=(_number(field, token),))

    def _word(self, word: str, sign: str) -> bool:
        if (self.token.kind == T.WORD and self.token.text == word) or (
            self.token.kind == T.OPERATOR and self.token.text == sign
        ):
            self.next()
            return True
        return False

    def _begins_single(self) -> bool:
        token = self.token
        if token.kind == T.WORD:
            return token.text not in ("or", "and", "in")
        return token.kind in (T.OPEN, T.STRING) or (token.kind == T.OPERATOR and token.text == "!")


def _shown(token: Token) -> str:
    return "the end" if token.kind == T.END else repr(token.text)


def _no_such(what: str, name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"no {what} {name!r}" + (f"; did you mean {close[0]}?" if close else "")


def _text_pattern(token: Token, operator: str) -> Pattern:
    if token.kind == T.REGEX:
        try:
            return Pattern.within(token.text)
        except re.error as why:
            raise QueryError(f"not a regular expression: {why}", token.start) from None
    return Pattern.of(token.text) if operator == "~" else Pattern.equal(token.text)


def _calls(token: Token, operator: str) -> tuple[float, ...]:
    """The numbers of the calls that a value names."""
    if operator == "~":
        pattern = _text_pattern(token, operator)
        known = [(number, call.name) for number, call in CALLS.items()]
        known += [(number, name) for name, number in library_calls().items()]
        return tuple(number for number, name in known if pattern.match(name))
    if token.text.startswith("%"):
        family = token.text[1:]
        if family not in FAMILIES:
            raise QueryError(_no_such("family", family, FAMILIES), token.start)
        return tuple(number for number, call in CALLS.items() if call.family == family)
    numbers = [BY_NAME[token.text].number] if token.text in BY_NAME else []
    if (function := library_calls().get(token.text)) is not None:
        numbers.append(function)
    if numbers:
        return tuple(numbers)
    if token.text.isdecimal():
        return (int(token.text),)
    raise QueryError(_no_such("call", token.text, names_of(Type.CALL)), token.start)


def _number(field: Field, token: Token) -> float:
    text = token.text
    value: float | None
    match field.type:
        case Type.DURATION:
            value = nanoseconds(text)
        case Type.ERRNO:
            value = ERRNOS.get(text.upper(), integer(text))
        case Type.SIGNAL:
            value = SIGNALS.get(text.upper(), SIGNALS.get(f"SIG{text.upper()}", integer(text)))
        case Type.KIND:
            value = KINDS.get(text.lower())
        case Type.FAMILY:
            value = FAMILIES.index(text) if text in FAMILIES else None
        case _:
            value = integer(text)
    if value is None:
        known = names_of(field.type)
        wrong = _no_such("value", text, known) if known else f"{text!r} is not {field.type.value}"
        raise QueryError(wrong, token.start)
    return value
