"""Looking into a replaying process: memory, mappings, registers and stacks of a parked task."""

from __future__ import annotations

from contextlib import suppress

from interfaces.abi import Divergence
from replayer.contents import Contents
from replayer.divergence import DivergenceReport, FoundEvent, describe, differences, inputs_now
from replayer.domain import LiveDomain
from replayer.memory import Mapping, Mappings, Memory, MemoryFault, ProcessMemory
from replayer.registers import UCONTEXT_SIZE, Registers
from replayer.supervisor import Supervisor
from replayer.unwind import Frame, Unwinder


def mappings_of(pid: int, contents: Contents) -> Mappings:
    """What is mapped in a replaying process, with recorded paths; OSError when it is gone."""
    return Mappings(
        Mapping(one.start, one.end, one.prot, one.offset, contents.path_of(one.path))
        for one in Mappings.of(pid)
    )


def context_registers(memory: Memory, address: int) -> Registers:
    """The registers in a ucontext the core saved; MemoryFault when there is none."""
    if not address:
        raise MemoryFault(0, UCONTEXT_SIZE)
    return Registers.from_ucontext(memory.read(address, UCONTEXT_SIZE))


def report_divergence(supervisor: Supervisor, domain: LiveDomain) -> DivergenceReport:
    """The report about a domain that has diverged, while its processes still are there."""
    control = domain.ring.control
    reason = Divergence(control.diverged)
    number = int(control.diverged_event)
    found = FoundEvent.of(control.found)
    task = domain.tasks.get(int(control.diverged_tid))
    pid = task.real_pid if task is not None else min(domain.processes, default=0)
    expected_text, details, frames = "the end of the log", list[str](), list[Frame]()
    found_text = describe(found)
    memory = _memory(pid)
    try:
        if number < domain.total:
            expected = supervisor.reader.event(domain.number, number)
            expected_text = describe(expected, expected.regions)
            details = differences(reason, expected, found, memory)
            if memory is not None:
                found_text = describe(found, inputs_now(expected, found, memory))
        if memory is not None:
            with suppress(OSError, MemoryFault):
                registers = context_registers(memory, int(control.diverged_regs))
                frames = Unwinder(memory, mappings_of(pid, supervisor.contents)).backtrace(registers)
    finally:
        if memory is not None:
            memory.close()
    return DivergenceReport(
        reason=reason,
        domain=domain.number,
        event=number,
        events=domain.total,
        pid=task.pid if task is not None else domain.info.pid,
        task=int(control.diverged_tid),
        comm=domain.info.comm,
        expected=expected_text,
        found=found_text,
        details=tuple(details),
        frames=tuple(frames),
    )


def _memory(pid: int) -> ProcessMemory | None:
    with suppress(OSError):
        return ProcessMemory(pid)
    return None
