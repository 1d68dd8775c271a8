"""Flag sets and enumerations, and how they are declared.

Values are written as in C: `flag_set("mlockall", "MCL_CURRENT=1 MCL_FUTURE=2")`. A flag set may have fields,
masks within which the value is an enumeration (O_ACCMODE). A flag of several bits is named when all are set,
so it comes before its parts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlagSet:
    """Named bits, and named values within masks; those are shown first, or with `fields_last` behind."""

    bits: tuple[tuple[int, str], ...]
    fields: tuple[tuple[int, dict[int, str]], ...] = ()
    fields_last: bool = False

    def text(self, value: int) -> str:
        """`A|B|0x40`; "0" where nothing is set and no name stands for nothing."""
        values: list[str] = []
        parts: list[str] = []
        rest = value
        for mask, names in self.fields:
            if (value & mask) in names:
                values.append(names[value & mask])
                rest &= ~mask
        for bit, name in self.bits:
            if rest & bit == bit and bit:
                parts.append(name)
                rest &= ~bit
        parts = parts + values if self.fields_last else values + parts
        if rest or not parts:
            parts.append(f"{rest:#x}" if rest else "0")
        return "|".join(parts)

    def values(self) -> dict[str, int]:
        """Every name with its value."""
        found = {name: bit for bit, name in self.bits}
        for _, names in self.fields:
            found.update({name: value for value, name in names.items()})
        return found


FLAGS: dict[str, FlagSet] = {}
ENUMS: dict[str, dict[int, str]] = {}


def parse(text: str) -> list[tuple[int, str]]:
    """`A=1 B=0x2 C=0o4` as pairs. A name without a value is one more than the one before, the first 0."""
    pairs: list[tuple[int, str]] = []
    following = 0
    for word in text.split():
        name, _, number = word.partition("=")
        value = int(number, 0) if number else following
        pairs.append((value, name))
        following = value + 1
    return pairs


def flag_set(name: str, bits: str, *fields: tuple[int, str], fields_last: bool = False) -> None:
    """Declare a flag set; each of `fields` is a mask and the values within it."""
    values = tuple((mask, dict(parse(text))) for mask, text in fields)
    FLAGS[name] = FlagSet(tuple(parse(bits)), values, fields_last)


def enumeration(name: str, values: str) -> None:
    """Declare an enumeration; where two names share a value the first one is shown."""
    found: dict[int, str] = {}
    for value, label in parse(values):
        found.setdefault(value, label)
    ENUMS[name] = found


def flags_text(of: str, value: int) -> str:
    """The value by the flag set's names; in hexadecimal where there is no such set."""
    found = FLAGS.get(of)
    return found.text(value) if found else f"{value:#x}" if value else "0"


def enum_text(of: str, value: int) -> str:
    """The value's name in the enumeration, the number where it has none."""
    return ENUMS.get(of, {}).get(value) or (str(value) if -4096 < value < 4096 else f"{value:#x}")
