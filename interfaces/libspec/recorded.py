"""The interfaces a trace was recorded at, as its META says: what events of Kind.LIBCALL mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from interfaces.libspec.errors import SpecError
from interfaces.libspec.load import parse
from interfaces.libspec.model import Callback, Function, Interface


def interfaces_of(meta: Mapping[str, Any]) -> list[Interface]:
    """The interfaces, in the order in which their functions are numbered. Raises SpecError."""
    library = meta.get("library")
    items = library.get("interfaces") if isinstance(library, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise SpecError("the trace", "", "", "does not say at which library interface it was recorded")
    return [
        dataclasses.replace(parse(str(item.get("text")), str(item.get("path"))), name=str(item.get("name")))
        for item in items
    ]


def numbered(interfaces: list[Interface]) -> dict[int, tuple[Interface, Function | Callback]]:
    """Number in events -> what it is: functions, then callbacks, of each interface in turn."""
    found: dict[int, tuple[Interface, Function | Callback]] = {}
    for interface in interfaces:
        items: list[Function | Callback] = [*interface.functions.values(), *interface.callbacks.values()]
        for item in items:
            found[len(found) + 1] = (interface, item)
    return found
