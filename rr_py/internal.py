"""Functions of the program itself where it could be cut: those whose every effect types and watching tell."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from interfaces.libspec import Interface
from interfaces.libspec.internal import (
    Signature,
    Statement,
    UncuttableError,
    Watched,
    file_text,
    state,
)
from interfaces.libspec.load import parse
from replayer.errors import ReplayError

if TYPE_CHECKING:
    from replayer.watching import Target

OWN = "program"
"""The name of the interface that these functions make."""
MOST_FUNCTIONS = 60
"""Functions that are watched, those with most beneath them first."""
_NEVER = ("main", "_start", "__libc_start_main", "__libc_start_call_main")


@dataclass(slots=True)
class Found:
    """What is known of the program's functions: prototypes and watched calls by name, and the reason why a
    function cannot be cut. `homes` are the files they stand in, the program's first."""

    program: str = ""
    signatures: dict[str, Signature] = field(default_factory=dict)
    watched: dict[str, list[Watched]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    problem: str = ""

    def add(self, other: Found) -> None:
        """Take in what another run showed."""
        self.program = self.program or other.program
        self.signatures.update(other.signatures)
        self.homes.update(other.homes)
        self.calls.update(other.calls)
        self.problem = self.problem or other.problem
        for name, reason in other.refused.items():
            self.refused.setdefault(name, reason)
        for name, calls in other.watched.items():
            self.watched.setdefault(name, []).extend(calls)

    def statements(self) -> dict[str, Statement]:
        """The functions that can be cut; of the others the reason is noted."""
        stated = {}
        for name, signature in self.signatures.items():
            if name in self.refused:
                continue
            try:
                stated[name] = state(signature, self.watched.get(name, []))
            except UncuttableError as why:
                self.refused[name] = str(why)
        return stated

    def text(self, names: Collection[str]) -> str:
        """The part of an interface file that states these functions."""
        stated = {name: one for name, one in self.statements().items() if name in names}
        libraries = sorted({os.path.basename(self.homes[name]) for name in stated} - {self.program})
        return file_text(self.program, libraries, stated)

    def interface(self, names: Collection[str] | None = None) -> Interface | None:
        """The functions (all that can be cut, by default) as an interface; None where there are none."""
        wanted = self.statements().keys() if names is None else names
        return parse(self.text(wanted), f"{OWN}.toml") if wanted else None


def look(trace: Path, functions: Mapping[tuple[str, str], float], foreign: Collection[str]) -> Found:
    """Read prototypes of the functions (module's path and name -> bytes beneath) and watch them in a replay.

    `foreign` are paths of libraries that have interfaces. A trace that cannot be replayed to the program's
    main function shows nothing.
    """
    from replayer.watching import Watch, symbols
    from tracefile import TraceReader

    with TraceReader.open(trace) as reader:
        exe = reader.domains[min(reader.domains)].exe
    found = Found(program=os.path.basename(exe))
    known = symbols(exe)
    if "main" not in known:
        return found
    targets = []
    with ExitStack() as files:
        for path, group in _by_path(functions, foreign):
            addresses = known if path == exe else symbols(path)
            targets += _targets(path, group, addresses, found, files)
        if targets:
            watch = Watch(trace, targets, known["main"])
            try:
                found.watched = watch.run()
            except ReplayError as why:
                found.problem = why.message
                found.signatures.clear()
            found.calls = watch.calls
    return found


def _by_path(
    functions: Mapping[tuple[str, str], float], foreign: Collection[str]
) -> Iterable[tuple[str, list[str]]]:
    """Functions by the file they stand in, those with most beneath them."""
    from replayer.watching import is_system

    groups: dict[str, list[str]] = {}
    most = sorted(functions, key=lambda key: -functions[key])
    own = [
        (path, name)
        for path, name in most
        if path.startswith("/") and path not in foreign and not is_system(path) and name not in _NEVER
    ]
    for path, name in own[:MOST_FUNCTIONS]:
        groups.setdefault(path, []).append(name)
    return groups.items()


def _targets(
    path: str, names: list[str], addresses: Mapping[str, int], found: Found, files: ExitStack
) -> list[Target]:
    from replayer.prototypes import Prototypes, debug_files
    from replayer.watching import Target

    streams: list[IO[bytes]] = []
    for name in [path, *debug_files(path)]:
        with suppress(OSError):
            streams.append(files.enter_context(open(name, "rb")))  # noqa: SIM115
    prototypes = Prototypes(streams)
    targets: list[Target] = []
    if not prototypes.known:
        return targets
    for name in names:
        if name not in addresses or name in found.homes:
            found.refused[name] = "has its name in common with another, or none in the symbol table"
            continue
        found.homes[name] = path
        try:
            signature = prototypes.at(addresses[name], name)
        except UncuttableError as why:
            found.refused[name] = str(why)
            continue
        found.signatures[name] = signature
        targets.append(Target(path, addresses[name], signature))
    return targets
