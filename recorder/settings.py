"""Environment settings without which a program can be recorded only badly: found, set and told.

Threads of an OpenMP team wait for each other by spinning, as they suppose that all of them run at once. While
recording one of them runs at a time, and a spin ends only when it is noticed. OpenMP 5.2, section 21.7, has a
setting for that.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping

from interposer import elf

_OPENMP = ("libgomp.so", "libomp.so", "libiomp5.so")


def needed(program: str, environment: Mapping[str, str], cwd: str | None = None) -> dict[str, str]:
    """The settings to add to `environment` for `program` (a path, or a name to look for in PATH).

    Nothing that the user has set is changed; a program that cannot be read needs nothing.
    """
    if "OMP_WAIT_POLICY" in environment or not _links_openmp(program, environment, cwd):
        return {}
    return {"OMP_WAIT_POLICY": "passive"}


def _links_openmp(program: str, environment: Mapping[str, str], cwd: str | None) -> bool:
    path = os.path.join(cwd or ".", program) if "/" in program else _found(program, environment)
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
            return any(name.startswith(_OPENMP) for name in elf.parse(content).needed())
    except (OSError, ValueError, elf.ElfError):
        return False


def _found(program: str, environment: Mapping[str, str]) -> str:
    """Where PATH finds it, or the name itself."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return program
