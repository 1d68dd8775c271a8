"""Names for library calls wherever events are shown: the interfaces of the trace that was opened last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from interfaces.abi import Region
from interfaces.errors import RrPyError

if TYPE_CHECKING:
    from interfaces.libspec.model import Callback, Function

_meta: Mapping[str, Any] | None = None
_known: dict[int, Function | Callback] | None = None


def remember(meta: Mapping[str, Any]) -> None:
    """Note the META of a trace that was opened; its interfaces are read when a call is first shown."""
    global _meta, _known
    if isinstance(meta.get("library"), dict):
        _meta, _known = meta, None


def known() -> Mapping[int, Function | Callback]:
    """Number in events -> function or callback; empty where there is no interface, or it cannot be read."""
    global _known
    if _known is None:
        _known = {}
        if _meta is not None:
            from interfaces.libspec.recorded import interfaces_of, numbered

            with suppress(RrPyError):
                _known = {number: item for number, (_, item) in numbered(interfaces_of(_meta)).items()}
    return _known


def text(event: Any, regions: Sequence[Region], strings: int) -> str:
    """A library call as text; its number only, where the interface cannot be read."""
    from interfaces.libspec.show import call_text

    return call_text(event, regions, known(), strings=strings)
