"""Source lines and inlined calls for addresses, from DWARF.

Everything is read when it is first asked for and kept per compilation unit. What is damaged, or so large
that reading it would take seconds, is left out: a frame then has a name and no line.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, cast

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.descriptions import describe_form_class
from elftools.elf.elffile import ELFFile

_MAX_UNIT = 8 << 20
_MAX_INFO = 1 << 30
_DEPTH = 64
BROKEN = (DWARFError, ELFError, KeyError, IndexError, ValueError, AttributeError, TypeError, OSError)
"""What pyelftools raises at damaged DWARF."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in source. `function` is set for inlined calls only (what was inlined, as written)."""

    file: str
    line: int
    function: str = ""


@dataclass(slots=True)
class _Inlined:
    low_high: list[tuple[int, int]]
    function: str
    call_file: str
    call_line: int
    children: list[_Inlined]


class Lines:
    """Lines of one ELF file, by linked address."""

    def __init__(self, stream: IO[bytes]) -> None:
        """`stream` holds an ELF file and must stay open. A file without DWARF gives no lines."""
        self._dwarf: Any = None
        self._aranges: Any = None
        self._aranges_read = False
        self._units: list[tuple[int, int, Any]] | None = None
        self._programs: dict[int, tuple[list[int], list[tuple[str, int] | None]]] = {}
        self._trees: dict[int, list[tuple[int, int, list[_Inlined]]]] = {}
        with suppress(*BROKEN):
            file = ELFFile(stream)
            if file.has_dwarf_info():
                self._dwarf = file.get_dwarf_info(follow_links=False)

    @property
    def has_dwarf(self) -> bool:
        """Whether the file has debug information."""
        return self._dwarf is not None

    def unit_at(self, address: int) -> Any:
        """The compilation unit (of pyelftools) that holds an address, None where there is none."""
        return self._unit(address) if self._dwarf is not None else None

    def begins_at(self, die: Any, unit: Any, address: int) -> bool:
        """Whether the code of a function's DIE, which may lie in pieces, begins at an address."""
        if "DW_AT_low_pc" in die.attributes:
            return int(die.attributes["DW_AT_low_pc"].value) == address
        return "DW_AT_ranges" in die.attributes and any(
            start == address for start, _ in self._die_ranges(die, unit)
        )

    def at(self, address: int) -> list[Place]:
        """The places of an address: innermost inlined call first, the function itself last; empty: unknown.

        The last place has no function name: the symbol table has it.
        """
        if self._dwarf is None:
            return []
        try:
            unit = self._unit(address)
            if unit is None:
                return []
            row = self._row(unit, address)
            if row is None:
                return []
            chain = self._chain(unit, address)
        except BROKEN:
            return []
        places: list[Place] = []
        file, line = row
        for call in reversed(chain):
            places.append(Place(file, line, call.function))
            file, line = call.call_file, call.call_line
        places.append(Place(file, line))
        return places

    def _unit(self, address: int) -> Any:
        """The compilation unit that holds an address, or None."""
        if not self._aranges_read:
            self._aranges_read = True
            with suppress(*BROKEN):
                self._aranges = self._dwarf.get_aranges()
        if self._aranges is not None:
            offset = self._aranges.cu_offset_at_addr(address)
            if offset is not None:
                return self._dwarf.get_CU_at(offset)
        if self._units is None:
            self._units = sorted(self._ranges(), key=lambda item: item[0])
        index = bisect_right(self._units, address, key=lambda item: item[0]) - 1
        for candidate in range(index, max(index - 4, -1), -1):
            start, end, unit = self._units[candidate]
            if start <= address < end:
                return unit
        return None

    def _ranges(self) -> Iterator[tuple[int, int, Any]]:
        total = 0
        for unit in self._dwarf.iter_CUs():
            total += int(unit["unit_length"])
            if total > _MAX_INFO:
                return
            with suppress(*BROKEN):
                top = unit.get_top_DIE()
                for start, end in self._die_ranges(top, unit):
                    yield start, end, unit

    def _die_ranges(self, die: Any, unit: Any) -> list[tuple[int, int]]:
        attributes = die.attributes
        if "DW_AT_ranges" in attributes:
            return self._range_list(attributes["DW_AT_ranges"], unit)
        if "DW_AT_low_pc" not in attributes or "DW_AT_high_pc" not in attributes:
            return []
        low = int(attributes["DW_AT_low_pc"].value)
        high = attributes["DW_AT_high_pc"]
        end = int(high.value)
        if describe_form_class(high.form) == "constant":
            end += low
        return [(low, end)] if end > low else []

    def _range_list(self, attribute: Any, unit: Any) -> list[tuple[int, int]]:
        lists = self._dwarf.range_lists()
        if lists is None:
            return []
        top = unit.get_top_DIE()
        base = int(top.attributes["DW_AT_low_pc"].value) if "DW_AT_low_pc" in top.attributes else 0
        found: list[tuple[int, int]] = []
        for entry in lists.get_range_list_at_offset(attribute.value, unit):
            if hasattr(entry, "base_address"):
                base = int(entry.base_address)
                continue
            absolute = bool(getattr(entry, "is_absolute", False))
            start, end = int(entry.begin_offset), int(entry.end_offset)
            if not absolute:
                start, end = start + base, end + base
            if end > start:
                found.append((start, end))
        return found

    def _row(self, unit: Any, address: int) -> tuple[str, int] | None:
        """File and line of an address by the line program of its unit."""
        key = int(unit.cu_offset)
        if key not in self._programs:
            self._programs[key] = self._program(unit)
        starts, rows = self._programs[key]
        index = bisect_right(starts, address) - 1
        return rows[index] if index >= 0 else None

    def _program(self, unit: Any) -> tuple[list[int], list[tuple[str, int] | None]]:
        program = self._dwarf.line_program_for_CU(unit)
        if program is None or int(program["unit_length"]) > _MAX_UNIT:
            return [], []
        names = _file_names(program, unit)
        table: dict[int, tuple[str, int] | None] = {}
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if state.end_sequence:
                table.setdefault(int(state.address), None)
            elif state.line:
                table[int(state.address)] = (names.get(int(state.file), ""), int(state.line))
        starts = sorted(table)
        return starts, [table[start] for start in starts]

    def _chain(self, unit: Any, address: int) -> list[_Inlined]:
        """The inlined calls an address is in, outermost first."""
        key = int(unit.cu_offset)
        if key not in self._trees:
            self._trees[key] = []
            if int(unit["unit_length"]) <= _MAX_UNIT:
                with suppress(*BROKEN):
                    self._trees[key] = self._functions(unit)
        for start, end, calls in self._trees[key]:
            if start <= address < end:
                return _descend(calls, address)
        return []

    def _functions(self, unit: Any) -> list[tuple[int, int, list[_Inlined]]]:
        program = self._dwarf.line_program_for_CU(unit)
        names = _file_names(program, unit) if program is not None else {}
        found: list[tuple[int, int, list[_Inlined]]] = []
        for die in unit.iter_DIEs():
            if die.tag != "DW_TAG_subprogram":
                continue
            with suppress(*BROKEN):
                ranges = self._die_ranges(die, unit)
                if ranges and die.has_children:
                    calls = list(self._inlined(die, unit, names, 0))
                    if calls:
                        found.extend((start, end, calls) for start, end in ranges)
        return found

    def _inlined(self, die: Any, unit: Any, names: dict[int, str], depth: int) -> Iterator[_Inlined]:
        if depth > _DEPTH:
            return
        for child in die.iter_children():
            if child.tag == "DW_TAG_inlined_subroutine":
                attributes = child.attributes
                file = attributes.get("DW_AT_call_file")
                line = attributes.get("DW_AT_call_line")
                yield _Inlined(
                    self._die_ranges(child, unit),
                    _name_of(child),
                    names.get(int(file.value), "") if file is not None else "",
                    int(line.value) if line is not None else 0,
                    list(self._inlined(child, unit, names, depth + 1)),
                )
            elif child.tag == "DW_TAG_lexical_block":
                yield from self._inlined(child, unit, names, depth + 1)


