"""Prototypes of functions from debug information: of those that stand in the file as they were written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Any, cast

from elftools.common.exceptions import ELFError
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.elffile import ELFFile

from interfaces.libspec.internal import Shape, Signature, UncuttableError
from replayer.lines import BROKEN, Lines
from replayer.symbols import DEBUG_FOLDERS

_C = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E, 0x8001})
"""DW_LANG of C in its versions, and of assembler."""
_QUALIFIERS = ("DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_atomic_type")
_BOOLEAN, _FLOAT, _SIGNED, _SIGNED_CHAR, _UNSIGNED, _UNSIGNED_CHAR = 2, 4, 5, 6, 7, 8
_INTEGERS = {
    (1, True): "signed char",
    (2, True): "short",
    (4, True): "int",
    (8, True): "long",
    (1, False): "unsigned char",
    (2, False): "unsigned short",
    (4, False): "unsigned int",
    (8, False): "unsigned long",
}
_DEPTH = 16
_MOST_MEMBERS = 4096


class Prototypes:
    """The functions of one ELF file by linked address; `streams`: the file and its separate debug files."""

    def __init__(self, streams: Sequence[IO[bytes]]) -> None:
        self._lines = [Lines(stream) for stream in streams]

    @property
    def known(self) -> bool:
        """Whether there is debug information at all."""
        return any(lines.has_dwarf for lines in self._lines)

    def at(self, address: int, name: str) -> Signature:
        """The function that begins at an address and has this name. Raises UncuttableError with the reason
        why its prototype cannot be relied on."""
        for lines in self._lines:
            with suppress(*BROKEN):
                unit = lines.unit_at(address)
                if unit is None:
                    continue
                return _function(lines, unit, address, name)
        raise UncuttableError("has no debug information")


def debug_files(path: str) -> list[str]:
    """The separate debug files of an ELF file that are installed."""
    try:
        with open(path, "rb") as stream:
            section: Any = ELFFile(stream).get_section_by_name(".note.gnu.build-id")
            notes = list(section.iter_notes()) if section is not None else []
    except (OSError, ELFError):
        return []
    found = []
    for note in notes:
        text = str(note["n_desc"])
        for folder in DEBUG_FOLDERS:
            name = f"{folder}/.build-id/{text[:2]}/{text[2:]}.debug"
            if os.path.exists(name):
                found.append(name)
    return found


def _function(lines: Lines, unit: Any, address: int, name: str) -> Signature:
    top = unit.get_top_DIE()
    language = top.attributes.get("DW_AT_language")
    if language is None:
        raise UncuttableError("has no debug information")
    if int(language.value) not in _C:
        raise UncuttableError("is not written in C")
    die = next(
        (
            one
            for one in top.iter_children()
            if one.tag == "DW_TAG_subprogram" and lines.begins_at(one, unit, address)
        ),
        None,
    )
    if die is None:
        raise UncuttableError("has no debug information")
    if _value(die, "DW_AT_inline") in (1, 3) or _is_inlined(die):
        raise UncuttableError("is inlined in places")
    if _text(die, "DW_AT_name") != name:
        raise UncuttableError("was changed by the compiler")
    if not _value(die, "DW_AT_prototyped"):
        raise UncuttableError("has no prototype in the debug information")
    if _value(die, "DW_AT_calling_convention") not in (None, 1):
        raise UncuttableError("was changed by the compiler")
    if _value(die, "DW_AT_noreturn"):
        raise UncuttableError("does not return")
    parameters = []
    for child in die.iter_children():
        if child.tag == "DW_TAG_formal_parameter":
            parameters.append((_text(child, "DW_AT_name"), _shape(_type(child), 0)))
        elif child.tag == "DW_TAG_unspecified_parameters":
            raise UncuttableError("takes any number of parameters")
    returns = _shape(_type(die), 0)
    return Signature(name, returns, tuple(parameters), tuple(_statics(die, 0)))


def _is_inlined(die: Any) -> bool:
    """Whether the function's abstract form says that calls of it were inlined."""
    origin = die.attributes.get("DW_AT_abstract_origin")
    if origin is None:
        return False
    abstract = die.get_DIE_from_attribute("DW_AT_abstract_origin")
    return _value(abstract, "DW_AT_inline") in (1, 3)


def _value(die: Any, key: str) -> int | None:
    """A number of a DIE, or of what it is a copy of."""
    for _ in range(4):
        if key in die.attributes:
            return int(die.attributes[key].value)
        if "DW_AT_abstract_origin" in die.attributes:
            die = die.get_DIE_from_attribute("DW_AT_abstract_origin")
        elif "DW_AT_specification" in die.attributes:
            die = die.get_DIE_from_attribute("DW_AT_specification")
        else:
            break
    return None


