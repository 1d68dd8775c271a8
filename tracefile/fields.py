"""JSON that may come from a stranger: bounded, shallow, and checked field by field.

A trace may be hostile, so a document is refused before it is parsed when it is too large, too deep or has so
many elements that its Python objects would need far more memory than its text.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

DEPTH_MAX = 16
ELEMENTS_MAX = 1_000_000
U64 = (1 << 64) - 1
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

_T = TypeVar("_T")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
"""A string, or all that follows a quote that nothing closes: so that matching stays linear."""
_NOT_BRACKET = re.compile(rb"[^][{}]+")


class FieldError(ValueError):
    """A document, or one of its fields, is not what a trace has there."""


def dump_json(value: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """A document, or a list within one, as compact ASCII; text with undecodable bytes (surrogate escapes)
    survives the round trip.

    Raises FieldError for what JSON cannot say.
    """
    try:
        return _ENCODER.encode(value).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise FieldError(f"no JSON document ({error})") from None


def load_json(data: bytes) -> dict[str, Json]:
    """Parse one JSON object; FieldError when it is none, or breaks the limits above."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise FieldError(f"no JSON document ({error})") from None
    if len(data) > ELEMENTS_MAX or data.count(b"[") + data.count(b"{") > DEPTH_MAX:
        _check_shape(data)
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FieldError(f"no JSON document ({error})") from None
    if not isinstance(document, dict):
        raise FieldError("a JSON document that is no object")
    return document


def _check_shape(data: bytes) -> None:
    """Raise FieldError for too many elements or too deep a nest; small documents have no room for either."""
    skeleton = _STRING.sub(b"", data)
    if sum(skeleton.count(mark) for mark in (b",", b"[", b"{")) > ELEMENTS_MAX:
        raise FieldError(f"a document of more than {ELEMENTS_MAX} elements")
    depth = 0
    for bracket in _NOT_BRACKET.sub(b"", skeleton):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            raise FieldError(f"a document nested deeper than {DEPTH_MAX}")


def _no_constant(name: str) -> float:
    raise FieldError(f"the number {name}")


class Fields:
    """One JSON object whose fields are read by type; each getter raises FieldError that names the field."""

    def __init__(self, document: Mapping[str, Json], name: str) -> None:
        self._document = document
        self._name = name

    def _get(self, key: str) -> Json:
        try:
            return self._document[key]
        except KeyError:
            raise FieldError(f"{self._name} lacks {key!r}") from None

    def _bad(self, key: str, expected: str) -> FieldError:
        return FieldError(f"{self._name}: {key!r} is {_short(self._get(key))}, expected {expected}")

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self._document.get(key) is not None

    def integer(self, key: str, low: int = 0, high: int = U64) -> int:
        """An integer between `low` and `high`, both included."""
        value = self._get(key)
        if type(value) is not int or not low <= value <= high:
            raise self._bad(key, f"an integer from {low} to {high}")
        return value

    def boolean(self, key: str) -> bool:
        """true or false."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._bad(key, "true or false")
        return value

    def text(self, key: str, limit: int) -> str:
        """A string of at most `limit` characters, none of them NUL."""
        value = self._get(key)
        if not isinstance(value, str) or len(value) > limit or "\0" in value:
            raise self._bad(key, f"text of at most {limit} characters")
        return value

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """One of `choices`."""
        value = self._get(key)
        if not isinstance(value, str) or value not in choices:
            raise self._bad(key, "one of " + ", ".join(choices))
        return value

    def hexadecimal(self, key: str, digits: int) -> str:
        """Exactly `digits` lower-case hexadecimal digits."""
        value = self._get(key)
        if not isinstance(value, str) or len(value) != digits or not set(value) <= set("0123456789abcdef"):
            raise self._bad(key, f"{digits} hexadecimal digits")
        return value

    def optional(self, key: str, getter: Callable[[str], _T]) -> _T | None:
        """What `getter` reads, or None where the field is missing or null."""
        return getter(key) if self.has(key) else None

    def items(self, key: str, limit: int) -> list[Json]:
        """A list of at most `limit` elements."""
        value = self._get(key)
        if not isinstance(value, list) or len(value) > limit:
            raise self._bad(key, f"a list of at most {limit} elements")
        return value

    def objects(self, key: str, limit: int) -> list[Fields]:
        """A list of at most `limit` objects."""
        found = []
        for position, value in enumerate(self.items(key, limit)):
            if not isinstance(value, dict):
                raise FieldError(
                    f"{self._name}: {key!r} has {_short(value)} at {position}, expected an object"
                )
            found.append(Fields(value, f"{self._name}, {key}[{position}]"))
        return found

    def integers(self, key: str, limit: int) -> list[int]:
        """A list of at most `limit` unsigned 64-bit integers."""
        return [self._u64(key, value) for value in self.items(key, limit)]

    def tuples(self, key: str, width: int, limit: int) -> list[tuple[int, ...]]:
        """A list of at most `limit` lists of exactly `width` unsigned 64-bit integers each."""
        found = []
        for value in self.items(key, limit):
            if not isinstance(value, list) or len(value) != width:
                raise FieldError(f"{self._name}: {key!r} has {_short(value)}, expected {width} integers")
            found.append(tuple(self._u64(key, number) for number in value))
        return found

    def mapping(self, key: str, limit: int) -> dict[str, int]:
        """An object of at most `limit` unsigned 64-bit integers with short names."""
        value = self._get(key)
        if not isinstance(value, dict) or len(value) > limit or any(len(name) > 32 for name in value):
            raise self._bad(key, f"an object of at most {limit} integers")
        return {name: self._u64(key, number) for name, number in value.items()}

    def object(self, key: str) -> dict[str, Json]:
        """An object of any content."""
        value = self._get(key)
        if not isinstance(value, dict):
            raise self._bad(key, "an object")
        return value

    def _u64(self, key: str, value: Json) -> int:
        if type(value) is not int or not 0 <= value <= U64:
            raise FieldError(
                f"{self._name}: {key!r} has {_short(value)}, expected an unsigned 64-bit integer"
            )
        return value


def _short(value: Json) -> str:
    return reprlib.repr(value)
