"""The C library's allocator, told to keep what is given back to it.

Buffers of hundreds of kilobytes come and go with every chunk of events. By default each of them is memory new
from the kernel, which has to clear every page of it: that takes longer than all that is done with the bytes.
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_KEPT = 64 << 20
_MAPPED = 32 << 20


def keep_freed_memory() -> None:
    """Keep up to 64 MB of freed memory for what comes; a C library without such a setting stays as it is."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:
        return
    set_option(_M_TRIM_THRESHOLD, _KEPT)
    set_option(_M_MMAP_THRESHOLD, _MAPPED)
    set_option(_M_ARENA_MAX, 1)
