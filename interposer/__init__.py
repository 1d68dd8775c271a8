"""The interposer's Python handle: start a program with the core inside it, and talk to the core.

The core itself is C, one static ELF image (interposer/core). Recording: `launch` forks the program,
`inject` puts the core into the image an execve made, `channel` and `shared` are how the two talk from then
on. Nothing here knows the trace format.
"""

from __future__ import annotations

import os
from pathlib import Path

from interposer.errors import ImageError


def image_path() -> Path:
    """The core's ELF file: $RR_PY_CORE, else the installed one, else the one `make -C interposer/core` built.

    Raises ImageError when there is none.
    """
    chosen = os.environ.get("RR_PY_CORE")
    here = Path(__file__).resolve().parent
    places = [Path(chosen)] if chosen else [here / "_core" / "rr_core", here / "core" / "build" / "rr_core"]
    for place in places:
        if place.is_file():
            return place
    raise ImageError(
        f"the core image is missing: looked for {', '.join(map(str, places))}",
        "Unset RR_PY_CORE." if chosen else "Install rr-py again (pip install --force-reinstall rr-py).",
    )


__all__ = ["image_path"]
