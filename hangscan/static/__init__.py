"""Hang points in code that need not have run: in ELF programs and in Python packages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hangscan.errors import ScanError
from hangscan.options import Options
from hangscan.static.model import Found, HangPoint

__all__ = ["Found", "HangPoint", "search"]


def search(paths: Sequence[Path], options: Options) -> Found:
    """Search programs, libraries, Python files and packages.

    Learnt patterns of the store in `options.patterns` count beside the built-in ones. ScanError for a path
    that is not there or is nothing of these.
    """
    from hangscan.static.blocking import Blocking

    blocking = Blocking.load(options.patterns)
    found = Found()
    for path in paths:
        if not path.exists():
            raise ScanError(f"{path}: there is no such file or folder", "Name a program or a Python package.")
        files = list(_python_files(path))
        if files:
            from hangscan.static.python import search_python

            search_python(path if path.is_dir() else path.parent, files, blocking, found)
        elif path.is_file() and _is_elf(path):
            from hangscan.static.elf import search_elf

            search_elf(path, blocking, found)
        else:
            raise ScanError(
                f"{path} is no ELF program and no Python code", "Name a program or a Python package."
            )
    return found


def _python_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        if path.suffix == ".py" or _script(path):
            yield path
        return
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith(".") and name != "__pycache__")
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


def _script(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"python" in first


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
