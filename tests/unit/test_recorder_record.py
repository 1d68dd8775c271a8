"""Recording real processes with the core: what the trace says of them, and that they are left in peace."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from interfaces import abi
from interfaces.errors import ExitStatus
from interposer import kernel
from interposer.channel import Message
from interposer.errors import LaunchError
from recorder import RecordError, RecordOptions, RecordResult, images, record
from recorder.mapping import Mappings
from tracefile import TraceFormatError, TraceMissingError, TraceReader, TraceWriteError, TraceWriter
from tracefile.layout import HEADER_SIZE, ChunkType

_DRIVER = """
import json, sys
from pathlib import Path
from recorder import RecordOptions, record
result = record(RecordOptions(command=sys.argv[2:], trace=Path(sys.argv[1])))
print(json.dumps([result.status, result.signal, result.complete, result.problem]))
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "t.bin"


def run(trace: Path, *command: str, **options: Any) -> RecordResult:
    options.setdefault("notify", lambda text: None)
    return record(RecordOptions(command=command, trace=trace, **options))


def driver(trace: Path, *command: str, **options: Any) -> subprocess.Popen[str]:
    """A recorder in a process of its own; its last line of output is the result as JSON."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(trace), *command],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(recorder: subprocess.Popen[str]) -> tuple[list[str], list[Any]]:
    """What the program printed, and the recorder's result."""
    out, _ = recorder.communicate(timeout=60)
    *printed, result = out.splitlines()
    return printed, json.loads(result)


def compile_c(folder: Path, source: str, *flags: str) -> str:
    (folder / "p.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-w", "-o", "p", "p.c", *flags], cwd=folder, check=True)
    return str(folder / "p")


def ends(reader: TraceReader) -> dict[tuple[str, int], int]:
    """How many processes ended in which way."""
    found: dict[tuple[str, int], int] = {}
    for info in reader.domains.values():
        for end in info.ends:
            key = (end.status, end.code)
            found[key] = found.get(key, 0) + 1
    return found


def test_a_program_is_recorded_from_its_first_to_its_last_call(trace: Path) -> None:
    result = run(trace, "/bin/sh", "-c", "exit 3")
    assert (result.status, result.signal, result.complete) == (3, None, True)
    with TraceReader.open(trace) as reader:
        assert reader.complete
        info = reader.domains[1]
        assert (info.kind, info.argv, info.exe) == (
            "exec",
            ["/bin/sh", "-c", "exit 3"],
            os.path.realpath("/bin/sh"),
        )
        boot = info.boot
        assert boot is not None
        assert any(m.path == "[stack]" for m in boot.mappings)
        assert all(m.file for m in boot.mappings if m.ino)
        assert boot.stack_start == boot.regs["rsp"]
        first = reader.event(1, 0)
        last = reader.event(1, reader.event_count(1) - 1)
        assert (first.kind, first.args[0]) == (abi.Kind.EXEC, boot.regs["rip"])
        assert (last.nr, last.args[0]) == (231, 3)
        assert ends(reader) == {("exited", 3): 1}
        assert reader.meta["command"] == ["/bin/sh", "-c", "exit 3"]


def test_death_by_signal_is_the_result(trace: Path) -> None:
    result = run(trace, "/bin/sh", "-c", "kill -KILL $$")
    assert (result.status, result.signal) == (None, signal.SIGKILL)
    with TraceReader.open(trace) as reader:
        assert ends(reader) == {("signaled", 9): 1}


def test_every_process_of_a_tree_has_its_log(trace: Path) -> None:
    run(
        trace,
        "/bin/sh",
        "-c",
        "for i in 1 2 3; do /bin/sh -c 'exit 4'; done; (exit 5); /bin/true | /bin/true",
    )
    with TraceReader.open(trace) as reader:
        found = ends(reader)
        assert found[("exited", 4)] == 3
        assert found[("exited", 5)] == 1
        for info in reader.domains.values():
            assert info.domain == 1 or info.parent_domain in reader.domains
            assert reader.event_count(info.domain) > 0


