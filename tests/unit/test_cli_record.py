"""record and replay as a user types them: statuses, signals, names of traces, options."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracefile import TraceReader

ROOT = Path(__file__).resolve().parents[2]
Tool = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 124", 124),
        ("kill -TERM $$", -signal.SIGTERM),
        ("kill -SEGV $$", -signal.SIGSEGV),
        ("kill -KILL $$", -signal.SIGKILL),
        ("sh -c 'kill -ABRT $$'; exit $?", 128 + signal.SIGABRT),
    ],
)
def test_the_tool_ends_as_the_program_does(tool: Tool, script: str, status: int) -> None:
    recorded = tool("record", "-q", "sh", "-c", f"echo out; echo err >&2; {script}")
    assert recorded.returncode == status
    replayed = tool("replay")
    assert replayed.returncode == status
    assert (replayed.stdout, replayed.stderr) == (recorded.stdout, recorded.stderr)
    assert replayed.stdout == "out\n"


def test_after_recording_one_line_names_the_trace_and_the_next_command(tool: Tool, tmp_path: Path) -> None:
    done = tool("record", "sh", "-c", "true; /bin/true; exit 3")
    assert done.stdout == ""
    line = re.fullmatch(
        r"rr-py: recorded 2 processes, (\d[\d ]*) events to trace\.bin \((\S+ kB)\); "
        r"replay with: rr-py replay trace\.bin\n",
        done.stderr,
    )
    assert line is not None, done.stderr
    with TraceReader.open(tmp_path / "trace.bin") as reader:
        assert reader.total_events == int(line[1].replace(" ", ""))
    again = tool("replay", "trace.bin")
    assert again.returncode == 3


def test_traces_get_names_of_their_own_and_only_the_owner_may_read_them(tool: Tool, tmp_path: Path) -> None:
    for _ in range(3):
        assert tool("record", "true").returncode == 0
    assert sorted(path.name for path in tmp_path.glob("*.bin")) == ["trace-2.bin", "trace-3.bin", "trace.bin"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.glob("*.bin"))


def test_a_named_trace_is_never_overwritten(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    for words in (["-o", "mine"], ["-o", "mine", "--repeat-until-fail"]):
        done = tool("record", *words, "sh", "-c", "echo ran >> ran; exit 1")
        assert done.returncode == 125
        assert done.stderr.startswith("rr-py: mine: ")
        assert "-o FILE" in done.stderr
    assert (tmp_path / "mine").read_text() == "precious"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_the_programs_options_are_passed_through(tool: Tool, dashes: list[str]) -> None:
    done = tool("record", "-q", *dashes, "printf", "%s\n", "-q", "--help", "--checksum", "-o", "--", "x")
    assert done.stdout == "-q\n--help\n--checksum\n-o\n--\nx\n"
    assert tool("replay").stdout == done.stdout


def test_environment_and_folder(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    done = tool(
        "record",
        "-q",
        "--env",
        "NEW=1=2",
        "--env",
        "OLD=",
        "--cwd",
        "sub",
        "sh",
        "-c",
        'echo "$NEW|$OLD|$(pwd)"',
        env={"OLD": "set"},
    )
    assert done.stdout == f"1=2||{tmp_path / 'sub'}\n"
    assert (tmp_path / "trace.bin").exists()
    (tmp_path / "sub").rmdir()
    assert tool("replay").stdout == done.stdout


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("no-such-program", 127, "not found"),
        ("./missing", 127, "missing"),
        ("/etc/passwd", 126, "not executable"),
        ("/etc", 126, "/etc"),
    ],
)
def test_a_program_that_cannot_be_run(
    tool: Tool, tmp_path: Path, command: str, status: int, message: str
) -> None:
    done = tool("record", command)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stderr.startswith("rr-py: ")
    assert len(done.stderr.splitlines()) == 2
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.bin"))


def test_a_folder_that_cannot_be_written(tool: Tool, tmp_path: Path) -> None:
    done = tool("record", "-o", "/proc/trace.bin", "true")
    assert done.returncode == 125
    assert done.stderr.startswith("rr-py: /proc/trace.bin: ")
    done = tool("record", "-o", "missing/trace.bin", "--repeat-until-fail", "true")
    assert done.returncode == 125
    assert done.stderr.startswith("rr-py: missing/trace.bin: ")


def test_replay_can_be_silent(tool: Tool) -> None:
    tool("record", "-q", "sh", "-c", "echo hello; exit 4")
    done = tool("replay", "--no-output")
    assert (done.returncode, done.stdout, done.stderr) == (4, "", "")


def test_one_process_of_the_tree_can_be_replayed(tool: Tool, tmp_path: Path) -> None:
    tool("record", "-q", "sh", "-c", "echo parent; sh -c 'echo child; exit 5'; exit 6")
    with TraceReader.open(tmp_path / "trace.bin") as reader:
        child = next(info.pid for info in reader.domains.values() if info.argv[-1].startswith("echo child"))
    done = tool("replay", "-p", child)
    assert (done.returncode, done.stdout) == (5, "child\n")
    done = tool("replay", "-p", 1)
    assert done.returncode == 125
    assert "no process 1" in done.stderr


def test_a_file_that_is_no_trace(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no trace at all\n" * 100)
    for verb in ("replay", "dump", "info", "ps", "pack"):
        done = tool(verb, "text")
        assert done.returncode == 125
        assert done.stderr.startswith("rr-py: text: ")
        assert "Traceback" not in done.stderr


def test_recording_is_repeated_until_the_program_fails(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "count").write_text("")
    done = tool(
        "record",
        "--repeat-until-fail=9",
        "-o",
        "failure.bin",
        "sh",
        "-c",
        "echo run >> count; echo $(wc -l < count); test $(wc -l < count) -lt 3",
    )
    assert done.returncode == 1
    assert done.stdout == "1\n2\n3\n"
    assert done.stderr.startswith("rr-py: run 3 of at most 9 failed\nrr-py: recorded ")
    assert sorted(os.listdir(tmp_path)) == ["count", "failure.bin"]
    replayed = tool("replay", "failure.bin")
    assert (replayed.returncode, replayed.stdout) == (1, "3\n")


def test_a_program_that_never_fails(tool: Tool, tmp_path: Path) -> None:
    done = tool("record", "--repeat-until-fail=2", "true")
    assert done.returncode == 0
    assert done.stderr.startswith("rr-py: true did not fail in 2 runs\n")
    assert os.listdir(tmp_path) == []


def test_dump_of_a_real_recording(tool: Tool) -> None:
    tool("record", "-q", "cat", "/etc/passwd", "/no/such/file")
    lines = tool("dump", "--call", "openat", "--path", "/no/such/file").stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(
        'openat(AT_FDCWD, "/no/such/file", O_RDONLY) = -1 ENOENT (No such file or directory)'
    )


def test_two_recordings_of_the_same_have_the_same_deterministic_dump(tool: Tool) -> None:
    for name in ("a", "b"):
        tool("record", "-q", "-o", name, "sh", "-c", "cat /etc/passwd | wc -l; exit 3")
    first, second = (
        tool("dump", "--deterministic", "--path", "/etc/passwd", name).stdout for name in ("a", "b")
    )
    assert first == second
    assert first.count("\n") >= 1


def test_the_bundled_example(tmp_path: Path) -> None:
    """The README's first command, after the installation."""

    example = tmp_path / "race"
    shutil.copytree(ROOT / "examples" / "race", example, ignore=shutil.ignore_patterns("build"))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["make", "-s", "demo", f"RR_PY={sys.executable} -m rr_py"],
        cwd=example,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    replays = done.stdout.splitlines()
    assert len(replays) == 3
    assert len(set(replays)) == 1
    assert replays[0].startswith("OVERDRAWN: -")
    assert (example / "build" / "recorded.txt").read_text().splitlines()[-1] == replays[0]


