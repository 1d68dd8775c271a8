"""Real recordings: stacks, registers and memory by replay, hangs, and recordings that do not begin."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from interfaces.errors import ExitStatus
from tests.conftest import RunTool
from tests.tui.conftest import indexed, interface, opened, press, settle, type_text
from tui.model.look import Looker, LookError, source_lines
from tui.model.query.language import parse
from tui.model.recording import Recording, RecordingError

pytestmark = pytest.mark.acceptance

PROGRAM = """\
import sys

def inner():
    return open("/etc/hostname").read()

def outer():
    return inner()

outer()
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of PROGRAM."""
    import os
    import subprocess

    folder = tmp_path_factory.mktemp("recorded")
    (folder / "program.py").write_text(PROGRAM)
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-m", "rr_py", "record", "-q", "-o", "t.bin", "--", sys.executable, "program.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=True,
        capture_output=True,
    )
    return folder / "t.bin"


def opening(path: Path) -> int:
    """The row of the program's own open."""
    model = indexed(path)
    view = model.view(parse('call == openat and path ~ "*hostname"'))
    model.fill(view)
    return view.row(0)


@interface
async def test_a_stack_is_shown_with_source(recorded: Path) -> None:
    """GIVEN a recording of a Python program WHEN s is pressed on its open THEN its functions are shown."""
    async with opened(recorded, size=(120, 60)) as (app, pilot):
        app.go(opening(recorded))
        await settle(pilot)
        await press(pilot, "s")
        text = app.detail.text()
        assert re.search(r"#\d+ inner \[python\]: .*program.py:4", text)
        assert re.search(r"#\d+ outer \[python\]: .*program.py:7", text)
        await press(pilot, "r")
        assert re.search(r"rip: 0x[0-9a-f]{16}  .*r-xp", app.detail.text())
        await press(pilot, "x")
        await type_text(pilot, "rsp")
        await press(pilot, "enter")
        assert "memory at 0x7" in app.detail.text()


def test_a_replay_goes_forward_and_begins_anew(recorded: Path) -> None:
    """GIVEN a looker WHEN asked about events in any order THEN each answer is of its event."""
    looker = Looker(recorded)
    row = opening(recorded)
    domain, event = indexed(recorded).index.place(row)
    try:
        first = looker.look(domain, event, "registers")
        later = looker.look(domain, event + 3, "registers")
        again = looker.look(domain, event, "registers")
        assert [node.value for node in again.children] == [node.value for node in first.children]
        assert later.children != first.children
        assert looker.look(domain, event, "threads").value == "1"
        with pytest.raises(LookError):
            looker.look(domain, event, "nonsense")
        with pytest.raises(LookError):
            looker.look(domain, event, "0x10")
    finally:
        looker.close()


def test_source_is_shown_around_a_line(tmp_path: Path) -> None:
    """GIVEN a source file WHEN a line is asked for THEN its neighbours are shown, it is marked."""
    path = tmp_path / "a.c"
    path.write_text("one\ntwo\n\tthree\nfour\n")
    assert source_lines(str(path), 3) == [
        "      1 one", "      2 two", ">     3         three", "      4 four",
    ]  # fmt: skip
    assert source_lines(str(tmp_path / "none.c"), 3) == []


def test_a_recording_that_does_not_begin_says_why(tmp_path: Path) -> None:
    """GIVEN a program that is not there WHEN recorded beside the interface THEN the reason is told."""
    recording = Recording([], ["/nonexistent/program"], tmp_path / "t.bin")
    try:
        with pytest.raises(RecordingError) as caught:
            recording.wait_for_trace()
    finally:
        recording.close()
    assert caught.value.status == ExitStatus.NOT_FOUND
    assert "/nonexistent/program" in caught.value.message


def test_two_recordings_of_one_program_agree(recorded: Path, tool: RunTool, tmp_path: Path) -> None:
    """GIVEN two recordings of the same program WHEN compared THEN the calls that it makes itself agree."""
    program = recorded.parent / "program.py"
    tool("record", "-q", "-o", "again.bin", "--", sys.executable, program, cwd=recorded.parent)
    result = tool("diff", recorded, recorded.parent / "again.bin")
    assert result.returncode in (0, 1)
    assert "/etc/hostname" not in result.stdout
