"""Events as text and as trees of fields, from the same table that replay lives on.

`format_call` gives a line as strace's readers expect it, `decode_args` the arguments as `Field`s,
`format_event` a line for an event of any kind. None of them raises for any arguments or bytes: what cannot
be decoded is shown as an address or a number.
"""

from __future__ import annotations

from interfaces.decode.call import decode_args, format_call
from interfaces.decode.events import format_event
from interfaces.decode.field import EventLike, Field, Style

__all__ = ["EventLike", "Field", "Style", "decode_args", "format_call", "format_event"]
