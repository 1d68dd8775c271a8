"""What every process is told of a file once one has asked: who need not ask, and who must from when on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from interfaces import abi
from interposer.channel import Message
from interposer.shared import GlobalPage
from recorder.domains import Domain, Process
from recorder.files import MAP_PRIVATE, FileTable
from recorder.images import Core
from recorder.mapping import Mappings
from recorder.sharing import Sharing

SHARED, READ = 1, 1


class _Sink:
    def add_file(self, entry: object) -> None: ...

    def add_blob(self, digest: str, chunks: object) -> None: ...


class Bench(NamedTuple):
    page: GlobalPage
    sharing: Sharing
    mappings: Mappings
    fd: int

    def told(self) -> list[abi.KnownFlag]:
        """The flags of what is told of the file."""
        inode = os.fstat(self.fd).st_ino
        known = self.page._files
        return [
            abi.KnownFlag(known.files[at].flags) for at in range(known.count) if known.files[at].ino == inode
        ]

    def asks(self, flags: int) -> Message:
        message = Message(abi.Msg.MAP_FILE, b=4096, c=0, d=READ | flags << 32)
        return self.mappings.answer(message, self.fd)[0]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A file that counts as the system's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("recorder.files._SYSTEM", (f"{tmp_path}/",))
    path = tmp_path / "modules.cache"
    path.write_bytes(bytes(8192))
    path.chmod(0o644)
    fd = os.open(path, os.O_RDONLY)
    page = GlobalPage()
    sharing = Sharing(page.withdraw)
    core = Core(cast(Any, None), 1000, abi.FD_IMAGE, False, False)
    mappings = Mappings(FileTable(cast(Any, _Sink()), owner=os.getuid()), core, page, sharing)
    yield Bench(page, sharing, mappings, fd)
    page.close()
    os.close(fd)


def _domain(number: int, pid: int) -> Domain:
    domain = Domain(number, cast(Any, None), cast(Any, object()), -1)
    domain.processes.add(Process(cast(Any, None), domain, pid, pid))
    return domain


def test_private_and_shared_mappings_are_told_apart(bench: Bench) -> None:
    """GIVEN a system file WHEN one process has mapped it each way THEN the others know both answers."""
    private = bench.asks(MAP_PRIVATE)
    assert bench.told() == [abi.KnownFlag(0)]
    shared = bench.asks(SHARED)
    assert bench.told() == [abi.KnownFlag(0), abi.KnownFlag.CODE | abi.KnownFlag.SHARED]
    assert private.a != shared.a


def test_who_writes_a_file_joins_who_has_mapped_it_without_asking(bench: Bench) -> None:
    """GIVEN a process that has mapped a system file shared, unasked WHEN another asks to write it THEN it is
    asked to join the first, whom /proc shows; and from then on nobody goes unasked."""
    bench.asks(SHARED)
    code = (
        f"import mmap, sys; m = mmap.mmap({bench.fd}, 4096, mmap.MAP_SHARED, mmap.PROT_READ); "
        "print(flush=True); sys.stdin.read()"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", code],
        pass_fds=[bench.fd], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        domains = {1: _domain(1, reader.pid), 2: _domain(2, os.getpid()), 3: _domain(3, os.getpid())}
        (writer,) = domains[2].processes
        question = Message(abi.Msg.SHARE, a=abi.Share.FILE, c=1)
        decision = bench.sharing.asked(writer, question, (bench.fd,), domains)
        reader.communicate(b"")
    assert decision.join is domains[1]
    assert bench.told() == []
    bench.asks(SHARED)
    assert bench.told() == []


def test_a_file_that_nobody_has_mapped_is_written_alone(bench: Bench) -> None:
    bench.asks(SHARED)
    domains = {1: _domain(1, os.getppid()), 2: _domain(2, os.getpid())}
    (writer,) = domains[2].processes
    decision = bench.sharing.asked(
        writer, Message(abi.Msg.SHARE, a=abi.Share.FILE, c=1), (bench.fd,), domains
    )
    assert decision.join is None and decision.late is None


def test_files_of_the_programs_own_leave_room_for_the_systems(bench: Bench) -> None:
    status = os.fstat(bench.fd)
    for number in range(abi.FILES_MAX):
        bench.page.remember(status, number, abi.KnownFlag.OWN, ())
    assert bench.page._files.count == abi.FILES_MAX // 2
    bench.page.remember(status, 1, abi.KnownFlag.CODE, [1, 2])
    assert bench.page._files.count == abi.FILES_MAX // 2 + 1


def test_the_page_holds_all_it_promises() -> None:
    """The last row and the last site lie in the page."""
    page = GlobalPage()
    status = os.stat("/")
    for number in range(abi.FILES_MAX + 1):
        page.remember(status, number, abi.KnownFlag.CODE, range(abi.FILE_SITES_MAX // abi.FILES_MAX))
    assert page._files.count == abi.FILES_MAX
    assert page._files.nsites == abi.FILE_SITES_MAX
    page.close()