def _text(die: Any, key: str) -> str:
    for _ in range(4):
        if key in die.attributes:
            return cast(bytes, die.attributes[key].value).decode("utf-8", "replace")
        if "DW_AT_abstract_origin" in die.attributes:
            die = die.get_DIE_from_attribute("DW_AT_abstract_origin")
        elif "DW_AT_specification" in die.attributes:
            die = die.get_DIE_from_attribute("DW_AT_specification")
        else:
            break
    return ""


def _type(die: Any) -> Any:
    """The DIE of something's type, None for void."""
    for _ in range(4):
        if "DW_AT_type" in die.attributes:
            return die.get_DIE_from_attribute("DW_AT_type")
        if "DW_AT_abstract_origin" not in die.attributes:
            return None
        die = die.get_DIE_from_attribute("DW_AT_abstract_origin")
    return None


def _shape(die: Any, depth: int, alias: str = "") -> Shape:
    """A type; `alias` is the typedef it was reached through."""
    if depth > _DEPTH:
        return _other("a type that is too deep")
    if die is None:
        return Shape("void %s", "void")
    tag = die.tag
    if tag in _QUALIFIERS:
        return _shape(_type(die), depth + 1, alias)
    if tag == "DW_TAG_typedef":
        return _shape(_type(die), depth + 1, _text(die, "DW_AT_name"))
    size = int(die.attributes["DW_AT_byte_size"].value) if "DW_AT_byte_size" in die.attributes else 0
    if tag == "DW_TAG_base_type":
        return _base(die, size)
    if tag == "DW_TAG_enumeration_type":
        return _integer(size or 4, signed=False)
    if tag == "DW_TAG_pointer_type":
        return _pointer(die, depth)
    if tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
        word = "struct" if tag == "DW_TAG_structure_type" else "union"
        name = f"{word} {_text(die, 'DW_AT_name') or alias or 'rr_unnamed'}"
        plain, pointers, why = (
            ([], [], "") if _value(die, "DW_AT_declaration") else _members(die, 0, depth + 1)
        )
        if why:
            return _other(why)
        return Shape(
            f"{name} %s",
            "struct",
            0 if _value(die, "DW_AT_declaration") else size,
            tag=name,
            plain=tuple(_joined(plain)),
            pointers=tuple(_joined(pointers)),
            why="passes a structure by value",
        )
    if tag == "DW_TAG_subroutine_type":
        return _other("a function of the program")
    return _other(f"a type that cannot be stated ({tag.removeprefix('DW_TAG_')})")


def _other(why: str) -> Shape:
    return Shape("%s", "other", why=why)


def _base(die: Any, size: int) -> Shape:
    encoding = int(die.attributes["DW_AT_encoding"].value)
    if encoding == _FLOAT and size in (4, 8):
        return Shape(f"{'float' if size == 4 else 'double'} %s", "floating", size, plain=((0, size),))
    if encoding == _BOOLEAN and size == 1:
        return Shape("_Bool %s", "integer", 1, plain=((0, 1),))
    if encoding in (_SIGNED_CHAR, _UNSIGNED_CHAR) and size == 1 and _text(die, "DW_AT_name") == "char":
        return Shape("char %s", "integer", 1, plain=((0, 1),))
    if encoding in (_SIGNED, _SIGNED_CHAR, _UNSIGNED, _UNSIGNED_CHAR) and (size, True) in _INTEGERS:
        return _integer(size, signed=encoding in (_SIGNED, _SIGNED_CHAR))
    return _other(f"takes or gives {_text(die, 'DW_AT_name') or 'a number'} of {size} bytes")


def _integer(size: int, *, signed: bool) -> Shape:
    if (size, signed) not in _INTEGERS:
        return _other(f"an integer of {size} bytes")
    return Shape(f"{_INTEGERS[size, signed]} %s", "integer", size, plain=((0, size),))


def _pointer(die: Any, depth: int) -> Shape:
    inner = _type(die)
    constant = False
    seen = inner
    for _ in range(_DEPTH):
        if seen is None or seen.tag not in (*_QUALIFIERS, "DW_TAG_typedef"):
            break
        constant = constant or seen.tag == "DW_TAG_const_type"
        seen = _type(seen)
    if depth > 2:
        return Shape("void *%s", "pointer", 8, Shape("void %s", "void"), constant, pointers=((0, 8),))
    target = _shape(inner, depth + 1)
    text = "void *%s" if target.kind == "other" else target.text.replace("%s", "*%s", 1)
    return Shape(
        f"const {text}" if constant and target.kind != "pointer" else text,
        "pointer",
        8,
        target,
        constant,
        pointers=((0, 8),),
    )


