"""What ends a recording before it begins.

    RrPyError
    └── RecordError   the recorder cannot do its work here

Launching has errors of its own (`interposer.errors.LaunchError`), and so has writing
(`tracefile.TraceWriteError`). Once the program runs nothing is raised any more: it goes on, unrecorded if
need be, and the user is told.
"""

from __future__ import annotations

from interfaces.errors import RrPyError


class RecordError(RrPyError):
    """This machine or this call does not allow recording."""
