"""Environment settings without which a program can be recorded only badly: found, set and told.

Threads of an OpenMP team wait for each other by spinning, as they suppose that all of them run at once. While
recording one of them runs at a time, and a spin ends only when it is noticed. OpenMP 5.2, section 21.7, has a
setting for that.
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Mapping

_OPENMP = (b"libgomp.so", b"libomp.so", b"libiomp5.so")
_LOOKED_AT = 16 << 20


def needed(program: str, environment: Mapping[str, str], cwd: str | None = None) -> dict[str, str]:
    """The settings to add to `environment` for `program` (a path, or a name to look for in PATH).

    Nothing that the user has set is changed; a program that cannot be read needs nothing.
    """
    if "OMP_WAIT_POLICY" in environment or not _links_openmp(program, environment, cwd):
        return {}
    return {"OMP_WAIT_POLICY": "passive"}


def _links_openmp(program: str, environment: Mapping[str, str], cwd: str | None) -> bool:
    if "/" in program:
        path: str | None = os.path.join(cwd or ".", program)
    else:
        path = shutil.which(program, path=environment.get("PATH"))
    if path is None:
        return False
    try:
        with open(path, "rb") as file:
            size = min(os.fstat(file.fileno()).st_size, _LOOKED_AT)
            if file.read(4) != b"\x7fELF":
                return False
            with mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as content:
                return any(content.find(name) >= 0 for name in _OPENMP)
    except (OSError, ValueError):
        return False
