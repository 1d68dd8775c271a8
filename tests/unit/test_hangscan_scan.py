"""`rr-py scan` on real recordings: what it finds, how it ends, and what it says of those it cannot use."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hangscan import Options, scan
from tracefile import TraceReader

Run = subprocess.CompletedProcess[str]
RunTool = Callable[..., Run]
CompileC = Callable[..., Path]
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

LOOP = r"""
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void handler(void);
__attribute__((noinline)) static void loop(int rounds) {
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct itimerspec every = {{0, 5000000}, {0, 5000000}};
  timerfd_settime(timer, 0, &every, 0);
  for (int i = 0; i < rounds; i++) {
    struct pollfd watched = {timer, POLLIN, 0};
    poll(&watched, 1, -1);
    unsigned long expired;
    if (read(timer, &expired, sizeof expired) > 0) handler();
  }
}
"""
SLEEPS = LOOP + "static void handler(void) { usleep(120000); }\nint main(void) { loop(3); sleep(0); }\n"
SAVES = LOOP + (
    'static int file;\nstatic void handler(void) { if (write(file, "x", 1)) fsync(file); }\n'
    'int main(void) { file = open("doc", O_CREAT | O_WRONLY, 0600); loop(4); }\n'
)
AFTERWARDS = LOOP + (
    "static void handler(void) {}\nstatic void *other(void *x) { usleep(300000); return x; }\n"
    "__attribute__((noinline)) static void finish(pthread_t t) { pthread_join(t, 0); }\n"
    "int main(void) { pthread_t t; pthread_create(&t, 0, other, 0); loop(3); finish(t); }\n"
)
JOINS = LOOP + (
    'static int file;\nstatic void *other(void *x) { if (write(file, "x", 1)) fsync(file);\n'
    "  usleep(30000); return x; }\n"
    "static void handler(void) { pthread_t t; pthread_create(&t, 0, other, 0); pthread_join(t, 0); }\n"
    'int main(void) { file = open("doc", O_CREAT | O_WRONLY, 0600); loop(3); }\n'
)
READS = LOOP + (
    "static char block[1 << 20];\nstatic void handler(void) {\n"
    '  int file = open("big", O_RDONLY); while (read(file, block, sizeof block) > 0) {} close(file); }\n'
    'int main(void) { int file = open("big", O_CREAT | O_WRONLY, 0600);\n'
    "  for (int i = 0; i < 4; i++) if (write(file, block, sizeof block) < 0) return 1;\n"
    "  close(file); loop(4); }\n"
)
NO_LOOP = "#include <unistd.h>\nint main(void) { usleep(1000); return 0; }\n"


@pytest.fixture
def recorded(tool: RunTool, compile_c: CompileC, tmp_path: Path) -> Callable[..., Path]:
    """Compile and record a program; the trace."""

    def record(source: str, *flags: str, words: tuple[str, ...] = ()) -> Path:
        trace = tmp_path / "trace.bin"
        done = tool("record", "-q", *words, "-o", trace, "--", compile_c(source, *flags))
        assert done.returncode == 0, done.stderr
        return trace

    return record


def candidates(tool: RunTool, trace: Path, *words: str) -> list[dict[str, Any]]:
    done = tool("scan", "--format", "json", *words, trace)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["candidates"]
    return found


def test_a_handler_that_sleeps_is_blamed_with_its_line(recorded: Callable[..., Path], tool: RunTool) -> None:
    # GIVEN a loop whose handler sleeps three times
    trace = recorded(SLEEPS)
    # WHEN it is scanned
    (one,) = candidates(tool, trace)
    # THEN the handler is blamed, once, with its calls counted
    assert one["resource"]["kind"] == "sleep"
    assert one["blamed"]["function"] == "handler"
    assert one["blamed"]["line"] > 0
    assert one["count"] == 3
    assert one["observed_ms"] >= 120
    assert "timer" in one["fix"]


def test_status_for_ci(recorded: Callable[..., Path], tool: RunTool) -> None:
    trace = recorded(SLEEPS)
    assert tool("scan", "--fail-above", "100ms", trace).returncode == 1
    assert tool("scan", "--fail-above", "5s", trace).returncode == 0


def test_only_a_projection_makes_it_a_hang(recorded: Callable[..., Path], tool: RunTool) -> None:
    # GIVEN a handler that syncs a file, recorded on a quick disk
    trace = recorded(SAVES)
    # WHEN it is scanned as recorded, on a spinning disk, and with the finding suppressed
    here = candidates(tool, trace, "--environment", "none", "--threshold", "900ms")
    there = candidates(tool, trace, "--environment", "hdd", "--threshold", "900ms")
    known = trace.parent / "known.toml"
    known.write_text('[[suppress]]\nfunction = "handler"\nkind = "file"\n')
    done = tool("scan", "--environment", "hdd", "--suppress", known, "--format", "json", trace)
    # THEN it is a hang on the spinning disk alone, and suppressed where asked
    assert here == []
    assert [one["blamed"]["function"] for one in there] == ["handler"]
    value = json.loads(done.stdout)
    assert (value["candidates"], value["suppressed"]) == ([], 1)


def test_waiting_after_the_loop_is_not_its_business(recorded: Callable[..., Path], tool: RunTool) -> None:
    assert candidates(tool, recorded(AFTERWARDS)) == []


def test_a_wait_for_a_thread_is_projected_by_what_the_thread_did(
    recorded: Callable[..., Path], tool: RunTool
) -> None:
    # GIVEN a handler that joins a thread, which syncs a file and sleeps
    trace = recorded(JOINS)
    # WHEN the disk is a slow one
    (one,) = candidates(tool, trace, "--environment", "hdd", "--threshold", "500ms")
    # THEN the wait grows by the thread's sync, and the report says whom it waited for
    assert one["resource"]["kind"] == "thread"
    assert one["observed_ms"] < 500 < one["projected_ms"]["hdd"]
    assert "sleep" in one["resource"]["which_was_doing"]


def test_what_is_read_twice_is_read_from_the_disk_once(recorded: Callable[..., Path], tool: RunTool) -> None:
    # GIVEN a handler that reads a file of 4 MB, four times
    trace = recorded(READS)
    # WHEN the disk is a spinning one
    (one,) = candidates(tool, trace, "--environment", "hdd", "--threshold", "50ms")
    # THEN one occurrence costs the transfer, and the median of them nothing
    assert (one["resource"]["kind"], one["blamed"]["function"]) == ("file", "handler")
    assert 80 < one["projected_ms"]["hdd"] < 400
    assert one["observed_ms"] < 50


def test_a_function_or_a_thread_may_be_critical(recorded: Callable[..., Path], tool: RunTool) -> None:
    trace = recorded(AFTERWARDS)
    by_function = candidates(tool, trace, "--critical", "other")
    assert [(one["resource"]["kind"], one["blamed"]["function"]) for one in by_function] == [
        ("sleep", "other")
    ]
    with TraceReader.open(trace) as reader:
        pid = reader.domains[1].pid
    by_thread = candidates(tool, trace, "--thread", str(pid))
    assert any(one["blamed"]["function"] == "finish" for one in by_thread)


def test_a_trace_without_a_loop_says_so(recorded: Callable[..., Path], tool: RunTool) -> None:
    done = tool("scan", recorded(NO_LOOP))
    assert done.returncode == 0
    assert "no event loop was found" in done.stdout


def test_a_stripped_program_is_still_told_apart(recorded: Callable[..., Path], tool: RunTool) -> None:
    (one,) = candidates(tool, recorded(SLEEPS, "-s"))
    assert one["resource"]["kind"] == "sleep"
    assert "+0x" in one["blamed"]["function"]


def test_a_replay_that_fails_leaves_what_can_be_said(
    recorded: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a trace whose replay is refused
    from replayer.errors import NothingToReplayError
    from replayer.session import Session

    def refuse(*_arguments: object, **_more: object) -> None:
        raise NothingToReplayError("it cannot be", "Do something.")

    trace = recorded(SLEEPS)
    monkeypatch.setattr(Session, "open", refuse)
    # WHEN it is scanned
    report = scan(trace, Options())
    # THEN the sleeps are there without stacks, and the report says why
    assert [one.resource.kind for one in report.candidates] == ["sleep"]
    assert report.candidates[0].stack == ()
    assert any("it cannot be" in note for note in report.notes)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--environment", "floppy"), "there is no environment 'floppy'"),
        (("--thread", "nobody"), "the trace has no thread nobody"),
        (("--threshold", "soon"), "is no time"),
        (("--suppress", "missing.toml"), "missing.toml"),
    ],
)
def test_wrong_options_are_told(
    recorded: Callable[..., Path], tool: RunTool, words: tuple[str, ...], message: str
) -> None:
    done = tool("scan", *words, recorded(NO_LOOP))
    assert done.returncode == 125
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_is_recorded_first(tool: RunTool, compile_c: CompileC, tmp_path: Path) -> None:
    done = tool("scan", "--", compile_c(SLEEPS))
    assert "1 hang of 100 ms or more" in done.stdout
    assert (tmp_path / "trace.bin").exists()


def test_patterns_are_learnt_listed_and_merged(
    recorded: Callable[..., Path], tool: RunTool, tmp_path: Path
) -> None:
    store = tmp_path / "store.sqlite"
    done = tool("scan", "--learn", "--store", store, recorded(SLEEPS))
    assert "learnt 1 new pattern" in done.stderr
    assert "clock_nanosleep" in tool("patterns", "--store", store, "list").stdout
    export = tmp_path / "export.json"
    export.write_text(tool("patterns", "--store", store, "export").stdout)
    merged = tool("patterns", "--store", tmp_path / "other.sqlite", "merge", export)
    assert "1 new pattern" in merged.stderr
    assert "timer" in tool("patterns", "show", "usleep").stdout
    missing = tool("patterns", "--store", tmp_path / "none.sqlite", "list")
    assert missing.returncode == 125
    assert "no pattern store" in missing.stderr
