"""Recording and replaying where much is forbidden or missing: rights, calls, disk space, files."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracefile import TraceReader

from .conftest import ROOT, Recorder

Programs = Callable[[str], Path]
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="changes users and mounts")

SCRIPT = "echo $$; ls / | sort | head -3; f=$(mktemp); echo x > $f; rm $f; exit 7"
NUMBERS = {"personality": 135, "perf_event_open": 298, "prctl": 157, "ptrace": 101, "arch_prctl": 158}


def check(rr: Recorder, *command: str | Path, status: int | None = None, verify: bool = True) -> None:
    """Record and replay a command; both end alike and write alike, and rr-py has nothing to say."""
    recorded = rr.record(*command, options=["--checksum=100"] if verify else [])
    replayed = rr.replay("--verify") if verify else rr.replay()
    assert recorded.said == replayed.said == ()
    if status is not None:
        assert recorded.status == status
    assert (replayed.status, replayed.out, replayed.err) == (recorded.status, recorded.out, recorded.err)


@pytest.fixture
def refusing(programs: Programs, rr: Recorder) -> Callable[..., None]:
    """Run rr-py and its programs under a seccomp filter that refuses calls, given as NAME[:ARGUMENT]."""

    def refuse(*names: str, error: int = 1) -> None:
        words = []
        for name in names:
            call, colon, argument = name.partition(":")
            words.append(f"{NUMBERS[call]}{colon}{argument}={error}")
        rr.prefix = [str(programs("refuse")), *words, "--", *rr.prefix]

    return refuse


# ---- other users, other rights --------------------------------------------------------------------


def open_to_all(folder: Path) -> None:
    """Let an ordinary user work in a folder of the tests."""
    folder.chmod(0o777)
    for parent in folder.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/") and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)


@ROOT_ONLY
def test_as_an_ordinary_user_without_any_capability(rr: Recorder, programs: Programs) -> None:
    open_to_all(rr.top)
    for name in ("native", "recorded", "replayed"):
        rr.folder(name).chmod(0o777)
    rr.prefix = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]
    if not _can_import(rr):
        pytest.skip("an ordinary user cannot read the interpreter or the project here")
    check(rr, "sh", "-c", SCRIPT, status=7)
    rr.trace = rr.top / "second.bin"
    check(rr, programs("spawn"))


def _can_import(rr: Recorder) -> bool:
    return rr.run([*rr.tool, "--version"], "native").status == 0


@ROOT_ONLY
def test_with_proc_mounted_read_only(rr: Recorder, programs: Programs) -> None:
    rr.prefix = [
        "unshare",
        "-m",
        "sh",
        "-c",
        'mount -o remount,ro,bind /proc 2>/dev/null || mount -t proc -o ro proc /proc; exec "$@"',
        "-",
    ]
    assert rr.native("sh", "-c", "echo 0 > /proc/self/coredump_filter").status != 0
    check(rr, "sh", "-c", SCRIPT, status=7)
    rr.trace = rr.top / "second.bin"
    check(rr, programs("fork_wait"))


@ROOT_ONLY
def test_where_dev_and_proc_are_missing(rr: Recorder, programs: Programs) -> None:
    shutil.copy(programs("change_root"), rr.folder("recorded") / "program")
    check(rr, "sh", "-c", "chroot . ./program inside", status=5)


def test_with_personality_refused(rr: Recorder, refusing: Callable[..., None]) -> None:
    refusing("personality")
    show = ["sh", "-c", "grep -c . /proc/self/maps; grep stack /proc/self/maps"]
    assert rr.native(*show).out != rr.native(*show).out, "addresses are not randomised here: nothing is shown"
    check(rr, "sh", "-c", SCRIPT, status=7)
    rr.trace = rr.top / "second.bin"
    check(rr, "cat", "/proc/self/maps")


def test_a_program_that_prints_addresses_with_random_ones(
    rr: Recorder, refusing: Callable[..., None], programs: Programs
) -> None:
    """Addresses differ between recordings, not between replays, whatever the replaying process's own are."""
    refusing("personality")
    outputs = set()
    for number in range(3):
        rr.trace = rr.top / f"trace-{number}.bin"
        recorded = rr.record(programs("addresses"), options=["--checksum=10"])
        outputs.add(recorded.out)
        for filler in ("", "x" * 100_000):
            assert rr.replay("--verify", env={"FILLER": filler}).out == recorded.out
    assert len(outputs) == 3
    rr.prefix = []
    assert rr.replay("--verify").out == recorded.out


