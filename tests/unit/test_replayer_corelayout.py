"""The core's thread blocks as Python sees them, compared with what the C compiler says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replayer import corelayout
from replayer.memory import Mapping

CORE = Path(__file__).resolve().parents[2] / "interposer" / "core"
PROGRAM = """
#include "core.h"
int printf(const char *, ...);
#define SHOW(name, type, member) printf("%s %lu\\n", name, offsetof(struct type, member))
int main(void) {
  SHOW("THREAD_TID", thread, tid);
  SHOW("THREAD_PID", thread, pid);
  SHOW("THREAD_FRAME", thread, frame);
  SHOW("THREAD_ALIVE", thread, alive);
  SHOW("THREAD_IN_USE", thread, in_use);
  SHOW("FRAME_CONTEXT", sigframe, uc);
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_offsets_are_those_of_the_core(tmp_path: Path) -> None:
    """GIVEN the core's headers WHEN compiled THEN every offset is the one that sessions use."""
    subprocess.run(
        [sys.executable, "-m", "interfaces.generate", tmp_path / "effects.h"], cwd=CORE.parents[1], check=True
    )
    (tmp_path / "offsets.c").write_text(PROGRAM)
    subprocess.run(
        ["gcc", "-w", f"-I{CORE}", f"-I{tmp_path}", "-o", tmp_path / "offsets", tmp_path / "offsets.c"],
        check=True,
    )
    words = subprocess.run([tmp_path / "offsets"], capture_output=True, text=True, check=False).stdout.split()
    stated = {name: getattr(corelayout, name) for name in words[::2]}
    assert stated == {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
    assert len(stated) == 6


def test_only_live_blocks_are_threads() -> None:
    """GIVEN three blocks, one unused and one of an ended thread WHEN read THEN the third is the only
    thread."""
    from interfaces import abi

    blocks: dict[int, bytearray] = {}
    for index, (alive, in_use, tid) in enumerate([(1, 0, 5), (0, 1, 6), (1, 1, 7)]):
        block = bytearray(4096)
        for offset, value in (
            (corelayout.THREAD_TID, tid),
            (corelayout.THREAD_PID, 4),
            (corelayout.THREAD_FRAME, 0x7000),
            (corelayout.THREAD_ALIVE, alive),
            (corelayout.THREAD_IN_USE, in_use),
        ):
            block[offset : offset + 4] = value.to_bytes(4, "little")
        blocks[abi.THREADS + index * abi.THREAD_STRIDE] = block

    class Fake:
        def read(self, address: int, size: int) -> bytes:
            return bytes(blocks[address][:size])

    mapping = Mapping(abi.THREADS, abi.THREADS + 3 * abi.THREAD_STRIDE, "rw-p", 0, "")
    below = Mapping(0x1000, 0x2000, "rw-p", 0, "")
    assert corelayout.thread_blocks(Fake(), [below, mapping]) == [
        corelayout.ThreadBlock(7, 4, 0x7000 + corelayout.FRAME_CONTEXT)
    ]
