"""Words of the filter language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class QueryError(ValueError):
    """The text is no filter; `position` is the character where it goes wrong."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class T(Enum):
    """Kinds of tokens; the value is what messages call them."""

    WORD = "a word"
    NUMBER = "a number"
    STRING = "a string"
    REGEX = "a regular expression"
    OPERATOR = "an operator"
    OPEN = "("
    CLOSE = ")"
    COMMA = ","
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is the value of a string or the pattern of a regex, else what was typed."""

    kind: T
    text: str
    start: int
    end: int


_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+(\.\d+)?)[a-zA-Zµ]*")
_WORD = re.compile(r"[A-Za-z_%][A-Za-z0-9_.%*?-]*")
_PATH = re.compile(r"/[^\s(),\"']*")
_BARE = re.compile(r"[^\s(),\"'&|]+")
"""What needs no quotes behind ~."""
_OPERATORS = ("==", "!=", "<=", ">=", "!~", "&&", "||", "<", ">", "~", "=", "!")


def tokens(text: str) -> list[Token]:
    """The tokens of a filter, with one of kind END last. QueryError where there is none."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = _token(text, at, found[-1] if found else None)
        found.append(token)
        at = token.end
    found.append(Token(T.END, "", len(text), len(text)))
    return found


def _token(text: str, at: int, before: Token | None) -> Token:
    char = text[at]
    if char in "\"'":
        return _delimited(text, at, T.STRING)
    if char == "/" and before is not None and before.kind in (T.OPERATOR, T.OPEN, T.COMMA):
        return _slashed(text, at)
    if before is not None and before.text in ("~", "!~") and (match := _BARE.match(text, at)):
        plain = _NUMBER.fullmatch(match[0]) or _WORD.fullmatch(match[0])
        if not plain:
            return Token(T.STRING, match[0], at, match.end())
    for single, kind in (("(", T.OPEN), (")", T.CLOSE), (",", T.COMMA)):
        if char == single:
            return Token(kind, char, at, at + 1)
    if match := _NUMBER.match(text, at):
        return Token(T.NUMBER, match[0], at, match.end())
    if match := _WORD.match(text, at):
        return Token(T.WORD, match[0], at, match.end())
    for operator in _OPERATORS:
        if text.startswith(operator, at):
            return Token(T.OPERATOR, operator, at, at + len(operator))
    raise QueryError(f"{char!r} has no meaning here", at)


def _slashed(text: str, at: int) -> Token:
    """A regular expression between slashes; what goes on behind the second one, or has none, is a path."""
    try:
        token = _delimited(text, at, T.REGEX)
    except QueryError:
        token = None
    path = _PATH.match(text, at)
    if token is not None and (token.end == len(text) or text[token.end] in " \t),"):
        return token
    assert path is not None
    return Token(T.STRING, path[0], at, path.end())


def _delimited(text: str, at: int, kind: T) -> Token:
    """A string or regular expression; a backslash takes the delimiter, and in strings itself, along."""
    end = text[at]
    value = []
    i = at + 1
    while i < len(text):
        char = text[i]
        following = text[i + 1 : i + 2]
        if char == "\\" and (following == end or (following == "\\" and kind == T.STRING)):
            value.append(following)
            i += 2
            continue
        if char == end:
            return Token(kind, "".join(value), at, i + 1)
        value.append(char)
        i += 1
    raise QueryError(f"{kind.value} that does not end", at)
