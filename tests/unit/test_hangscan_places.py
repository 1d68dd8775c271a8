"""Where paths lie, descriptors, and which calls can block."""

from __future__ import annotations

import struct

from hangscan.descriptors import Table, Tables, address_text
from hangscan.operations import Judge, Judged
from hangscan.places import Places
from interfaces.abi import Region, RegionKind
from interfaces.calls import BY_NAME

MOUNTS = [
    ("/", "ext4"),
    ("/tmp", "tmpfs"),
    ("/srv/share", "nfs4"),
    ("/run/user/0", "tmpfs"),
    ("/proc", "proc"),
]


def places(**more: object) -> Places:
    arguments: dict[str, object] = {"folders": ["/work"], "home": "/home/a", "mounts": MOUNTS, **more}
    return Places(**arguments)  # type: ignore[arg-type]


def test_scopes() -> None:
    known = places(remote=["/data/*"], programs=["/home/a/.local/python/bin/python3"])
    scopes = {
        "/work/file": "user",
        "/home/a/notes": "user",
        "/media/stick/x": "user",
        "/run/user/0/dconf/user": "user",
        "/srv/share/x": "user",
        "/data/set/1": "user",
        "/home/a/.local/python/lib/python3.11/os.py": "system",
        "/usr/lib/libc.so.6": "system",
        "/tmp/x": "memory",
        "/proc/self/stat": "memory",
        "/sys/class": "memory",
        "/homework": "system",
    }
    assert {path: known.of(path).scope for path in scopes} == scopes
    assert known.of("/srv/share/x").filesystem == "nfs4"
    assert known.of("/srv/share/x").mount == "/srv/share"


def test_the_working_folder_counts_wherever_it_lies() -> None:
    assert places(folders=["/tmp/build"]).of("/tmp/build/doc").scope == "user"


# ---- descriptors ----


def text(arg: int, value: bytes) -> list[Region]:
    return [Region(1, RegionKind.IN, arg, value + b"\0")]


class Payload:
    """The regions of a call, as given."""

    def __init__(self, regions: list[Region]) -> None:
        self.regions = regions

    def __call__(self) -> list[Region]:
        return self.regions

    def text(self, arg: int) -> str:
        return next((one.data.rstrip(b"\0").decode() for one in self.regions if one.arg == arg), "")


class Process:
    """A process whose calls are fed to tables and judged."""

    def __init__(self) -> None:
        self.tables = Tables(Table("/work"), 10, {10: 10, 11: 10, 20: 20})
        self.judge = Judge(places())

    def call(
        self, name: str, *args: int, result: int = 0, regions: list[Region] | None = None, task: int = 10
    ) -> Judged | None:
        six = (*args, *(0,) * (6 - len(args)))
        known = regions or []
        number = BY_NAME[name].number
        judged = self.judge.judge(self.tables.of(task), number, six, result, Payload(known))
        self.tables.apply(task, number, six, result, Payload(known))
        return judged


def test_a_descriptor_is_followed_through_open_dup_and_close() -> None:
    # GIVEN a file that is opened by a relative path and duplicated
    process = Process()
    opened = process.call("openat", -100 & 0xFFFFFFFF, 0, 1, result=3, regions=text(1, b"doc"))
    process.call("dup2", 3, 7, result=7)
    process.call("close", 3)
    # WHEN both are synced
    there = process.call("fsync", 7)
    gone = process.call("fsync", 3)
    # THEN the copy names the file, the closed one is nothing
    assert opened is not None
    assert opened.resource.path == "/work/doc"
    assert there is not None
    assert (there.name, there.resource.path, there.resource.scope) == ("fsync", "/work/doc", "user")
    assert gone is None


def test_relative_paths_follow_chdir_and_directory_descriptors() -> None:
    process = Process()
    process.call("chdir", 0, regions=text(0, b"/home/a"))
    process.call("openat", -100 & 0xFFFFFFFF, 0, 0o200000, result=4, regions=text(1, b"sub"))
    found = process.call("newfstatat", 4, 0, 0, 0, regions=text(1, b"x"))
    assert found is not None
    assert found.resource.path == "/home/a/sub/x"


