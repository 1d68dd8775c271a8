"""The debugger's part of the ring as Python sees it, compared with what the C compiler says."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replayer import debugring

CORE = Path(__file__).resolve().parents[2] / "interposer" / "core"
RENAMED = {"go_over": "pass"}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_layouts_are_those_of_the_core(tmp_path: Path) -> None:
    """GIVEN debug.h WHEN compiled THEN every field has the offset that the tool uses, and sizes agree."""
    structures = {
        "rr_debug": debugring.Debug,
        "rr_breakpoint": debugring.Breakpoint,
        "rr_watch": debugring.WatchSlot,
    }
    lines = ['#include "core.h"', '#include "debug.h"', "int printf(const char *, ...);", "int main(void) {"]
    expected = []
    for name, kind in structures.items():
        for field, *_rest in kind._fields_:
            member = RENAMED.get(field, field)
            lines.append(f'printf("%lu\\n", offsetof(struct {name}, {member}));')
            expected.append(getattr(kind, field).offset)
        lines.append(f'printf("%lu\\n", sizeof(struct {name}));')
        expected.append(ctypes.sizeof(kind))
    for park in debugring.Park:
        lines.append(f'printf("%d\\n", RR_P_{park.name});')
        expected.append(int(park))
    lines.append('printf("%u %u %u\\n", RR_DEBUG_OFF, RR_BREAKPOINTS, RR_WATCHES); }')
    expected += [debugring.DEBUG_OFFSET, debugring.BREAKPOINTS, debugring.WATCHES]
    subprocess.run(
        [sys.executable, "-m", "interfaces.generate", tmp_path / "effects.h"], cwd=CORE.parents[1], check=True
    )
    (tmp_path / "layout.c").write_text("\n".join(lines))
    subprocess.run(
        ["gcc", "-w", f"-I{CORE}", f"-I{tmp_path}", "-o", tmp_path / "layout", tmp_path / "layout.c"],
        check=True,
    )
    said = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=False).stdout
    assert [int(word) for word in said.split()] == expected
