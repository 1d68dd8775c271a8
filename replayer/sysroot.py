"""A folder in which a debugger finds the program's files as they were recorded.

Where a file on the disk is the recorded one, the folder has a link to it; where it has changed or is gone and
the trace has the whole of it (see `rr-py pack`), a copy from the trace.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tracefile import FileEntry, TraceReader


def changed_files(reader: TraceReader) -> dict[str, list[FileEntry]]:
    """Mapped ELF files that are not on the disk as recorded, with all their entries, by path."""
    by_path: dict[str, list[FileEntry]] = {}
    for entry in reader.files.values():
        if entry.path.startswith("/") and not entry.shared:
            by_path.setdefault(entry.path, []).append(entry)
    return {path: entries for path, entries in by_path.items() if not _is_recorded(path, entries[-1])}


def _is_recorded(path: str, entry: FileEntry) -> bool:
    try:
        now = os.stat(path)
    except OSError:
        return False
    same_time = now.st_mtime_ns == entry.mtime_ns or entry.kind == "system"
    return now.st_size == entry.size and same_time


def build(reader: TraceReader, folder: Path, paths: Iterable[str]) -> tuple[bool, list[str]]:
    """Make `folder` gdb's sysroot for these mapped `paths`, if the trace has any of those that changed.

    Returns whether it was made, and the paths that can be had in no way as they were recorded.
    """
    changed = changed_files(reader)
    wanted = set(paths)
    missing: list[str] = []
    extracted = False
    for path in wanted & changed.keys():
        target = folder / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if _extract(reader, changed[path], target):
            extracted = True
        else:
            missing.append(path)
    if extracted:
        _link(folder, wanted - changed.keys())
    return extracted, sorted(missing)


def _link(folder: Path, paths: Iterable[str]) -> None:
    """Links to files that have not changed, under all names that they have on the disk."""
    parents = {os.path.dirname(path) for path in paths}
    for top in ("lib", "lib64"):
        if os.path.islink(f"/{top}"):
            with suppress(FileExistsError):
                (folder / top).symlink_to(os.readlink(f"/{top}").lstrip("/"))
        parents.add(os.path.realpath(f"/{top}"))
    for parent in parents:
        inside = folder / parent.lstrip("/")
        inside.mkdir(parents=True, exist_ok=True)
        with suppress(OSError), os.scandir(parent) as entries:
            for entry in entries:
                with suppress(OSError):
                    (inside / entry.name).symlink_to(entry.path)


def _extract(reader: TraceReader, entries: list[FileEntry], target: Path) -> bool:
    """Write a file from its pieces in the trace; False (and no file) when not all of it is there."""
    size = entries[-1].size
    pieces = sorted((one for one in entries if one.blob is not None), key=lambda one: one.offset)
    covered = 0
    for one in pieces:
        if one.offset <= covered:
            covered = max(covered, one.offset + one.length)
    if covered < size:
        return False
    with open(target, "wb") as file:
        for one in pieces:
            assert one.blob is not None
            file.seek(one.offset)
            try:
                for data in reader.blob(one.blob):
                    file.write(data)
            except KeyError:
                return False
        file.truncate(size)
    return True
