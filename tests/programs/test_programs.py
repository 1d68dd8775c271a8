"""Every small C program behaves the same natively, recorded and replayed; memory is compared on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .conftest import FOLDER, Recorder

HELPERS = {"refuse", "segment", "shares"}
"""Not programs to record by themselves: they are run around a recording, or have a test of their own."""

VARIES = {"addresses", "counters", "many_signals", "unknown", "vtimer", "keys_and_quotas", "outside"}
"""Print other things natively than recorded: times, or what docs/limits.md names."""


@dataclass(frozen=True)
class Case:
    name: str
    arguments: tuple[str, ...] = ()
    said: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return " ".join((self.name, *self.arguments))


SAID = {
    "filters": ("a seccomp filter was accepted but is not applied while recording",),
    "unknown": (
        "system call number 999 is not known: it answered ENOSYS",
        "system call io_uring_setup cannot be recorded: it answered ENOSYS",
    ),
    "credentials": ("prctl 0x3039 is not known: it answered EINVAL",),
    "keys_and_quotas": ("keyctl 0x270f is not known: it answered EINVAL",),
    "outside": (
        "memory to share with the X server was refused: pictures go through its socket",
        "nscd was refused, as its memory is shared: names are looked up directly",
        "memory to share with PulseAudio was refused: sound goes through its socket",
    ),
    "kernel_rings": (
        "a mapping that the kernel writes to (perf events, BPF maps) was refused: ENODEV",
        "system call setsockopt PACKET_RX_RING cannot be recorded: it answered ENOSYS",
    ),
    "own_memory": (
        "pwrite64 into the memory of another process cannot be recorded: it answered EPERM",
        "process_vm_writev into the memory of another process cannot be recorded: it answered EPERM",
    ),
    "old_entries": ("a 32-bit system call cannot be recorded: it answered ENOSYS",),
}
"""What the recorder must have said, each sentence once."""

WAYS_TO_DIE = [
    *("abort", "segv", "fpe", "ill", "trap", "blocked", "ignored", "overflow", "pipe", "cpu"),
    *(str(number) for number in range(1, 32) if number not in (17, 18, 19, 20, 21, 22, 23, 28)),
    *("34", "64"),
]

CASES = [
    *(
        Case(source.stem, (), SAID.get(source.stem, ()))
        for source in sorted(FOLDER.glob("*.c"))
        if source.stem not in HELPERS | {"die"}
    ),
    *(Case("die", (way,)) for way in WAYS_TO_DIE),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_program(case: Case, programs: Callable[[str], Path], rr: Recorder) -> None:
    program = programs(case.name)
    native = rr.native(program, *case.arguments)
    recorded = rr.record(program, *case.arguments, options=["--checksum=25"])
    rr.forget_inputs()
    replayed = rr.replay("--verify")
    assert native.status == recorded.status
    if case.name not in VARIES:
        assert (recorded.out, recorded.err) == (native.out, native.err)
    assert (replayed.status, replayed.out, replayed.err) == (recorded.status, recorded.out, recorded.err)
    assert replayed.said == ()
    for sentence in case.said:
        assert [line for line in recorded.said if sentence in line] == [f"rr-py: {sentence}"]
    if not case.said:
        assert recorded.said == ()


def test_every_program_says_what_it_shows() -> None:
    for source in FOLDER.glob("*.c"):
        first = source.read_text().splitlines()[0]
        assert first.startswith(f"/* {source.name} - "), source.name
