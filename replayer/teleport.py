"""Sending a parked thread back to the program at once, whatever the core was about to do.

A call that a debugger makes starts from anywhere, also from inside a system call that waits for its turn.
The thread then leaves the core through the signal frame that holds its registers, by the core's own way out.
"""

from __future__ import annotations

from functools import cache

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from interposer import image_path, ptrace
from interposer.errors import Gone
from replayer.corelayout import FRAME_CONTEXT
from replayer.errors import CoreError

_WAY_OUT = "rr_sigreturn_to"
_STACK_BELOW = 8192


@cache
def _address(path: str) -> int:
    """Where the core's way out is."""
    with open(path, "rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        found = table.get_symbol_by_name(_WAY_OUT) if isinstance(table, SymbolTableSection) else None
    if not found:
        raise CoreError(f"the core {path} has no {_WAY_OUT}", "Install rr-py again.")
    return int(found[0]["st_value"])


def leave_core(real_tid: int, context: int) -> None:
    """Let the thread go on in the program with the registers saved at `context`. CoreError when it cannot."""
    frame = context - FRAME_CONTEXT
    try:
        ptrace.seize(real_tid)
        ptrace.interrupt(real_tid)
        ptrace.wait(real_tid)
        registers = ptrace.get_registers(real_tid)
        registers.rip = _address(str(image_path()))
        registers.rdi = frame
        registers.rsp = (frame - _STACK_BELOW) & ~15
        registers.orig_rax = (1 << 64) - 1
        registers.rax = 0
        ptrace.set_registers(real_tid, registers)
        ptrace.detach(real_tid)
    except (Gone, OSError) as error:
        raise CoreError(f"a call cannot be made in this thread: {error}", "Choose another place.") from None
