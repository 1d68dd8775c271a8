"""Imports without what they would bring along and nobody here uses: starting is mostly importing.

While a module is imported, stand-ins take the place of others that it would import and that are not there
yet. Another thread could see them, so nothing is done unless there is none.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class StandIn(ModuleType):
    """A module of which nothing is used but the functions it is given: whatever else is asked for does
    nothing."""

    def __init__(self, name: str, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        super().__init__(name)
        self.__dict__.update(functions or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_: None


def alone() -> bool:
    """Whether this is the only thread, as far as Python knows."""
    return "threading" not in sys.modules or sys.modules["threading"].active_count() == 1


@contextmanager
def standing_in(name: str, **functions: Callable[..., Any]) -> Iterator[None]:
    """Meanwhile module `name` has nothing but these functions, where it is not imported yet."""
    if name in sys.modules or not alone():
        yield
        return
    sys.modules[name] = StandIn(name, functions)
    try:
        yield
    finally:
        del sys.modules[name]


def import_pathlib() -> None:
    """pathlib without the parser of addresses: it is needed, and imported, for a file:// address only."""
    with standing_in("urllib.parse", quote_from_bytes=_quote_from_bytes):
        import pathlib  # noqa: F401


def _quote_from_bytes(*arguments: Any) -> str:
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(*arguments)


def python_implementation() -> str:
    """What `platform.python_implementation` says, without its patterns for other Pythons."""
    return {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