def _descend(calls: list[_Inlined], address: int) -> list[_Inlined]:
    for call in calls:
        if any(start <= address < end for start, end in call.low_high):
            return [call, *_descend(call.children, address)]
    return []


def _name_of(die: Any) -> str:
    """The name of what was inlined, through its abstract origin."""
    for _step in range(4):
        for key in ("DW_AT_linkage_name", "DW_AT_name"):
            if key in die.attributes:
                return cast(bytes, die.attributes[key].value).decode("utf-8", "replace")
        for key in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if key in die.attributes:
                die = die.get_DIE_from_attribute(key)
                break
        else:
            break
    return "?"


def _file_names(program: Any, unit: Any) -> dict[int, str]:
    """Paths by the numbers that line programs use."""
    header = program.header
    version = int(header["version"])
    folder = ""
    top = unit.get_top_DIE()
    if "DW_AT_comp_dir" in top.attributes:
        folder = _text(top.attributes["DW_AT_comp_dir"].value)
    folders = [_text(item) for item in header["include_directory"]]
    if version < 5:
        folders.insert(0, folder)
    names: dict[int, str] = {}
    for number, entry in enumerate(header["file_entry"]):
        name = _text(entry.name)
        index = int(entry.dir_index)
        inside = folders[index] if index < len(folders) else ""
        path = os.path.join(folder, inside, name)
        names[number if version >= 5 else number + 1] = os.path.normpath(path)
    return names


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
