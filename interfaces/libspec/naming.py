"""Names for library calls wherever events are shown: the interfaces of the trace that was opened last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from interfaces.abi import Region
from interfaces.errors import RrPyError

_meta: Mapping[str, Any] | None = None
_known: dict[int, Any] | None = None


def remember(meta: Mapping[str, Any]) -> None:
    """Note the META of a trace that was opened; its interfaces are read when a call is first shown."""
    global _meta, _known
    if isinstance(meta.get("library"), dict):
        _meta, _known = meta, None


def text(event: Any, regions: Sequence[Region], strings: int) -> str:
    """A library call as text; its number only, where the interface cannot be read."""
    global _known
    if _known is None:
        _known = {}
        if _meta is not None:
            from interfaces.libspec.recorded import interfaces_of, numbered

            with suppress(RrPyError):
                _known = {number: item for number, (_, item) in numbered(interfaces_of(_meta)).items()}
    from interfaces.libspec.show import call_text

    return call_text(event, regions, _known, strings=strings)
