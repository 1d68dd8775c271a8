"""`python -m rr_py` and the `rr-py` script."""

import gc
import os
from contextlib import suppress
from typing import NoReturn

_ALLOCATIONS = 50_000
"""So many objects more than were given back bring on a search for cycles: those of the imports would bring on
many, and find nothing."""


def main() -> NoReturn:
    """Run the command line and end with its status, without taking the interpreter down piece by piece."""
    gc.set_threshold(_ALLOCATIONS)
    from rr_py.ending import flush_streams
    from rr_py.main import main as run

    status = run()
    with suppress(OSError):
        flush_streams()
    os._exit(status)


if __name__ == "__main__":
    main()