def test_an_exec_ends_one_log_and_begins_another(trace: Path) -> None:
    run(trace, "/bin/sh", "-c", "exec /bin/sh -c 'exec /bin/true'")
    with TraceReader.open(trace) as reader:
        assert [info.pid for info in reader.domains.values()] == [reader.domains[1].pid] * 3
        for domain in (1, 2):
            last = reader.event(domain, reader.event_count(domain) - 1)
            assert (last.kind, last.nr, last.args[0]) == (abi.Kind.EXECED, 59, domain + 1)
            assert reader.domains[domain + 1].parent_event == reader.event_count(domain) - 1
        assert ends(reader) == {("execed", 0): 2, ("exited", 0): 1}


def test_a_failing_exec_leaves_no_trace_of_another_program(trace: Path, tmp_path: Path) -> None:
    source = """
    #include <unistd.h>
    int main(void) {
      char *argv[] = {"x", 0};
      for (int i = 0; i < 20; i++) execve(i % 2 ? "/no/such" : "/etc/passwd", argv, argv + 1);
      return 6;
    }
    """
    assert run(trace, compile_c(tmp_path, source)).status == 6
    with TraceReader.open(trace) as reader:
        assert list(reader.domains) == [1]


def test_a_thread_that_is_not_the_leader_may_exec(trace: Path, tmp_path: Path) -> None:
    source = """
    #include <pthread.h>
    #include <unistd.h>
    void *f(void *a) { execl("/bin/sh", "sh", "-c", "exit 8", (char *)0); return 0; }
    int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 9; }
    """
    assert run(trace, compile_c(tmp_path, source, "-pthread")).status == 8
    with TraceReader.open(trace) as reader:
        assert sorted(reader.domains) == [1, 2]
        assert reader.domains[1].pid == reader.domains[2].pid


def test_an_orphan_is_recorded_to_its_end(trace: Path) -> None:
    result = run(trace, "/bin/sh", "-c", "(/bin/sleep 0.2; exec /bin/sh -c 'exit 7') & exit 0")
    assert result.status == 0
    with TraceReader.open(trace) as reader:
        assert reader.complete
        assert ends(reader)[("exited", 7)] == 1


def test_an_orphan_that_is_killed_ends_by_its_signal(trace: Path) -> None:
    script = "(/bin/sh -c 'kill -9 $$' &) ; /bin/sleep 0.1"
    assert run(trace, "/bin/sh", "-c", script).status == 0
    with TraceReader.open(trace) as reader:
        assert ends(reader)[("signaled", 9)] == 1


