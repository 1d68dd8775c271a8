"""What gives functions to event loops, and which objects of Python block: knowledge/handlers.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from hangscan.knowledge import FOLDER


@dataclass(frozen=True, slots=True)
class PythonLoop:
    """How a toolkit takes handlers in Python: position of the handler by method, keywords, overrides."""

    toolkit: str
    why: str
    methods: dict[str, int]
    keywords: frozenset[str]
    imports: tuple[str, ...]
    overrides: str = ""


@dataclass(frozen=True, slots=True)
class PythonObject:
    """Methods that block of what the constructors give; `like` is the dotted call whose pattern tells more.

    `gives` says of methods what they give in turn.
    """

    methods: frozenset[str]
    like: str
    gives: dict[str, str]


@dataclass(frozen=True, slots=True)
class Handlers:
    """All of it. `registrars` maps a native function to its loop; `objects` a constructor to its object,
    `guesses` a method's name alone to what it is like."""

    registrars: dict[str, str]
    workers: frozenset[str]
    loops: tuple[PythonLoop, ...]
    objects: dict[str, PythonObject]
    guesses: dict[str, str]


@cache
def read_handlers() -> Handlers:
    """From the file that comes with the tool."""
    document: dict[str, Any] = tomllib.loads((FOLDER / "handlers.toml").read_text(encoding="utf-8"))
    loops = tuple(
        PythonLoop(
            table["toolkit"],
            table["why"],
            dict(table.get("methods", {})),
            frozenset(table.get("keywords", ())),
            tuple(table["imports"]),
            table.get("overrides", ""),
        )
        for table in document["python"]
    )
    objects: dict[str, PythonObject] = {}
    for table in document["object"]:
        one = PythonObject(frozenset(table["methods"]), table["like"], dict(table.get("gives", {})))
        objects.update(dict.fromkeys(table["constructors"], one))
    registrars = {name: loop for loop, names in document["registrars"].items() for name in names}
    guesses = {name: like for like, names in document["guess"].items() for name in names}
    return Handlers(registrars, frozenset(document["workers"]["native"]), loops, objects, guesses)
