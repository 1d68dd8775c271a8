"""Where a path lies: with the user's data, which environment models move, with the system, or in memory."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

USER_ROOTS = ("/mnt", "/media", "/run/user", "/run/media", "/net", "/misc")
MEMORY_ROOTS = ("/proc", "/sys", "/dev")
REMOTE_FILESYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.gvfsd-fuse",
     "fuse.rclone", "glusterfs", "fuse.glusterfs", "lustre", "davfs", "fuse.davfs2", "autofs",
     "virtiofs", "beegfs"}
)  # fmt: skip
MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "proc", "sysfs", "cgroup2", "hugetlbfs"})
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Place:
    """`scope` is "user", "system" or "memory"; `filesystem` and `mount` are those of this machine now, "" for
    a path that this machine does not have."""

    scope: str
    filesystem: str = ""
    mount: str = ""


class Places:
    """Answers for the paths of one recording. The trace does not say what was mounted: that is a hint from
    the machine the scan runs on."""

    def __init__(
        self,
        folders: Sequence[str],
        home: str,
        remote: Iterable[str] = (),
        programs: Iterable[str] = (),
        mounts: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """`folders` are working directories of the recording, `home` the user's, `remote` globs that count
        as the user's, `programs` paths of executables. `mounts` are (folder, file system), None: this
        machine's."""
        self._user = tuple(
            _folder(path) for path in (*folders, home, *USER_ROOTS) if path.startswith("/") and path != "/"
        )
        self._remote = tuple(remote)
        self._system = tuple(
            _folder(found) for path in programs if (found := _prefix(path)) and found not in folders
        )
        table = read_mounts() if mounts is None else mounts
        self._mounts = sorted(table, key=lambda item: -len(item[0]))
        self._known: dict[str, Place] = {}

    def of(self, path: str) -> Place:
        """Where an absolute path lies."""
        place = self._known.get(path)
        if place is None:
            place = self._known[path] = self._find(path)
        return place

    def _find(self, path: str) -> Place:
        if _inside(path, MEMORY_ROOTS) and not path.startswith("/dev/shm/"):
            return Place("memory", path.split("/")[1])
        mount, filesystem = next(
            ((folder, kind) for folder, kind in self._mounts if _inside(path, (folder,))), ("", "")
        )
        if any(fnmatch.fnmatch(path, glob) for glob in self._remote) or filesystem in REMOTE_FILESYSTEMS:
            return Place("user", filesystem, mount)
        if any(path.startswith(prefix) for prefix in self._system):
            return Place("system", filesystem, mount)
        if any((path + "/").startswith(prefix) for prefix in self._user):
            return Place("user", filesystem, mount)
        return Place("memory" if filesystem in MEMORY_FILESYSTEMS else "system", filesystem, mount)


def read_mounts(path: str = "/proc/self/mountinfo") -> list[tuple[str, str]]:
    """What is mounted on this machine: (folder, file system); empty when that cannot be read."""
    found = []
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                left, _dash, right = line.partition(" - ")
                words, kinds = left.split(), right.split()
                if len(words) > 4 and kinds:
                    folder = _OCTAL.sub(lambda match: chr(int(match[1], 8)), words[4])
                    found.append((folder, kinds[0]))
    except OSError:
        return []
    return found


def _folder(path: str) -> str:
    return path.rstrip("/") + "/"


def _inside(path: str, roots: Iterable[str]) -> bool:
    return any(path == root or path.startswith(_folder(root)) for root in roots)


def _prefix(program: str) -> str:
    """The tree a program is installed in (`/x` of `/x/bin/program`), if that is more than a home folder."""
    folder = os.path.dirname(program)
    if os.path.basename(folder) != "bin":
        return ""
    prefix = os.path.dirname(folder)
    return prefix if prefix.count("/") > 2 else ""
