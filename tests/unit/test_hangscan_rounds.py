"""What follows a loop is told from what is in it: by source and by machine code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hangscan import knowledge
from hangscan.errors import KnowledgeError
from hangscan.rounds import in_one_loop
from interposer.elf import parse
from replayer.backtrace import StackFrame

_PYTHON = """
prepare()
while wait():
    first()
    if second():
        third()
put_away()
"""
_C = """
void before(void), waits(void), handles(void), after(void); int more(void);
void run(void) { before(); while (more()) { waits(); handles(); } after(); }
int main(int argc, char **argv) { if (argc > 9) run(); return 0; }
__attribute__((noinline)) void before(void) { __asm__(""); }
__attribute__((noinline)) void waits(void) { __asm__(""); }
__attribute__((noinline)) void handles(void) { __asm__(""); }
__attribute__((noinline)) void after(void) { __asm__(""); }
__attribute__((noinline)) int more(void) { __asm__(""); return 0; }
"""


@pytest.mark.parametrize(("line", "inside"), [(2, False), (4, True), (6, True), (7, False)])
def test_lines_of_a_loop_are_told_by_the_source(tmp_path: Path, line: int, inside: bool) -> None:
    file = tmp_path / "app.py"
    file.write_text(_PYTHON)
    wait = StackFrame("<module>", str(file), 3, "python", "python")
    assert in_one_loop(wait, StackFrame("<module>", str(file), line, "python", "python")) is inside


def test_without_source_or_code_a_place_counts_as_inside() -> None:
    one = StackFrame("f", "/nowhere/app.py", 3, "python", "python")
    assert in_one_loop(one, StackFrame("f", "/nowhere/app.py", 30, "python", "python"))
    native = StackFrame("f", "", 0, "/nowhere/app", "native", offset=16)
    assert in_one_loop(native, StackFrame("f", "", 0, "/nowhere/app", "native", offset=32))


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-Os"])
def test_calls_of_a_loop_are_told_by_its_jumps(tmp_path: Path, level: str) -> None:
    # GIVEN the places behind each call of a function with a loop
    (tmp_path / "p.c").write_text(_C)
    flags = [level, "-fno-inline", "-fno-optimize-sibling-calls", "-fno-ipa-pure-const"]
    subprocess.run(["gcc", *flags, "-o", "p", "p.c"], cwd=tmp_path, check=True)
    program = tmp_path / "p"
    elf = parse(program.read_bytes())
    names = {symbol.value: symbol.name for symbol in elf.symbols() if symbol.is_function}
    places = _calls(program.read_bytes(), next(at for at, name in names.items() if name == "run"), names)
    frames = {
        name: StackFrame("run", "", 0, str(program), "native", 1, 1, place) for name, place in places.items()
    }
    # THEN those in the loop lie in one with its wait, the others do not
    inside = {name for name, frame in frames.items() if in_one_loop(frames["waits"], frame)}
    assert inside == {"waits", "handles", "more"}
    assert frames.keys() == {"before", "waits", "handles", "after", "more"}


def _calls(data: bytes, start: int, names: dict[int, str]) -> dict[str, int]:
    from capstone import CS_ARCH_X86, CS_MODE_64, Cs

    elf = parse(data)
    offset = elf.file_offset(start)
    assert offset is not None
    size = next(size for at, size in elf.functions() if at == start)
    engine = Cs(CS_ARCH_X86, CS_MODE_64)
    return {
        names[int(operand, 16)]: address + length
        for address, length, name, operand in engine.disasm_lite(data[offset : offset + size], start)
        if name == "call"
    }


def test_a_rule_with_a_wrong_word_is_told(tmp_path: Path) -> None:
    """GIVEN a loop whose `pulled` is none of the words THEN the error names file and table."""
    file = tmp_path / "mine.toml"
    file.write_text('[[loop]]\nfunctions = ["wait"]\npulled = "allways"\n')
    with pytest.raises(KnowledgeError, match=r"mine\.toml: loop 1: pulled is 'allways'"):
        knowledge.read([file])
