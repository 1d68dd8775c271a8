"""`rr-py stack` and `rr-py core` on real recordings; what gdb and pystack make of the core files."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import RunTool, systems_gdb
from tests.debug.conftest import Record, need

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
GETDENTS64 = 217


def gdb(*commands: str, files: tuple[Path, ...]) -> str:
    """What gdb prints for some commands."""
    need(systems_gdb(), "gdb")
    words = [str(systems_gdb()), "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off"]
    for command in commands:
        words += ["-ex", command]
    done = subprocess.run([*words, *map(str, files)], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_stacks_of_all_threads(recorded: Record, tool: RunTool) -> None:
    """GIVEN a crash while three threads wait WHEN stacks are asked for THEN all are there, with lines."""
    crash = recorded("crash.c")
    facts = json.loads(tool("stack", crash.trace, "--json").stdout)
    threads = facts["threads"]
    assert [thread["current"] for thread in threads] == [True, False, False, False]
    top = threads[0]["frames"][0]
    assert (top["function"], top["line"]) == ("crash", crash.line("crashes"))
    assert facts["call"] == "+++ killed by SIGSEGV +++"
    for thread in threads[1:]:
        frame = next(frame for frame in thread["frames"] if frame["function"] == "waits_here")
        assert frame["line"] == crash.line("waits")
        assert frame["file"] == str(crash.source)


def test_stack_as_text_names_the_thread_and_the_line(recorded: Record, tool: RunTool) -> None:
    """GIVEN the same WHEN printed for one thread THEN it is that thread's, in lines of text."""
    crash = recorded("crash.c")
    facts = json.loads(tool("stack", crash.trace, "--json").stdout)
    tid = facts["threads"][1]["tid"]
    text = tool("stack", crash.trace, "-t", tid).stdout
    assert f"thread {tid}:" in text
    assert f"waits_here at {crash.source}:{crash.line('waits')}" in text
    assert "crash at" not in text


def test_python_frames_replace_the_interpreters(recorded: Record, tool: RunTool) -> None:
    """GIVEN a Python program in os.listdir WHEN its stack is read THEN its functions and lines show."""
    listing = recorded("listing.py")
    last = listing.last_event(GETDENTS64)
    facts = json.loads(tool("stack", f"{listing.trace}:{last}", "--json").stdout)
    python = [frame for frame in facts["threads"][0]["frames"] if frame["kind"] == "python"]
    assert [(frame["function"], frame["line"]) for frame in python[:2]] == [
        ("inner", listing.line("lists")),
        ("outer", listing.line("calls")),
    ]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (":999999", "there is no event 999999"),
        ("@1", "has no process 1"),
        ("@1:5", "has no process 1"),
    ],
)
def test_places_that_are_not_there(recorded: Record, tool: RunTool, place: str, words: str) -> None:
    """GIVEN a place the recording does not have WHEN asked for THEN the answer says which and what to do."""
    done = tool("stack", f"{recorded('crash.c').trace}{place}")
    assert done.returncode == 125
    assert words in done.stderr
    assert "rr-py" in done.stderr.splitlines()[-1]


def test_gdb_reads_a_core(recorded: Record, tool: RunTool, tmp_path: Path) -> None:
    """GIVEN a core of the crash WHEN gdb opens it THEN threads, lines, thread-local and vector values are
    right."""
    crash = recorded("crash.c")
    core = tmp_path / "core"
    assert tool("core", crash.trace, "-o", core).returncode == 0
    said = gdb(
        "bt", "p number", "info auxv", "p $xmm0", "thread 3", "frame function waits_here", "p mine",
        "info proc mappings", files=(crash.program, core),
    )  # fmt: skip
    assert "Program terminated with signal SIGSEGV" in said
    assert f"crash.c:{crash.line('crashes')}" in said
    assert f"crash.c:{crash.line('waits')}" in said
    assert "= 1.5" in said
    assert any(f"= {n}\n" in said for n in (1, 2, 3))
    assert "AT_ENTRY" in said
    assert "warning: Section" not in said
    assert "7ea0" not in said.split("AT_NULL")[-1]


def test_a_core_is_not_overwritten(recorded: Record, tool: RunTool, tmp_path: Path) -> None:
    """GIVEN a file of that name WHEN a core is written THEN the file stays and the message says so."""
    core = tmp_path / "core"
    core.write_text("mine")
    done = tool("core", recorded("crash.c").trace, "-o", core)
    assert done.returncode == 125 and "exists" in done.stderr
    assert core.read_text() == "mine"


def test_pystack_reads_a_core(recorded: Record, tool: RunTool, tmp_path: Path) -> None:
    """GIVEN a core of a Python program WHEN pystack opens it THEN it finds frames and locals."""
    pystack = Path(sys.executable).with_name("pystack")
    need(pystack.exists(), "pystack")
    listing = recorded("listing.py")
    last = listing.last_event(GETDENTS64)
    core = tmp_path / "core"
    assert tool("core", f"{listing.trace}:{last}", "-o", core).returncode == 0
    done = subprocess.run(
        [pystack, "core", core, listing.program, "--locals"], capture_output=True, text=True, timeout=60
    )
    assert 'secret: "abcabcabc"' in done.stdout, done.stderr
    assert f"line {listing.line('lists')}, in inner" in done.stdout


def test_lldb_reads_a_core(recorded: Record, tool: RunTool, tmp_path: Path) -> None:
    """GIVEN a core of the crash WHEN lldb opens it THEN it shows the guilty line and four threads."""
    need(shutil.which("lldb"), "lldb")
    crash = recorded("crash.c")
    core = tmp_path / "core"
    assert tool("core", crash.trace, "-o", core).returncode == 0
    words = ["lldb", "--no-lldbinit", "--batch", "-o", "bt", "-o", "thread list", "-c"]
    words += [str(core), str(crash.program)]
    said = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    assert f"crash.c:{crash.line('crashes')}" in said
    assert said.count("tid = ") == 4


READ_BY_DRGN = """
import sys
import drgn
program = drgn.Program()
program.set_core_dump(sys.argv[1])
program.load_default_debug_info()
print("number", program["number"].value_())
print("crashed", program.crashed_thread().tid)
for thread in program.threads():
    for frame in thread.stack_trace():
        try:
            where = frame.source()
        except LookupError:
            continue
        print(thread.tid, frame.name, where[0], where[1])
"""


def test_drgn_reads_a_core(recorded: Record, tool: RunTool, tmp_path: Path) -> None:
    """GIVEN a core of the crash WHEN drgn opens it THEN it finds that thread, all stacks, a variable."""
    need(importlib.util.find_spec("drgn"), "drgn")
    crash = recorded("crash.c")
    core = tmp_path / "core"
    assert tool("core", crash.trace, "-o", core).returncode == 0
    words = [sys.executable, "-c", READ_BY_DRGN, str(core)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[:1] == ["number 1.5"], done.stderr
    crashed = lines[1].split()[1]
    assert f"{crashed} crash {crash.source} {crash.line('crashes')}" in lines
    waiting = [line for line in lines if line.endswith(f"waits_here {crash.source} {crash.line('waits')}")]
    assert len({line.split()[0] for line in waiting} - {crashed}) == 3