def test_interfaces_are_passed_on_to_the_recording_that_is_watched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """GIVEN --tui with --interface WHEN recorded THEN the recording beside the screen gets both."""
    import tui.live
    from rr_py.commands.tui import record_and_browse

    seen: list[object] = []

    def watch(options: list[str], command: list[str], trace: Path | None) -> int:
        seen.extend([options, command, trace])
        return 0

    monkeypatch.setattr(tui.live, "record_and_watch", watch)
    trace = str(tmp_path / "t.bin")
    assert record_and_browse({"cwd": "/tmp"}, {}, ["zlib", "./my.toml"], ["app", "-x"], trace) == 0
    assert seen == [
        ["--cwd=/tmp", "--interface=zlib", "--interface=./my.toml"], ["app", "-x"], tmp_path / "t.bin",
    ]  # fmt: skip


def test_library_recordings_are_repeated_too(tool: Tool, tmp_path: Path) -> None:
    """GIVEN --interface with --repeat-until-fail WHEN the program fails THEN its library trace is kept;
    options about memory and schedules are refused."""
    done = tool("record", "--interface", "zlib", "--repeat-until-fail=3", "-o", "t.bin", "sh", "-c", "exit 4")
    assert done.returncode == 4
    assert "run 1 of at most 3 failed" in done.stderr
    assert (tmp_path / "t.bin").exists()
    done = tool("record", "--interface", "zlib", "--chaos", "true")
    assert done.returncode == 125
    assert "--chaos is for recording system calls" in done.stderr
