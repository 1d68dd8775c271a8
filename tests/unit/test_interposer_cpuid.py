"""CPUID instructions are found where they are, and nowhere else; ELF input may be anything."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interposer import cpuid_sites
from interposer.elf import Elf, ElfError, parse

_SOURCE = """
#include <cpuid.h>
__attribute__((noinline)) unsigned real(unsigned leaf) {
  unsigned a, b, c, d;
  __cpuid(leaf, a, b, c, d);
  return a ^ b ^ c ^ d;
}
__attribute__((noinline)) unsigned fake(void) {
  unsigned x;
  __asm__ volatile("movl $0xa20f0fa2, %0" : "=r"(x));
  return x;
}
const unsigned char data[] = {0x0f, 0xa2, 0x0f, 0xa2};
int main(int argc, char **argv) { return (real(argc) ^ fake() ^ data[argc]) & 1; }
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cpuid_sites, "_known", {})


def build(folder: Path, *flags: str) -> Path:
    (folder / "p.c").write_text(_SOURCE)
    subprocess.run(["gcc", "-O2", *flags, "-o", "p", "p.c"], cwd=folder, check=True)
    return folder / "p"


def disassembled(program: Path) -> list[int]:
    """Addresses of the CPUID instructions as objdump sees them."""
    text = subprocess.run(["objdump", "-d", str(program)], check=True, capture_output=True, text=True).stdout
    return [int(m.group(1), 16) for m in re.finditer(r"^\s*([0-9a-f]+):\s.*\tcpuid\s*$", text, re.MULTILINE)]


@pytest.mark.parametrize(
    "flags",
    [(), ("-static",), ("-fno-asynchronous-unwind-tables",), ("-s", "-fno-asynchronous-unwind-tables")],
)
def test_every_instruction_is_found_and_no_lookalike(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, *flags)
    data = program.read_bytes()
    elf = parse(data)
    expected = sorted(elf.file_offset(address) or 0 for address in disassembled(program))
    assert len(expected) >= 1
    assert data.count(cpuid_sites.CPUID) > len(expected)
    assert cpuid_sites.find(data) == expected


def test_the_dynamic_linker_has_what_objdump_sees() -> None:
    linker = Path(os.path.realpath("/lib64/ld-linux-x86-64.so.2"))
    data = linker.read_bytes()
    elf = parse(data)
    assert cpuid_sites.find(data) == sorted(elf.file_offset(at) or 0 for at in disassembled(linker))


def test_what_was_found_is_remembered_as_long_as_the_file_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = build(tmp_path)
    with open(program, "r+b") as file:
        first = cpuid_sites.sites(file.fileno())
        monkeypatch.setattr(cpuid_sites, "_known", {})
        monkeypatch.setattr(cpuid_sites, "search", lambda data: pytest.fail("searched again"))
        assert cpuid_sites.sites(file.fileno()) == first
        monkeypatch.undo()
        os.pwrite(file.fileno(), b"\x90\x90", first[0])
        os.utime(file.fileno(), ns=(1, 1))
        assert cpuid_sites.sites(file.fileno()) == first[1:]


def test_a_mapping_shows_the_sites_that_lie_wholly_in_it(tmp_path: Path) -> None:
    program = build(tmp_path)
    with open(program, "rb") as file:
        (site, *_) = cpuid_sites.sites(file.fileno())
        assert cpuid_sites.in_mapping(file.fileno(), site, 2) == [site]
        assert cpuid_sites.in_mapping(file.fileno(), site, 1) == []
        assert cpuid_sites.in_mapping(file.fileno(), site + 1, 100) == []


_TABLE = "\n".join(f"  .byte {octet}" for octet in (*b"\x31\xc0\x31\xc9\x0f\xa2\x89\x07\xc3" * 8,))


def test_what_may_be_an_instruction_asks_for_the_trap(tmp_path: Path) -> None:
    """GIVEN a program with assembler code that no unwind table describes WHEN CPUID can trap THEN that code
    is left alone, and the trap asked for; without such code the certain sites are all."""
    (tmp_path / "a.s").write_text(f".text\n.globl bare\nbare:\n{_TABLE}\n.section .note.GNU-stack\n")
    plain = build(tmp_path)
    with open(plain, "rb") as file:
        certain = cpuid_sites.sites(file.fileno(), can_trap=True)
        assert certain == cpuid_sites.sites(file.fileno()) and certain
    subprocess.run(["gcc", "-O2", "-o", "q", "p.c", "a.s"], cwd=tmp_path, check=True)
    with open(tmp_path / "q", "rb") as file:
        trapped = cpuid_sites.sites(file.fileno(), can_trap=True)
        assert trapped[0] == cpuid_sites.TRAP and len(trapped) == 1 + len(certain)
        assert cpuid_sites.in_mapping(file.fileno(), trapped[1], 2, can_trap=True) == trapped[:2]


def test_bare_code_is_searched_as_it_is() -> None:
    code = b"\x90" * 100 + cpuid_sites.CPUID + b"\xc3"
    assert cpuid_sites.find(code) == [100]
    hidden = b"\x90" * 100 + b"\xb8\x0f\xa2\x0f\xa2" + b"\xc3"
    assert cpuid_sites.find(hidden) == []


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 255)), max_size=30))
def test_no_input_breaks_the_reader(tail: bytes, flips: list[tuple[int, int]]) -> None:
    data = bytearray(Path("/bin/true").read_bytes()[:6000] + tail)
    for at, value in flips:
        data[at % len(data)] = value
    try:
        elf = parse(bytes(data))
        elf.interpreter()
        elf.file_offset(elf.entry)
        list(elf.symbols())
        elf.functions()
    except ElfError:
        pass


def test_the_parts_of_a_program_are_read(tmp_path: Path) -> None:
    elf = parse(build(tmp_path, "-no-pie").read_bytes())
    assert elf.interpreter() == "/lib64/ld-linux-x86-64.so.2"
    names = {symbol.name: symbol for symbol in elf.symbols()}
    assert names["main"].is_function
    assert names["data"].size == 4
    assert elf.file_offset(names["data"].value) is not None
    functions = [(symbol.value, symbol.size) for symbol in elf.symbols() if symbol.is_function]
    assert elf.functions() == sorted(functions)


def test_symbols_are_read_once_however_many_places_look_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a program whose functions are told by its symbols alone (GHC's have a million)
    data = build(tmp_path, "-fno-asynchronous-unwind-tables", "-fno-unwind-tables").read_bytes()
    reads = list[Elf]()
    read = Elf.functions

    def functions(elf: Elf) -> list[tuple[int, int]]:
        reads.append(elf)
        return read(elf)

    monkeypatch.setattr(Elf, "functions", functions)
    # WHEN it is searched
    assert cpuid_sites.find(data)
    # THEN they are read once
    assert len(reads) == 1
