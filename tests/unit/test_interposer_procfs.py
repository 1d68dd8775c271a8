"""/proc as it is written, with names that try to confuse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from interposer import procfs
from interposer.kernel import has_user_dispatch, is_subreaper, set_subreaper, tgkill


def test_maps_lines_with_and_without_a_path() -> None:
    text = (
        "7f0000000000-7f0000001000 r-xp 00002000 fe:1a 1234                       /a b/c\\012d\n"
        "7f0000002000-7f0000003000 rw-s 00000000 00:01 99                         /memfd:x y (deleted)\n"
        "7f0000004000-7f0000005000 ---p 00000000 00:00 0 \n"
        "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]\n"
    )
    code, memfd, guard, stack = procfs.parse_maps(text)
    assert (code.start, code.end, code.offset) == (0x7F0000000000, 0x7F0000001000, 0x2000)
    assert (code.device, code.inode, code.path) == ((0xFE, 0x1A), 1234, "/a b/c\nd")
    assert code.executable
    assert not code.writable
    assert memfd.path == "/memfd:x y (deleted)"
    assert (guard.path, guard.is_file) == ("", False)
    assert stack.path == "[stack]"


def test_our_own_maps_hold_what_we_run() -> None:
    found = procfs.mappings(os.getpid())
    assert found == sorted(found)
    assert any(m.path == "[stack]" for m in found)
    assert any(m.executable and m.is_file for m in found)


def test_a_process_may_call_itself_anything(tmp_path: Path) -> None:
    name = tmp_path / "x) S 1 ("
    name.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(name), "1000"])
    try:
        while procfs.stat(process.pid).comm == Path(sys.executable).name[:15]:
            pass
        found = procfs.stat(process.pid)
        assert (found.comm, found.ppid) == ("x) S 1 (", os.getpid())
        assert procfs.link(process.pid, "cwd") == os.getcwd()
    finally:
        process.kill()
        process.wait()
    assert procfs.link(process.pid, "exe") == ""


def test_the_subreaper_flag_is_set_and_taken_back() -> None:
    before = is_subreaper()
    set_subreaper(not before)
    assert is_subreaper() is not before
    set_subreaper(before)
    assert is_subreaper() is before


def test_asking_for_user_dispatch_does_not_turn_it_on() -> None:
    answer = has_user_dispatch()
    assert has_user_dispatch() is answer


def test_a_signal_goes_to_a_thread_of_that_process_only() -> None:
    process = subprocess.Popen(["/bin/sleep", "1000"])
    assert not tgkill(os.getpid(), process.pid, 9)
    assert tgkill(process.pid, process.pid, 9)
    assert process.wait() == -9
    assert not tgkill(process.pid, process.pid, 9)