def _members(die: Any, base: int, depth: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]], str]:
    """Where a structure holds plain values and where pointers, and why that cannot be said."""
    plain: list[tuple[int, int]] = []
    pointers: list[tuple[int, int]] = []
    for child in die.iter_children():
        if child.tag != "DW_TAG_member":
            continue
        if "DW_AT_bit_size" in child.attributes:
            at = _bits_at(child)
            if at is None:
                return [], [], "a structure with bit fields"
            plain.append((base + at[0], at[1]))
            continue
        where = child.attributes.get("DW_AT_data_member_location")
        offset = base + (int(where.value) if where is not None and isinstance(where.value, int) else 0)
        why = _place(_type(child), offset, depth + 1, plain, pointers)
        if why:
            return [], [], why
        if len(plain) + len(pointers) > _MOST_MEMBERS:
            return [], [], "a structure with very many members"
    taken = [(at, size) for at, size in plain if not _overlaps(at, size, pointers)]
    return taken, pointers, ""


def _bits_at(child: Any) -> tuple[int, int] | None:
    """The bytes that hold a bit field."""
    bits = int(child.attributes["DW_AT_bit_size"].value)
    if "DW_AT_data_bit_offset" not in child.attributes:
        return None
    start = int(child.attributes["DW_AT_data_bit_offset"].value)
    return start // 8, (start + bits + 7) // 8 - start // 8


def _place(
    die: Any, offset: int, depth: int, plain: list[tuple[int, int]], pointers: list[tuple[int, int]]
) -> str:
    """Enter one member; the reason why it cannot be."""
    while die is not None and (die.tag in _QUALIFIERS or die.tag == "DW_TAG_typedef"):
        die = _type(die)
    if die is None or depth > _DEPTH:
        return "a structure that is too deep"
    if die.tag == "DW_TAG_array_type":
        return _array(die, offset, depth, plain, pointers)
    if die.tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
        inner, behind, why = _members(die, offset, depth + 1)
        plain += inner
        pointers += behind
        return why
    size = int(die.attributes["DW_AT_byte_size"].value) if "DW_AT_byte_size" in die.attributes else 8
    (pointers if die.tag == "DW_TAG_pointer_type" else plain).append((offset, size))
    return ""


def _array(
    die: Any, offset: int, depth: int, plain: list[tuple[int, int]], pointers: list[tuple[int, int]]
) -> str:
    count = 1
    for child in die.iter_children():
        if child.tag == "DW_TAG_subrange_type":
            if "DW_AT_count" in child.attributes:
                count *= int(child.attributes["DW_AT_count"].value)
            elif "DW_AT_upper_bound" in child.attributes:
                bound = child.attributes["DW_AT_upper_bound"].value
                if not isinstance(bound, int):
                    return "an array whose length varies"
                count *= bound + 1
            else:
                return "a structure that ends in an array of any length"
    one: list[tuple[int, int]] = []
    behind: list[tuple[int, int]] = []
    element = _type(die)
    why = _place(element, 0, depth + 1, one, behind)
    if why:
        return why
    size = _size(element)
    if not behind and sum(length for _, length in _joined(one)) == size:
        plain.append((offset, size * count))
        return ""
    if count * (len(one) + len(behind)) > _MOST_MEMBERS:
        return "a structure with very many members"
    for i in range(count):
        plain += [(offset + i * size + at, length) for at, length in one]
        pointers += [(offset + i * size + at, length) for at, length in behind]
    return ""


def _size(die: Any) -> int:
    while die is not None and (die.tag in _QUALIFIERS or die.tag == "DW_TAG_typedef"):
        die = _type(die)
    if die is None:
        return 0
    if "DW_AT_byte_size" in die.attributes:
        return int(die.attributes["DW_AT_byte_size"].value)
    if die.tag == "DW_TAG_array_type":
        inner: list[tuple[int, int]] = []
        behind: list[tuple[int, int]] = []
        if not _array(die, 0, 0, inner, behind):
            return max((at + size for at, size in inner + behind), default=0)
    return 8 if die.tag == "DW_TAG_pointer_type" else 0


def _overlaps(at: int, size: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(at < start + length and start < at + size for start, length in ranges)


def _joined(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Neighbouring ranges as one."""
    start = end = -1
    for at, size in sorted(set(ranges)):
        if at > end:
            if end > start:
                yield start, end - start
            start, end = at, at + size
        else:
            end = max(end, at + size)
    if end > start:
        yield start, end - start


def _statics(die: Any, depth: int) -> Iterator[tuple[int, int]]:
    """Variables that only the function itself can name, as (linked address, size)."""
    for child in die.iter_children():
        if child.tag == "DW_TAG_lexical_block" and depth < _DEPTH:
            yield from _statics(child, depth + 1)
        elif child.tag == "DW_TAG_variable" and "DW_AT_location" in child.attributes:
            where = child.attributes["DW_AT_location"]
            if where.form != "DW_FORM_exprloc":
                continue
            parts = DWARFExprParser(child.cu.structs).parse_expr(where.value)
            if len(parts) == 1 and parts[0].op_name == "DW_OP_addr":
                yield int(parts[0].args[0]), _size(_type(child))