@pytest.mark.parametrize("calls", [["perf_event_open"], ["personality", "perf_event_open"]], ids=",".join)
def test_without_performance_counters(
    rr: Recorder, refusing: Callable[..., None], programs: Programs, calls: list[str]
) -> None:
    refusing(*calls)
    check(rr, programs("many_signals"), verify=False)


def test_a_trace_replays_under_another_environment(rr: Recorder, programs: Programs) -> None:
    recorded = rr.record("sh", "-c", "echo $MARK; env | grep -c MARK; exit 4", env={"MARK": "recorded"})
    for filler in (None, "", "y" * 60_000):
        replayed = rr.replay(env={"MARK": None, "FILLER": filler, "PATH": os.environ["PATH"]})
        assert (replayed.status, replayed.out) == (recorded.status, recorded.out) == (4, b"recorded\n1\n")


# ---- what cannot be recorded ------------------------------------------------------------------------


def one_message(outcome: object, *parts: str) -> None:
    """One message that holds all the parts, with a remedy, and no traceback."""
    said = outcome.said  # type: ignore[attr-defined]
    assert len([line for line in said if line.startswith("rr-py: ")]) == 1, said
    assert len(said) >= 2, f"no remedy: {said}"
    text = " ".join(said)
    assert "Traceback" not in text
    for part in parts:
        assert part in text


def test_a_program_that_is_not_there(rr: Recorder) -> None:
    outcome = rr.record("/no/such/program")
    assert outcome.status == 127
    one_message(outcome, "/no/such/program")
    assert not rr.trace.exists()


def test_a_program_that_is_not_executable(rr: Recorder) -> None:
    file = rr.folder("recorded") / "plain"
    file.write_text("#!/bin/sh\n")
    outcome = rr.record("./plain")
    assert outcome.status == 126
    one_message(outcome, "plain", "chmod")


def test_a_missing_interpreter(rr: Recorder) -> None:
    file = rr.folder("recorded") / "script"
    file.write_text("#!/no/such/interpreter\n")
    file.chmod(0o755)
    outcome = rr.record("./script")
    assert outcome.status in (126, 127)
    one_message(outcome, "/no/such/interpreter")


def _tiny_32_bit_program() -> bytes:
    """An ELF file for i386 whose only code ends it with status 3."""
    code = bytes.fromhex("b801000000bb03000000cd80")
    base, header = 0x8048000, 52 + 32
    elf = b"\x7fELF\x01\x01\x01" + bytes(9)
    elf += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + header, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    size = header + len(code)
    return elf + struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096) + code


def test_a_32_bit_program(rr: Recorder) -> None:
    file = rr.folder("recorded") / "program32"
    file.write_bytes(_tiny_32_bit_program())
    file.chmod(0o755)
    outcome = rr.record("./program32")
    assert outcome.status == 126
    one_message(outcome, "32-bit")


def _put_32_bit_program(rr: Recorder) -> None:
    file = rr.folder("recorded") / "program32"
    file.write_bytes(_tiny_32_bit_program())
    file.chmod(0o755)
    if subprocess.run([file]).returncode != 3:
        pytest.skip("this kernel runs no 32-bit programs")


def test_a_32_bit_program_started_by_a_recorded_one(rr: Recorder) -> None:
    _put_32_bit_program(rr)
    recorded = rr.record("sh", "-c", "./program32; echo it said $?")
    assert recorded.out == b"it said 3\n"
    assert any("32-bit" in line for line in recorded.said)
    replayed = rr.replay()
    assert (replayed.status, replayed.out) == (recorded.status, recorded.out)


def test_a_program_that_becomes_a_32_bit_one(rr: Recorder) -> None:
    """GIVEN a recorded program that becomes one that is not THEN replay says that it does not have the
    rest."""
    _put_32_bit_program(rr)
    recorded = rr.record("sh", "-c", "echo now; exec ./program32")
    assert (recorded.status, recorded.out) == (3, b"now\n")
    replayed = rr.replay()
    assert replayed.out == b"now\n"
    said = " ".join(replayed.said)
    assert "the recording stops here" in said and "became another program, which was not recorded" in said


