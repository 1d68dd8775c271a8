"""The supervisor with cores that do not work: every way of failing ends, says why, and leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interposer.channel import Channel, Message
from recorder import RecordOptions, record
from replayer import scope
from replayer.domain import LiveDomain
from replayer.errors import CoreError
from replayer.launch import Group, fd_base
from replayer.supervisor import Supervisor
from tracefile import DomainStart, TraceReader, TraceWriter


def trace_of_one(path: Path) -> Path:
    with TraceWriter.create(path, {}) as writer:
        writer.add_domain(DomainStart(domain=1, kind="exec", pid=10, comm="app"))
        writer.close({})
    return path


def fake_core(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def no_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def test_core_that_gives_up_is_an_error_with_its_words(tmp_path: Path) -> None:
    """GIVEN a core that complains and exits WHEN run THEN CoreError quotes it."""
    core = fake_core(tmp_path / "core", "echo 'rr-py core: no such luck' >&2; exit 125")
    with TraceReader.open(trace_of_one(tmp_path / "t.bin")) as reader:
        supervisor = Supervisor(reader, scope.whole(reader), echo=None, verify=False, timeout=30, core=core)
        supervisor.start()
        with pytest.raises(CoreError, match="before it began, with status 125: no such luck"):
            supervisor.run()
        supervisor.close()
    assert no_children()


def test_silent_core_is_stuck_and_killed(tmp_path: Path) -> None:
    """GIVEN a core that never speaks WHEN the limit has passed THEN stuck, and all its processes are gone."""
    core = fake_core(tmp_path / "core", "sleep 1000 & sleep 1000")
    with TraceReader.open(trace_of_one(tmp_path / "t.bin")) as reader:
        supervisor = Supervisor(reader, scope.whole(reader), echo=None, verify=False, timeout=0.3, core=core)
        supervisor.start()
        supervisor.run()
        assert supervisor.stuck is not None
        supervisor.close()
        supervisor.close()
    assert no_children()


def test_core_that_cannot_be_executed(tmp_path: Path) -> None:
    """GIVEN a file that is no program WHEN started THEN CoreError names it, and closing is still fine."""
    core = tmp_path / "core"
    core.write_bytes(b"\x7fELF")
    core.chmod(0o755)
    with TraceReader.open(trace_of_one(tmp_path / "t.bin")) as reader:
        supervisor = Supervisor(reader, scope.whole(reader), echo=None, verify=False, timeout=30, core=core)
        with pytest.raises(CoreError, match=f"{core} cannot be started"):
            supervisor.start()
        supervisor.close()
    assert no_children()


def test_no_program_asks_for_the_files_it_begins_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a recording of ten programs that map the same files WHEN replayed THEN none asks for its own file
    and the linker's, and the rest is asked for by those that begin at the same time as the first."""
    path, asked = tmp_path / "t.bin", list[int]()
    command = ["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done"]
    record(RecordOptions(command=command, trace=path, version="test"))
    need_file = Supervisor._need_file

    def spy(self: Supervisor, domain: LiveDomain, channel: Channel, message: Message) -> None:
        asked.append(message.a)
        need_file(self, domain, channel, message)

    monkeypatch.setattr(Supervisor, "_need_file", spy)
    with TraceReader.open(path) as reader:
        supervisor = Supervisor(reader, scope.whole(reader), echo=None, verify=False, timeout=60)
        supervisor.start()
        supervisor.run()
        supervisor.close()
        assert len(supervisor.domains) == 10 and supervisor.diverged is None
        assert supervisor.over
        booted = {one.file for info in reader.domains.values() if info.boot for one in info.boot.mappings}
        assert asked and not booted & set(asked)


def test_hidden_descriptors_arrive_at_their_places(tmp_path: Path) -> None:
    """GIVEN descriptors that lie where others are to go WHEN started THEN each arrives at its own place."""
    base = fd_base()
    files = {}
    for place in (0, 1, 4):
        (tmp_path / f"file{place}").write_text(f"content {place}")
        files[place] = os.open(tmp_path / f"file{place}", os.O_RDONLY)
    swapped = os.dup2(files[0], base + 1, inheritable=False)
    out = tmp_path / "out"
    lines = [f"cat /proc/self/fd/{base + place} >> {out}; echo >> {out}" for place in (0, 1, 4)]
    core = fake_core(
        tmp_path / "core", f"echo $1 $2 >> {out}; ulimit -c >> {out}; " + "; ".join(lines) + "; exit 3"
    )
    try:
        group = Group(core, 17, {0: swapped, 1: files[1], 4: files[4]})
        try:
            _pid, status = os.waitpid(group.leader, 0)
        finally:
            group.kill()
    finally:
        for descriptor in (*files.values(), swapped):
            os.close(descriptor)
    assert os.waitstatus_to_exitcode(status) == 3
    words = out.read_text().splitlines()
    assert words[0] == f"{base} 17"
    assert words[1] in ("0", "1")
    assert words[2:] == ["content 0", "content 1", "content 4"]
    assert no_children()
