"""Code without symbols, and code that the program has written itself."""

from __future__ import annotations

import re
import subprocess

from elftools.elf.elffile import ELFFile

from replayer.debuggee import Triggers, Why
from replayer.timeline import Timeline
from tests.conftest import RunTool
from tests.debug.conftest import Record, StartGdb


def test_a_stripped_program(gdb: StartGdb, recorded: Record, tool: RunTool) -> None:
    """GIVEN a program without symbols WHEN debugged by addresses THEN breakpoints, steps and stacks work both
    ways."""
    stripped = recorded("count.c", flags=("-s",))
    named = recorded("count.c", flags=("-fno-lto",))
    symbols = subprocess.run(["nm", named.program], capture_output=True, text=True, check=True).stdout
    debugger = gdb("count.c", flags=("-s",))
    entry = re.search(r"AT_ENTRY .*(0x[0-9a-f]+)", debugger.say("info auxv"))
    assert (
        entry is not None
        and "no symbols" in subprocess.run(["nm", stripped.program], capture_output=True, text=True).stderr
    )
    with open(stripped.program, "rb") as file:
        bias = int(entry[1], 16) - ELFFile(file).header.e_entry
    inner = bias + int(next(line.split()[0] for line in symbols.splitlines() if line.endswith(" inner")), 16)
    debugger.mi(f"-break-insert *{inner}")
    for expected in range(4):
        debugger.run("-exec-continue")
        assert (debugger.value("$pc"), debugger.value("$rdi")) == (inner, expected)
    event = debugger.event()
    frames = debugger.mi("-stack-list-frames")["stack"]
    assert len(frames) >= 3 and "__libc_start" in str(frames)
    pcs = []
    for _step in range(12):
        pcs.append((debugger.value("$pc"), debugger.value("$sp")))
        debugger.run("-exec-step-instruction")
    for step in reversed(pcs):
        debugger.run("-exec-step-instruction --reverse")
        assert (debugger.value("$pc"), debugger.value("$sp")) == step
    debugger.run("-exec-continue --reverse")
    assert (debugger.value("$rdi"), debugger.event()) == (2, event)
    done = tool("stack", f"{stripped.trace}:{event}")
    assert f"in {stripped.program}" in done.stdout and "__libc_start_main" in done.stdout


def test_code_made_at_run_time(gdb: StartGdb) -> None:
    """GIVEN a breakpoint in a page that is written to again and again WHEN run to and back, and stepped
    THEN each version of the code is stopped in, and runs as it was recorded."""
    debugger = gdb("jit.c", ":end")
    made = debugger.value("(long)made")
    debugger.say("seek start")
    debugger.mi(f"-break-insert *{made}")
    seen = []
    for step in (1, 1, 2, 2, 3, 3):
        assert debugger.run("-exec-continue")["reason"] == "breakpoint-hit"
        assert f"add    $0x{step}," in debugger.say(f"x/2i {made}")
        seen.append((debugger.value("$rdi"), debugger.value("result"), debugger.event()))
    rounds = debugger.value("rounds")
    assert [one[0] for one in seen] == [rounds, 3] * 3
    assert [one[1] for one in seen] == [0, rounds, 3, 2 * rounds, 6, 3 * rounds]
    for expected in reversed(seen[:-1]):
        debugger.run("-exec-continue --reverse")
        assert (debugger.value("$rdi"), debugger.value("result"), debugger.event()) == expected
    debugger.mi("-break-delete")
    pcs = []
    for _step in range(8):
        pcs.append((debugger.value("$pc"), debugger.value("$rax"), debugger.value("$rdi")))
        debugger.run("-exec-step-instruction")
    for before in reversed(pcs[1:]):
        debugger.run("-exec-step-instruction --reverse")
        assert (debugger.value("$pc"), debugger.value("$rax"), debugger.value("$rdi")) == before
    debugger.mi(f'-break-insert -c "$rdi == {rounds - 77}" *{made + 6}')
    debugger.run("-exec-continue")
    assert (debugger.value("$rdi"), debugger.value("$rax")) == (rounds - 77, 78)


def test_back_into_a_loop_of_made_code(recorded: Record) -> None:
    """GIVEN the return from many rounds of a loop without unwind tables WHEN stepped back THEN its last
    instructions, one by one."""
    with Timeline.open(recorded("jit.c").trace) as timeline:
        timeline.end()
        made = timeline.read_int(timeline.address("made"))
        timeline.seek(timeline.first)
        timeline.forward(Triggers(frozenset([made])))
        rounds = timeline.registers().rdi
        returns = timeline.read_int(timeline.registers().rsp)
        assert timeline.forward(Triggers(frozenset([returns]))).why is Why.BREAKPOINT
        assert timeline.registers().rax == rounds
        for offset, left in ((11, 0), (9, 0), (6, 1), (2, 1), (9, 1)):
            assert timeline.step_back()
            assert (timeline.registers().rip - made, timeline.registers().rdi) == (offset, left)