def test_what_cannot_block_is_no_operation() -> None:
    process = Process()
    process.call("openat", -100 & 0xFFFFFFFF, 0, 0, result=3, regions=text(1, b"/proc/self/stat"))
    process.call("socket", 1, 1 | 0o4000, 0, result=4)
    process.call("eventfd2", 0, 0, result=5)
    pair = [Region(1, RegionKind.OUT, 0, struct.pack("<2i", 6, 7))]
    process.call("pipe2", 0, 0o4000, regions=pair)
    assert process.call("read", 3, 0, 64, result=10) is None
    assert process.call("recvfrom", 4, 0, 64, 0, result=10) is None
    assert process.call("read", 5, 0, 8, result=8) is None
    assert process.call("read", 6, 0, 1, result=1) is None
    assert process.call("wait4", -1 & 0xFFFFFFFF, 0, 1, result=0) is None
    assert process.call("futex", 4096, 129, 1, result=1) is None


def test_sockets_are_told_apart_by_their_peers() -> None:
    process = Process()
    peers = {
        b"\2\0\0\x35\x0a\0\0\1" + bytes(8): ("dns", "10.0.0.1:53"),
        b"\1\0/tmp/.X11-unix/X0\0": ("display", "/tmp/.X11-unix/X0"),
        b"\1\0\0/tmp/.X11-unix/X0\0": ("display", "@/tmp/.X11-unix/X0"),
        b"\1\0/run/user/0/bus\0": ("bus", "/run/user/0/bus"),
        b"\2\0\x01\xbb\xc0\0\2\1" + bytes(8): ("socket", "192.0.2.1:443"),
    }
    for number, (address, expected) in enumerate(peers.items(), 3):
        process.call("socket", 2 if address[0] == 2 else 1, 1, 0, result=number)
        process.call("connect", number, 0, len(address), regions=[Region(1, RegionKind.IN, 1, address)])
        found = process.call("recvfrom", number, 0, 100, 0, result=5)
        assert found is not None
        assert (found.resource.kind, found.resource.peer) == expected
        assert found.resource.remote_peer == (address[0] == 2)


def test_a_connection_is_to_whom_it_is_made() -> None:
    process = Process()
    process.call("socket", 2, 1, 0, result=3)
    address = [Region(1, RegionKind.IN, 1, b"\2\0\0\x50\xc0\0\2\1" + bytes(8))]
    found = process.call("connect", 3, 0, 16, result=-111, regions=address)
    assert found is not None
    assert (found.name, found.resource.peer, found.resource.remote_peer) == ("connect", "192.0.2.1:80", True)


def test_closing_a_file_matters_after_it_was_written() -> None:
    process = Process()
    process.call("openat", -100 & 0xFFFFFFFF, 0, 2, result=3, regions=text(1, b"doc"))
    assert process.call("close", 3) is None
    process.call("openat", -100 & 0xFFFFFFFF, 0, 2, result=3, regions=text(1, b"doc"))
    process.call("write", 3, 0, 5, result=5)
    found = process.call("close", 3)
    assert found is not None
    assert found.name == "close"


def test_making_a_descriptor_non_blocking_later_counts() -> None:
    process = Process()
    process.call("socket", 2, 1, 0, result=3)
    assert process.call("read", 3, 0, 1, result=1) is not None
    process.call("fcntl", 3, 4, 0o4000)
    assert process.call("read", 3, 0, 1, result=1) is None


def test_a_child_process_has_descriptors_of_its_own() -> None:
    process = Process()
    process.call("openat", -100 & 0xFFFFFFFF, 0, 0, result=3, regions=text(1, b"doc"))
    process.tables.fork(10, 20)
    process.call("close", 3, task=20)
    assert process.call("fsync", 3, task=11) is not None
    assert process.call("fsync", 3, task=20) is None


def test_exec_closes_what_is_marked_so() -> None:
    process = Process()
    process.call("openat", -100 & 0xFFFFFFFF, 0, 0o2000000, result=3, regions=text(1, b"private"))
    process.call("openat", -100 & 0xFFFFFFFF, 0, 0, result=4, regions=text(1, b"shared"))
    assert set(process.tables.of(10).copy(after_exec=True).fds) == {4}


def test_addresses_as_text() -> None:
    assert address_text(b"\x0a\0\0\x50" + bytes(4) + bytes(15) + b"\1" + bytes(4)) == "[::1]:80"
    assert address_text(b"") == ""
    assert address_text(b"\x10\0\0\0") == ""
