"""Recording: the process tree, the draining of its logs into a trace, and what the user is told meanwhile.

from recorder import RecordOptions, record
result = record(RecordOptions(command=["ls", "-la"]))
"""

from recorder.errors import RecordError
from recorder.options import RecordOptions, RecordResult
from recorder.record import record

__all__ = ["RecordError", "RecordOptions", "RecordResult", "record"]
