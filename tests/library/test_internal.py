"""Functions of the program itself as the replay interface."""

from __future__ import annotations

from pathlib import Path

import pytest

from interfaces.libspec import SpecError, load_all
from tests.library.conftest import ROOT, Build, Tool, same

REPORT = (ROOT / "examples" / "internal_interface" / "report.c").read_text()
INTERFACE = """
use = ["libc"]
program = "report"
types = "typedef struct summary summary;"
[function.load_total]
prototype = "int load_total(const char *path, summary *out)"
symbol = "load_total"
args = { out = "data" }
outputs = ["bytes: (char *)out | 24"]
"""


def numbers(folder: Path, count: int = 100000) -> Path:
    """A file with a number on each line."""
    path = folder / "numbers.txt"
    path.write_text("".join(f"{n}\n" for n in range(count)))
    return path


def test_a_static_function_of_the_program(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN an interface at a function that is not exported WHEN the file is gone THEN it replays."""
    program = build("report", REPORT)
    data = numbers(tmp_path)
    (tmp_path / "report.toml").write_text(INTERFACE)
    options = ["-q", "-o", "t.bin", "--interface", "report.toml"]
    recorded = tool("record", *options, str(program), str(data), "no")
    assert recorded.status == 1 and b"100000 lines" in recorded.out, recorded.err
    data.unlink()
    same(tool, (recorded.out, 1))
    dumped = tool("dump", "t.bin").out.decode()
    assert dumped.count("load_total(") == 2 and "fgets" not in dumped


def test_memory_that_is_said_to_be_kept(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN an interface that says a structure is left alone WHEN it is not THEN the recorder says so."""
    program = build("report", REPORT)
    data = numbers(tmp_path, 10)
    kept = INTERFACE.replace("bytes: (char *)out | 24", "kept: (char *)out + 8 | 8")
    (tmp_path / "report.toml").write_text(kept)
    broken = "load_total changed memory that its interface says it leaves alone"
    recorded = tool("record", "-o", "t.bin", "--interface", "report.toml", str(program), "no")
    assert broken not in recorded.err, recorded.err
    recorded = tool("record", "-o", "u.bin", "--interface", "report.toml", str(program), str(data))
    assert broken in recorded.err, recorded.err


def test_a_name_that_several_functions_have(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN two files with a static function of one name THEN the recorder does not choose between them."""
    (tmp_path / "other.c").write_text(
        "#include <stdlib.h>\n"
        "static __attribute__((noinline)) int load_total(const char *p) { return atoi(p); }\n"
        "int other(const char *p);\nint other(const char *p) { return load_total(p); }\n"
    )
    program = build("report", REPORT, str(tmp_path / "other.c"))
    (tmp_path / "report.toml").write_text(INTERFACE)
    recorded = tool("record", "-o", "t.bin", "--interface", "report.toml", str(program), "no")
    assert recorded.out == b"no: cannot be read\n"
    assert "several functions have this name" in recorded.err, recorded.err


def test_mistakes(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(INTERFACE.replace('"report"', '"./report"'))
    with pytest.raises(SpecError, match=r"'\./report' is no"):
        load_all([str(tmp_path / "a.toml")])
    (tmp_path / "b.toml").write_text(INTERFACE)
    assert [item.name for item in load_all([str(tmp_path / "b.toml")])] == ["libc", "b"]


def test_what_lies_beneath_a_function_of_the_program_crosses(
    tool: Tool, build: Build, tmp_path: Path
) -> None:
    """GIVEN an interface at an internal function alone WHEN checked THEN what it reads does not escape."""
    program = build("report", REPORT)
    data = numbers(tmp_path, 10)
    (tmp_path / "report.toml").write_text(INTERFACE.replace('use = ["libc"]', ""))
    checked = tool("interface", "check", "--interface", "report.toml", "--", str(program), str(data))
    out = checked.out.decode()
    assert "system calls beneath the interface" in out and "  read  " not in out, (out, checked.err)