def test_a_kernel_without_user_dispatch(rr: Recorder, refusing: Callable[..., None]) -> None:
    refusing("prctl:59", error=22)
    outcome = rr.record("true")
    assert outcome.status == 125
    one_message(outcome, "Syscall User Dispatch", "5.11")


def test_a_kernel_that_refuses_tracing(rr: Recorder, refusing: Callable[..., None]) -> None:
    refusing("ptrace")
    outcome = rr.record("true")
    assert outcome.status == 125
    one_message(outcome, "ptrace")


@ROOT_ONLY
def test_a_setuid_program_runs_without_its_rights_and_the_user_is_told(rr: Recorder) -> None:
    folder = rr.folder("recorded")
    open_to_all(rr.top)
    folder.chmod(0o777)
    rr.folder("native").chmod(0o777)
    rr.folder("replayed").chmod(0o777)
    program = folder / "setuid-id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", program)
    program.chmod(0o4755)
    rr.prefix = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]
    if not _can_import(rr):
        pytest.skip("an ordinary user cannot read the interpreter or the project here")
    if rr.run([*rr.prefix, program, "-u"], "native").out != b"0\n":
        pytest.skip("programs get no rights from files here")
    outcome = rr.record("./setuid-id", "-u")
    assert outcome.status == 0 and outcome.out == b"65534\n"
    assert any("setuid" in line or "privilege" in line for line in outcome.said)
    assert rr.replay().out == outcome.out


# ---- where the trace is written -------------------------------------------------------------------


def test_a_read_only_trace_folder(rr: Recorder) -> None:
    if os.geteuid() == 0:
        rr.trace = Path("/proc/trace.bin")
    else:
        folder = rr.folder("closed")
        folder.chmod(0o555)
        rr.trace = folder / "trace.bin"
    outcome = rr.record("true")
    assert outcome.status == 125
    one_message(outcome, str(rr.trace), "-o")


@ROOT_ONLY
def test_on_a_full_disk_the_program_runs_on_and_the_trace_replays_so_far(rr: Recorder) -> None:
    disk = rr.folder("disk")
    inner = (
        f'mount -t tmpfs -o size=1m none {disk} && "$@"; status=$?; '
        f"cp {disk}/trace.bin {rr.top}/kept.bin; exit $status"
    )
    rr.prefix = ["unshare", "-m", "sh", "-c", inner, "-"]
    rr.trace = disk / "trace.bin"
    script = "for i in $(seq 60); do head -c 300000 /dev/urandom | cksum; done; echo the end; exit 5"
    outcome = rr.record("sh", "-c", script)
    assert outcome.status == 5
    lines = outcome.out.splitlines()
    assert len(lines) == 61 and lines[-1] == b"the end"
    told = [line for line in outcome.said if line.startswith("rr-py: ")]
    assert len(told) == 1 and "unrecorded" in told[0], outcome.said
    rr.prefix, rr.trace = [], rr.top / "kept.bin"
    replayed = rr.replay()
    assert outcome.out.startswith(replayed.out)
    assert any("stops" in line for line in replayed.said)


WORKER = """
import os
n = 0
for i in range(3000):
    n += len(os.listdir("/"))
    if i % 10 == 0:
        os.write(1, b"%d\\n" % i)
    if i % 500 == 499:
        os.waitpid(os.spawnlp(os.P_NOWAIT, "true", "true"), 0)
    if i == 2500:
        open("go").close()
open("done", "w").write("finished")
"""
"""Prints 300 lines, executes other programs, waits for a FIFO near its end."""


RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
"""Another one for each run of the suite, and the same for all its workers."""


