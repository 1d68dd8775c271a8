"""`interface check`: what a program takes from its environment past an interface, with stacks."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.library.conftest import PROGRAMS, Build, Tool


def groups(text: str) -> dict[str, list[str]]:
    """What escapes -> the lines of its stack."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith(" " * 11):
            current.append(line.strip())
        elif line[:9].strip().isdigit():
            current = found.setdefault(line[9:].strip(), [])
    return found


def test_every_way_past_the_interface_is_listed_with_its_stack(
    tool: Tool, build: Build, tmp_path: Path
) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"hello"))
    (tmp_path / "shared").write_bytes(bytes(4096))
    program = build("app", (PROGRAMS / "escapes.c").read_text(), "-lz")
    done = tool("interface", "check", "--interface", "zlib", "--", str(program))
    text = done.out.decode()
    assert "zlib: 1 function the program imports are not in the file: gzoffset" in text, done.err
    found = groups(text)
    by = {what.split("  ")[0]: (what, stack) for what, stack in found.items()}
    assert "(gzoffset is not in zlib)" in by["lseek"][0]
    assert any(line.startswith("main (app.c:") for line in by["lseek"][1])
    assert any(line.startswith("direct (app.c:") for line in by["getpid"][1])
    assert any("memory shared with others" in what for what in found)
    assert any("a file in memory" in what for what in found)
    assert any(line.startswith("maps (app.c:") for line in by["openat"][1])
    assert "time" in by
    assert not any("gzopen" in line or "gzread" in line for stack in found.values() for line in stack)


def test_an_interface_that_holds(tool: Tool, build: Build, tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"hello"))
    text = (
        "#include <zlib.h>\nint main() { char b[9];"
        ' gzFile g = gzopen("x.gz", "r"); return gzread(g, b, 9) != 5; }'
    )
    done = tool("interface", "check", "--interface", "zlib", "--", str(build("app", text, "-lz")))
    assert done.out.endswith(b"nothing escapes the interface\n"), (done.out, done.err)
