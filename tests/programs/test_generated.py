"""CPUID in code that a program generates is in the log, whether or not the processor can make it trap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interposer import kernel

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


@pytest.mark.skipif(not kernel.has_cpuid_faulting(), reason="CPUID cannot trap here: docs/limits.md")
def test_cpuid_traps_in_every_thread_once_there_is_other_code(
    programs: Callable[[str], Path], rr: Recorder
) -> None:
    """GIVEN code made by mprotect while a thread waits, run by both and by a child, and code in shared memory
    WHEN recorded THEN each CPUID in it is in the log."""
    recorded = rr.record(programs("late_code"), options=["--checksum=25"])
    shown = rr.run([*rr.tool, "dump", "-a", rr.trace], "shown").out.decode()
    for leaf in (0x80000002, 0x80000003, 0x80000004, 0x80000005):
        assert f"CPUID({leaf:#x}, 0x0)" in shown
    replayed = rr.replay("--verify")
    assert (replayed.status, replayed.out) == (0, recorded.out)


@pytest.mark.skipif(not kernel.has_cpuid_faulting(), reason="CPUID cannot trap here: docs/limits.md")
def test_cpuid_traps_where_a_file_may_have_one_that_is_not_replaced(
    programs: Callable[[str], Path], rr: Recorder
) -> None:
    """GIVEN CPUID in code that cannot be told from data WHEN recorded THEN each is in the log."""
    recorded = rr.record(programs("bare_code"), options=["--checksum=25"])
    shown = rr.run([*rr.tool, "dump", "-a", rr.trace], "shown").out.decode()
    for leaf in (0x80000002, 0x80000003, 0x80000004):
        assert f"CPUID({leaf:#x}, 0x0)" in shown
    replayed = rr.replay("--verify")
    assert (replayed.status, replayed.out) == (0, recorded.out)
