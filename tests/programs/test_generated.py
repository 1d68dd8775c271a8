"""CPUID in code that a program generates is in the log, whether or not the processor can make it trap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .conftest import Recorder


def test_cpuid_in_generated_code_is_recorded(programs: Callable[[str], Path], rr: Recorder) -> None:
    # GIVEN a program that makes code with CPUID in it
    # WHEN it is recorded
    recorded = rr.record(programs("generated"), options=["--checksum=25"])
    shown = rr.run([*rr.tool, "dump", "-a", rr.trace], "shown").out.decode()
    # THEN the CPUIDs are in the log, and a constant of the same bytes is what it was
    assert recorded.status == 0
    assert recorded.out.splitlines()[0].startswith(b"a20f2211 ")
    assert "CPUID(0x8000001f, 0x0)" in shown
    assert "CPUID(0x80000007, 0x0)" in shown
    assert "CPUID(0x80000006, 0x0)" in shown
    # AND it replays exactly
    replayed = rr.replay("--verify")
    assert (replayed.status, replayed.out) == (0, recorded.out)