@pytest.mark.parametrize("lines", [0, 1, *sorted(random.Random(RUN).sample(range(2, 240), 8))])
def test_the_recorder_is_killed_at_a_random_moment(rr: Recorder, lines: int) -> None:
    """The program ends unharmed; what was flushed replays to where it stops, and the tool says so."""
    folder = rr.folder("recorded")
    os.mkfifo(folder / "go")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(rr.top / "state")}
    with subprocess.Popen(
        [*rr.tool, "record", "-q", "-o", rr.trace, "--", sys.executable, "-c", WORKER],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as recorder:
        assert recorder.stdout is not None
        output = b"".join(recorder.stdout.readline() for _ in range(max(lines, 1)))
        recorder.kill()
        recorder.wait()
        with (folder / "go").open("w"):
            pass
        output += recorder.stdout.read()
    assert output.splitlines() == [b"%d" % i for i in range(0, 3000, 10)]
    assert (folder / "done").read_text() == "finished"
    assert not TraceReader.open(rr.trace).complete
    replayed = rr.replay()
    assert output.startswith(replayed.out)
    assert any("stops here" in line for line in replayed.said), replayed.said


# ---- a trace elsewhere, or later ------------------------------------------------------------------


def test_all_inputs_are_gone_when_it_is_replayed(rr: Recorder, programs: Programs) -> None:
    folder = rr.folder("recorded")
    (folder / "input").write_text("line\n" * 1000)
    shutil.copy(programs("file_mapping"), folder / "program")
    recorded = rr.record("sh", "-c", "wc -l < input; ./program; rm -f file other; cat input | cksum")
    rr.forget_inputs()
    assert rr.replay().out == recorded.out


@ROOT_ONLY
def test_a_mapped_system_file_that_has_changed(rr: Recorder, programs: Programs) -> None:
    """A program below /opt is built anew: the replay names it and the way out; a packed trace replays."""
    place = Path("/opt") / f"rr-py-test-{os.getpid()}"
    place.mkdir()
    try:
        program = place / "program"
        shutil.copy(programs("break"), program)
        recorded = rr.record(program)
        packed = rr.top / "packed.bin"
        assert rr.run([*rr.tool, "pack", rr.trace, "-o", packed], "native").status == 0
        with program.open("ab") as file:
            file.write(b"more")
        outcome = rr.replay()
        assert outcome.status == 125
        one_message(outcome, str(program), "changed", "pack")
        rr.trace = packed
        assert rr.replay().out == recorded.out
    finally:
        shutil.rmtree(place)


@ROOT_ONLY
def test_a_trace_from_another_cpu_is_named(rr: Recorder) -> None:
    """Recorded on a CPU that names a feature this one lacks (its /proc/cpuinfo is covered by another)."""
    cpuinfo = rr.top / "cpuinfo"
    text = Path("/proc/cpuinfo").read_text()
    lacking = next(name for name in ("xop", "3dnow", "amx_fp16") if f" {name} " not in text)
    cpuinfo.write_text(re.sub(r"(flags\s*: .*)", rf"\1 {lacking}", text))
    rr.prefix = ["unshare", "-m", "sh", "-c", f'mount --bind {cpuinfo} /proc/cpuinfo && exec "$@"', "-"]
    recorded = rr.record("echo", "recorded elsewhere")
    rr.prefix = []
    outcome = rr.replay()
    assert outcome.status == 125
    one_message(outcome, lacking, "--ignore-cpu")
    assert rr.replay("--ignore-cpu").out == recorded.out == b"recorded elsewhere\n"


# ---- bounded memory -------------------------------------------------------------------------------


def test_much_data_takes_bounded_memory(rr: Recorder) -> None:
    """400 MB through cat, with the recorder and the program allowed 200 MB of writable memory each."""
    command = "head -c 400000000 /dev/zero | cat > /dev/null; grep -h VmHWM /proc/$PPID/status | tr -dc 0-9"
    recorded = rr.record("sh", "-c", command)
    assert recorded.status == 0
    assert int(recorded.out) < 250_000, "the recorder's largest size in kB"
    assert rr.replay().out == recorded.out


# ---- standard streams -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "redirections",
    [
        "",
        "< /dev/null",
        "< input",
        "<&-",
        "> /dev/null",
        ">&-",
        "2>&-",
        "2>&1",
        "> both 2>&1",
        "> out 2> err",
        "< input > out 2>&-",
        ">> both 2>> both",
    ],
)
def test_standard_streams_of_every_kind(rr: Recorder, programs: Programs, redirections: str) -> None:
    """The shell redirects, then runs the program natively, or the recorder with it, or the replayer."""
    contents: dict[str, dict[str, bytes]] = {}
    outcomes = {}
    program = programs("standard_streams")
    for kind in ("native", "recorded", "replayed"):
        folder = rr.folder(kind)
        (folder / "input").write_bytes(b"some input\n" * 50)
        words: list[str | Path] = [program]
        if kind == "recorded":
            words = [*rr.tool, "record", "-q", "-o", rr.trace, "--", program]
        elif kind == "replayed":
            words = [*rr.tool, "replay", rr.trace]
        outcomes[kind] = rr.run(["sh", "-c", f'exec "$@" {redirections}', "-", *words], kind)
        (folder / "input").unlink()
        contents[kind] = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert outcomes["recorded"] == outcomes["native"]
    assert contents["recorded"] == contents["native"]
    assert outcomes["replayed"] == outcomes["recorded"]
    assert contents["replayed"] == contents["recorded"]


