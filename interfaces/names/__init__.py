"""Names of the kernel's constants: flag sets, enumerations, errno values, signals.

`FLAGS` and `ENUMS` are filled by the modules of this package; `flags_text` and `enum_text` look names up.
tests/unit/test_interfaces_names.py compares the values with the C headers of the machine.
"""

from __future__ import annotations

from interfaces.names import files, ioctls, kernel, memory, network, process, signals
from interfaces.names.sets import ENUMS, FLAGS, FlagSet, enum_text, flags_text

__all__ = [
    "ENUMS", "FLAGS", "FlagSet", "enum_text", "files", "flags_text", "ioctls", "kernel", "memory", "network",
    "process", "signals",
]  # fmt: skip