def test_the_program_gets_its_environment_and_folder(trace: Path, tmp_path: Path) -> None:
    script = 'test "$(pwd -P)" = "$A" && test -z "$HOME" && test "$0" = "x y"'
    where = os.path.realpath(tmp_path)
    result = run(trace, "sh", "-c", script, "x y", env={"A": where, "PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    assert result.status == 0
    with TraceReader.open(trace) as reader:
        assert "A=" + where in reader.domains[1].envp
        assert reader.domains[1].cwd == where


def test_an_existing_trace_is_never_overwritten(trace: Path, tmp_path: Path) -> None:
    trace.write_text("precious")
    marker = tmp_path / "ran"
    with pytest.raises(TraceWriteError):
        run(trace, "/bin/sh", "-c", f"touch {marker}")
    assert trace.read_text() == "precious"
    assert not marker.exists()


def test_without_a_name_traces_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("trace.bin", "trace-2.bin"):
        assert record(RecordOptions(command=["/bin/true"])).trace.resolve() == tmp_path.resolve() / name


@pytest.mark.parametrize(
    ("command", "status"),
    [("no-such-program", ExitStatus.NOT_FOUND), ("/etc/passwd", ExitStatus.CANNOT_RUN)],
)
def test_what_cannot_be_run_leaves_no_trace(trace: Path, command: str, status: ExitStatus) -> None:
    with pytest.raises(LaunchError) as caught:
        run(trace, command)
    assert caught.value.status is status
    assert not trace.exists()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_32_bit_program_is_refused_at_first_and_let_go_later(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "p.s").write_text(".globl _start\n_start: mov $1,%eax; mov $7,%ebx; int $0x80\n")
    subprocess.run(["as", "--32", "-o", "p.o", "p.s"], cwd=tmp_path, check=True)
    subprocess.run(["ld", "-m", "elf_i386", "-o", "p32", "p.o"], cwd=tmp_path, check=True)
    program = str(tmp_path / "p32")
    if subprocess.run([program], check=False).returncode != 7:
        pytest.skip("this kernel runs no 32-bit programs")
    with pytest.raises(LaunchError, match="32-bit") as caught:
        run(trace, program)
    assert caught.value.status is ExitStatus.CANNOT_RUN
    told: list[str] = []
    assert run(trace, "/bin/sh", "-c", f"{program}; exit $?", notify=told.append).status == 7
    assert len(told) == 1
    assert program in told[0]
    with TraceReader.open(trace) as reader:
        assert list(reader.domains) == [1]
        assert "32-bit" in reader.reports[0].text


def test_a_kernel_without_user_dispatch_is_refused_before_anything_runs(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="Syscall User Dispatch") as caught:
        run(trace, "/bin/sh", "-c", f"touch {tmp_path}/ran", has_user_dispatch=lambda: False)
    assert caught.value.remedy
    assert not (tmp_path / "ran").exists()


def test_too_low_a_limit_of_open_files_names_the_limit(trace: Path) -> None:
    words = [sys.executable, "-m", "rr_py", "record", "-o", str(trace), "--", "/bin/true"]
    limited = ["prlimit", "--nofile=40:40", *words]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=60)
    assert done.returncode == ExitStatus.TOOL_FAILED
    assert "40" in done.stderr


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_on_a_full_disk_the_program_ends_as_always(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    append = TraceWriter._append
    events = 0

    def full(self: TraceWriter, parts: list[bytes]) -> None:
        nonlocal events
        events += len(parts[0]) == HEADER_SIZE and parts[0][4] == ChunkType.EVENTS
        if events > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, parts)

    monkeypatch.setattr(TraceWriter, "_append", full)
    told: list[str] = []
    script = f"head -c 8000000 /dev/urandom | wc -c > {tmp_path}/size; /bin/true && exit 4"
    result = run(trace, "/bin/sh", "-c", script, notify=told.append)
    assert (result.status, result.complete) == (4, False)
    assert "No space left" in result.problem
    assert len(told) == 1
    assert (tmp_path / "size").read_text().strip() == "8000000"
    with TraceReader.open(trace) as reader:
        assert not reader.complete


def test_sigterm_is_handed_on_to_the_program(trace: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = f"trap 'echo got; exit 5' TERM; echo > {ready}; while :; do /bin/sleep 0.01; done"
    recorder = driver(trace, "/bin/sh", "-c", script)
    ready.read_text()
    recorder.send_signal(signal.SIGTERM)
    printed, result = finish(recorder)
    assert (printed, result[0]) == (["got"], 5)


def test_ctrl_c_reaches_the_program_and_not_the_recorder(trace: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = f"trap 'echo got; exit 6' INT; echo > {ready}; while :; do /bin/sleep 0.01; done"
    recorder = driver(
        trace,
        "/bin/sh",
        "-c",
        script,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    ready.read_text()
    os.killpg(recorder.pid, signal.SIGINT)
    printed, result = finish(recorder)
    assert (printed, result[0]) == (["got"], 6)


def test_signal_dispositions_are_the_callers_again(trace: Path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGTTOU)
    before = [signal.getsignal(number) for number in numbers]
    run(trace, "/bin/true")
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_the_program_does_not_inherit_what_python_ignores(trace: Path, tmp_path: Path) -> None:
    found = tmp_path / "found"
    run(trace, "/bin/sh", "-c", f"grep -E '^Sig(Ign|Blk)' /proc/self/status > {found}")
    masks = {line.split(":")[0]: int(line.split()[1], 16) for line in found.read_text().splitlines()}
    ignored = {n for n in range(1, 65) if masks["SigIgn"] >> (n - 1) & 1}
    assert not ignored & {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU, signal.SIGQUIT}


def test_what_was_flushed_survives_the_recorders_death(trace: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    recorder = driver(trace, "/bin/cat", str(ready))
    deadline = time.monotonic() + 60
    while True:
        with suppress(TraceFormatError, TraceMissingError), TraceReader.open(trace) as reader:
            if reader.total_events > 50:
                break
        assert time.monotonic() < deadline
    recorder.kill()
    recorder.wait()
    with open(ready, "w") as fifo:
        fifo.write("still alive\n")
    out, _ = recorder.communicate(timeout=60)
    assert out == "still alive\n"
    with TraceReader.open(trace) as reader:
        assert not reader.complete
        assert reader.domains[1].argv == ["/bin/cat", str(ready)]


def test_a_mapped_file_of_the_users_is_in_the_trace(trace: Path, tmp_path: Path) -> None:
    source = """
    #include <fcntl.h>
    #include <sys/mman.h>
    #include <unistd.h>
    int main(int argc, char **argv) {
      int fd = open(argv[1], O_RDONLY);
      char *p = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
      return p[2];
    }
    """
    program = compile_c(tmp_path, source)
    (tmp_path / "data").write_bytes(b"abcd" * 1024)
    assert run(trace, program, str(tmp_path / "data")).status == ord("c")
    with TraceReader.open(trace) as reader:
        stored = {entry.path: entry for entry in reader.files.values() if entry.kind == "stored"}
        blob = stored[str(tmp_path / "data")].blob
        assert blob is not None
        assert b"".join(reader.blob(blob)) == b"abcd" * 1024
        system = [entry for entry in reader.files.values() if entry.kind == "system"]
        assert all(entry.sha256 for entry in system)


def test_no_descriptor_is_left_open(trace: Path, tmp_path: Path) -> None:
    run(tmp_path / "warm.bin", "/bin/true")
    before = sorted(os.listdir("/proc/self/fd"))
    run(trace, "/bin/sh", "-c", "/bin/true; /bin/true & wait")
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_the_linkers_cache_is_asked_for_twice_however_many_programs_start(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a file outside the system's folders that each program maps WHEN ten are started THEN the answer
    for the second of them holds for the rest."""
    asked: list[str] = []
    answer = Mappings.answer

    def spy(self: Mappings, message: Message, fd: int) -> tuple[Message, bytes]:
        asked.append(os.readlink(f"/proc/self/fd/{fd}"))
        return answer(self, message, fd)

    monkeypatch.setattr(Mappings, "answer", spy)
    assert run(trace, "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done").status == 0
    cache = os.path.realpath("/etc/ld.so.cache")
    assert asked.count(cache) == (2 if os.path.exists(cache) else 0)
    assert len(asked) == len(set(asked)) + 1


def test_a_program_that_is_made_anew_is_looked_at_anew(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a program that has run so often that it is recognised WHEN another takes its place, in the same
    file THEN that one is what the trace holds."""
    monkeypatch.setattr("recorder.files._SETTLED_NS", -1)
    monkeypatch.setattr("recorder.files._disks", lambda: frozenset({tmp_path.stat().st_dev}))
    looked: list[int] = []
    look = images._look

    def spy(pid: int, *rest: Any) -> images.Program:
        looked.append(pid)
        return look(pid, *rest)

    monkeypatch.setattr(images, "_look", spy)
    own = tmp_path / "own"
    runs = f"{own}; {own}; {own}; {own}"
    script = f"cat /bin/true > {own}; chmod +x {own}; {runs}; cat /bin/false > {own}; {own}"
    assert run(trace, "/bin/sh", "-c", script).status == 1
    with TraceReader.open(trace) as reader:
        numbers = [
            {mapping.file for mapping in info.boot.mappings if mapping.path == str(own)}
            for _, info in sorted(reader.domains.items())
            if info.boot is not None and info.exe == str(own)
        ]
        contents = [b"".join(reader.blob(reader.files[min(shown)].blob or "")) for shown in numbers]
    assert [len(shown) for shown in numbers] == [1] * 5
    assert contents == [Path("/bin/true").read_bytes()] * 4 + [Path("/bin/false").read_bytes()]
    assert len(looked) < 1 + 2 + 5


def test_a_virtual_machine_is_not_asked_for_what_the_dynamic_linker_asks(trace: Path) -> None:
    """GIVEN a machine where each CPUID is left to the host, or cannot trap WHEN a program is recorded THEN
    the linker's are replaced; on any other machine no code is changed.
    """
    virtual = "hypervisor" in Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    assert run(trace, "true").status == 0
    with TraceReader.open(trace) as reader:
        boot = reader.domains[1].boot
        flags = reader.meta["flags"]
    assert boot is not None and isinstance(flags, int)
    assert bool(boot.patches) == bool(flags & (abi.GlobalFlag.NO_FAULT_CPUID | abi.GlobalFlag.LATE_FAULT))
    assert bool(boot.patches) == (virtual or not kernel.has_cpuid_faulting())
