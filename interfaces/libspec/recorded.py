"""The interfaces a trace was recorded at, as its META says: what events of Kind.LIBCALL mean."""

from __future__ import annotations

import base64
import dataclasses
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from interfaces.libspec.errors import SpecError
from interfaces.libspec.load import parse
from interfaces.libspec.model import Callback, Function, Interface

_MOST_TEXT = 64 << 20
UNRECORDED = 1001
"""Code of a report that a program of the recording ran unrecorded."""


def interfaces_of(meta: Mapping[str, Any]) -> list[Interface]:
    """The interfaces, in the order in which their functions are numbered. Raises SpecError."""
    library = meta.get("library")
    items = library.get("interfaces") if isinstance(library, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise SpecError("the trace", "", "", "does not say at which library interface it was recorded")
    assert isinstance(library, dict)
    texts = _unpacked(library, items)
    return [
        dataclasses.replace(parse(text, str(item.get("path"))), name=str(item.get("name")))
        for item, text in zip(items, texts, strict=True)
    ]


def described(interfaces: Sequence[Interface]) -> dict[str, Any]:
    """What META says of the interfaces: their texts together, compressed, for META itself is not."""
    texts = json.dumps([item.text for item in interfaces]).encode()
    return {
        "interfaces": [{"name": item.name, "path": item.path} for item in interfaces],
        "texts": base64.b64encode(zlib.compress(texts, 9)).decode("ascii"),
    }


def _unpacked(library: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> list[str]:
    """The texts of interfaces; older traces have each beside its name. Raises SpecError."""
    if "texts" not in library:
        return [str(item.get("text")) for item in items]
    try:
        packed = base64.b64decode(str(library["texts"]), validate=True)
        texts = json.loads(zlib.decompressobj().decompress(packed, _MOST_TEXT))
    except (ValueError, zlib.error):
        texts = None
    if not isinstance(texts, list) or len(texts) != len(items):
        raise SpecError("the trace", "", "", "does not say what is in its library interfaces")
    return [str(text) for text in texts]


def numbered(interfaces: list[Interface]) -> dict[int, tuple[Interface, Function | Callback]]:
    """Number in events -> what it is: functions, then callbacks, of each interface in turn."""
    found: dict[int, tuple[Interface, Function | Callback]] = {}
    for interface in interfaces:
        items: list[Function | Callback] = [*interface.functions.values(), *interface.callbacks.values()]
        for item in items:
            found[len(found) + 1] = (interface, item)
    return found