def test_standard_input_from_a_terminal(rr: Recorder, programs: Programs) -> None:
    """The program reads lines from a terminal that the recorder was started on, and Ctrl-D ends them."""
    import pty

    answers = {}
    for kind in ("recorded", "replayed"):
        master, slave = pty.openpty()
        words: list[str | Path] = [
            *rr.tool,
            "record",
            "-q",
            "-o",
            rr.trace,
            "--",
            programs("standard_streams"),
        ]
        if kind == "replayed":
            words = [*rr.tool, "replay", rr.trace]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(rr.top / "state")}
        process = subprocess.Popen(
            words,
            cwd=rr.folder(kind),
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        if kind == "recorded":
            os.write(master, b"typed\nagain\n\x04")
        text = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(master)
        assert process.wait() == 3
        answers[kind] = [line for line in text.splitlines() if line not in (b"typed", b"again", b"")]
    assert b"12 bytes, then 0 " in answers["recorded"]
    assert answers["replayed"] == answers["recorded"]


def test_death_by_a_signal_is_the_tools_own(rr: Recorder, programs: Programs) -> None:
    recorded = rr.record(programs("die"), "15")
    replayed = rr.replay()
    assert recorded.status == replayed.status == -signal.SIGTERM


# ---- what already holds rr-py ---------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["record", "replay"])
def test_rr_py_in_a_recording_says_so(verb: str, rr: Recorder, tmp_path: Path) -> None:
    """The inner rr-py ends with one message; the outer recording of it is whole."""
    inner = tmp_path / "inner.bin"
    first = Recorder(tmp_path)
    first.trace = inner
    if verb == "replay":
        assert first.record("/bin/true").status == 0
    words = ["replay", str(inner)] if verb == "replay" else ["record", "-o", str(inner), "--", "/bin/true"]
    recorded = rr.record(sys.executable, "-m", "rr_py", *words)
    assert recorded.status == 125
    assert (
        recorded.said[0] == "rr-py: rr-py is being recorded itself, and a recording cannot hold another one"
    )
    replayed = rr.replay()
    assert (replayed.status, replayed.said) == (recorded.status, recorded.said)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_tracer_around_the_recorder_is_named(rr: Recorder, tmp_path: Path) -> None:
    rr.prefix = ["strace", "-f", "-o", str(tmp_path / "calls"), *rr.prefix]
    done = rr.record("/bin/true")
    assert done.status == 125
    assert [line for line in done.said if "strace (process" in line]


def test_a_program_that_writes_gs_ends_with_a_clear_message(programs: Programs, rr: Recorder) -> None:
    recorded = rr.record(programs("segment"))
    assert recorded.status == 125
    assert b"the program has written the GS register" in recorded.err


def test_fixed_addresses_that_the_user_asked_for_show(rr: Recorder, programs: Programs) -> None:
    # GIVEN a shell whose programs have fixed addresses, as setarch -R makes one
    rr.prefix = ["setarch", "-R"]
    # WHEN a program asks for its personality
    native = rr.native(programs("personalities"))
    recorded = rr.record(programs("personalities"))
    # THEN it sees that; the recorder's own wish for fixed addresses does not show elsewhere
    assert native.out.startswith(b"40000\n") and recorded.out == native.out
    assert rr.replay().out == native.out
