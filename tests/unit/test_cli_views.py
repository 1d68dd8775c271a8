"""dump, info, ps and pack on a trace made by hand.

A shell (10) forks a child (11) that executes ls, and a vfork child (12) that lives in the shell's memory.
"""

from __future__ import annotations

import errno
import json
import signal
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interfaces.abi import EVENT_DTYPE, REGION_HEADER, Kind, RegionKind
from rr_py import main as funnel
from rr_py.events import Filter, Selection, domains_in_order
from tracefile import DomainEnd, DomainStart, FileEntry, Report, TraceReader, TraceWriter
from tracefile.processes import processes

SHELL, CHILD, VFORKED = 10, 11, 12
GETPID, OPENAT, READ, EXECVE = 39, 257, 0, 59
Event = tuple[int, Kind, dict[str, Any], list[tuple[RegionKind, int, bytes]]]


def event(task: int, kind: Kind, /, *regions: tuple[RegionKind, int, bytes], **fields: Any) -> Event:
    return task, kind, fields, list(regions)


def encode(events: list[Event], clock: int) -> tuple[bytes, bytes]:
    """Events as the core writes them; event `i` ends at `clock` + 1000 * `i` unless it says otherwise."""
    array = np.zeros(len(events), EVENT_DTYPE)
    payload = bytearray()
    for i, (task, kind, fields, regions) in enumerate(events):
        start = len(payload)
        for region, arg, data in regions:
            payload += REGION_HEADER.pack(0x1000, len(data), region, arg, 0) + data + bytes(-len(data) % 8)
        array[i]["task"], array[i]["kind"] = task, kind
        array[i]["time_in"] = array[i]["time_out"] = clock + 1000 * i
        array[i]["payload_off"], array[i]["payload_len"] = start, len(payload) - start
        for name, value in fields.items():
            if name == "args":
                value = [*value, *[0] * (6 - len(value))]
            array[i][name] = value
    return array.tobytes(), bytes(payload)


def opened(task: int, path: bytes, result: int) -> Event:
    return event(
        task,
        Kind.SYSCALL,
        (RegionKind.IN, 1, path + b"\0"),
        nr=OPENAT,
        result=result,
        args=[0xFFFFFFFFFFFFFF9C, 0x1000, 0],
    )


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.bin"
    writer = TraceWriter.create(path, {"version": "9.9", "time_ns": 0, "kernel": "Linux 6.18"})
    writer.add_domain(
        DomainStart(
            domain=1,
            kind="exec",
            pid=SHELL,
            ppid=1,
            time=1000,
            comm="sh",
            exe="/bin/sh",
            cwd="/tmp",
            argv=["sh", "-c", "ls\n"],
            envp=["A=1"],
        )
    )
    writer.add_events(
        1,
        0,
        *encode(
            [
                event(SHELL, Kind.EXEC),
                opened(SHELL, b"/etc/passwd", -errno.ENOENT),
                event(VFORKED, Kind.TASK_START, args=[SHELL, VFORKED, 1]),
                event(VFORKED, Kind.SYSCALL, nr=GETPID, result=VFORKED),
                event(SHELL, Kind.DATA, (RegionKind.OUT, 1, b"first half, ")),
                event(VFORKED, Kind.SYSCALL, nr=GETPID, result=VFORKED),
                event(SHELL, Kind.RELEASE, nr=READ),
                event(
                    SHELL,
                    Kind.SYSCALL,
                    (RegionKind.OUT, 1, b"second half"),
                    nr=READ,
                    result=23,
                    args=[3, 0x1000, 100],
                ),
                event(
                    SHELL,
                    Kind.SIGNAL,
                    (RegionKind.INFO, 255, struct.pack("<iiiIii", 17, 0, 1, 0, CHILD, 0) + bytes(104)),
                    nr=int(signal.SIGCHLD),
                    args=[2],
                ),
            ],
            1000,
        ),
    )
    writer.add_domain(DomainStart(domain=2, kind="fork", pid=CHILD, ppid=SHELL, parent_domain=1, time=1500))
    writer.add_events(
        2,
        0,
        *encode(
            [
                event(CHILD, Kind.FORK, args=[1, SHELL]),
                event(CHILD, Kind.EXECED, nr=EXECVE, args=[3]),
            ],
            1500,
        ),
    )
    writer.add_domain(
        DomainStart(
            domain=3,
            kind="exec",
            pid=CHILD,
            ppid=SHELL,
            parent_domain=2,
            time=2600,
            comm="ls",
            exe="/bin/ls",
            argv=["ls", "-l a"],
        )
    )
    writer.add_events(
        3,
        0,
        *encode(
            [
                event(CHILD, Kind.EXEC),
                opened(CHILD, b"/etc/ld.so.cache", 3),
                event(CHILD, Kind.CPUID, args=[1, 0, 2, 3, 4, 5]),
                event(CHILD, Kind.RDTSC, result=77),
                event(CHILD, Kind.DEATH, nr=int(signal.SIGSEGV), args=[1]),
            ],
            2600,
        ),
    )
    writer.end_domain(DomainEnd(domain=2, pid=CHILD, status="execed", time=2550))
    writer.end_domain(DomainEnd(domain=3, pid=CHILD, status="signaled", code=11, time=7000))
    writer.end_domain(DomainEnd(domain=1, pid=VFORKED, status="exited", code=4, time=7500))
    writer.end_domain(DomainEnd(domain=1, pid=SHELL, status="exited", code=3, time=9000))
    library = tmp_path / "library.so"
    library.write_bytes(b"library" * 1000)
    status = library.stat()
    writer.add_file(FileEntry(number=1, path=str(library), size=status.st_size, mtime_ns=status.st_mtime_ns))
    writer.add_report(Report(time=5, domain=3, pid=CHILD, code=1, text="unknown call 999: answered ENOSYS"))
    writer.close({"complete": True})
    return path


Lines = Callable[..., list[str]]


@pytest.fixture
def lines(trace: Path, capsys: pytest.CaptureFixture[str]) -> Lines:
    """What a verb prints for the trace."""

    def run(verb: str, *words: str) -> list[str]:
        assert funnel.main([verb, *words, str(trace)]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out.splitlines()

    return run


def select(trace: Path, **conditions: Any) -> list[tuple[int, int]]:
    with TraceReader.open(trace) as reader:
        return [(found.domain, found.number) for found, _ in Selection(reader, Filter(**conditions))]


def test_events_come_in_the_order_of_time_and_without_what_is_only_about_recording(trace: Path) -> None:
    assert select(trace) == [
        (1, 0),
        (2, 0),
        (1, 1),
        (2, 1),
        (3, 0),
        (1, 2),
        (3, 1),
        (1, 3),
        (3, 2),
        (3, 3),
        (1, 5),
        (3, 4),
        (1, 7),
        (1, 8),
    ]
    assert {(1, 4), (1, 6)} <= set(select(trace, everything=True))


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({"calls": frozenset({OPENAT})}, [(1, 1), (3, 1)]),
        ({"errnos": frozenset({errno.ENOENT})}, [(1, 1)]),
        ({"errnos": frozenset({errno.EPERM})}, []),
        ({"pid": VFORKED}, [(1, 2), (1, 3), (1, 5)]),
        ({"pid": CHILD, "calls": frozenset({OPENAT})}, [(3, 1)]),
        ({"paths": ("/etc/*",)}, [(1, 1), (3, 1)]),
        ({"paths": ("/etc",)}, [(1, 1), (3, 1)]),
        ({"paths": ("/etc/pass",)}, []),
        ({"paths": ("*cache",), "pid": CHILD}, [(3, 1)]),
        ({"first": 7}, [(1, 7), (1, 8)]),
        ({"first": 1, "last": 1}, [(1, 1), (2, 1), (3, 1)]),
    ],
)
def test_filters(trace: Path, conditions: dict[str, Any], found: list[tuple[int, int]]) -> None:
    assert select(trace, **conditions) == found


def test_output_in_parts_is_put_together_with_its_own_call(trace: Path) -> None:
    with TraceReader.open(trace) as reader:
        found = {
            view.number: b"".join(region.data for region in regions)
            for view, regions in Selection(reader, Filter(calls=frozenset({READ, GETPID})))
        }
    assert found == {3: b"", 5: b"", 7: b"first half, second half"}


def test_a_call_that_waited_has_its_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # GIVEN a call whose path stands in the event with which it gave up the baton
    path = tmp_path / "waited.bin"
    writer = TraceWriter.create(path, {})
    writer.add_domain(DomainStart(domain=1, kind="exec", pid=SHELL, ppid=1, time=1, comm="sh", exe="/bin/sh"))
    name = (RegionKind.IN, 1, b"/srv/data\0")
    call: dict[str, Any] = {"nr": OPENAT, "args": [0xFFFFFFFFFFFFFF9C, 0x1000, 0]}
    released = event(SHELL, Kind.RELEASE, name, **call)
    made = event(SHELL, Kind.SYSCALL, nr=OPENAT, result=3, flags=8, args=call["args"])
    writer.add_events(1, 0, *encode([event(SHELL, Kind.EXEC), released, opened(CHILD, b"/b", 4), made], 1000))
    writer.close({})
    # WHEN it is dumped, or looked for by path THEN the path is there
    assert funnel.main(["dump", "--path", "/srv/*", str(path)]) == 0
    assert 'openat(AT_FDCWD, "/srv/data", O_RDONLY) = 3' in capsys.readouterr().out


def test_a_process_after_the_other_in_the_order_of_the_program(trace: Path) -> None:
    with TraceReader.open(trace) as reader:
        assert domains_in_order(reader) == [1, 2, 3]
        order = [view.domain for view, _ in Selection(reader, Filter(), by_domain=True)]
    assert order == sorted(order)


def test_dump_prints_as_strace_does(lines: Lines) -> None:
    text = lines("dump")
    assert (
        '[pid    10] openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = -1 ENOENT (No such file or directory)'
        in text
    )
    assert '[pid    11] execve("/bin/ls", ["ls", "-l a"]) = 0' in text
    (signalled,) = [line for line in text if "SIGCHLD" in line]
    assert signalled.startswith("[pid    10] --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=11, ")
    assert "[pid    11] +++ killed by SIGSEGV (core dumped) +++" in text
    assert "[pid    11] CPUID(0x1, 0x0) = {eax=0x2, ebx=0x3, ecx=0x4, edx=0x5}" in text
    assert "[pid    12] getpid() = 12" in text


def test_dump_with_numbers_and_times(lines: Lines) -> None:
    (line,) = lines("dump", "--numbers", "--time", "--call", "read")
    assert line.startswith("1:7           0.000007 [pid    10] read(")


def test_the_deterministic_form_has_no_ids_addresses_or_times(lines: Lines) -> None:
    text = "\n".join(lines("dump", "--deterministic", "--time"))
    assert "[task 1] openat(" in text
    assert "[task 2] +++ process starts, made by task 1 +++" in text
    assert "[task 3] +++ forked from task 1 +++" in text
    for varying in ("pid    ", "0x1000", "= 77", "si_pid=11"):
        assert varying not in text


def test_dump_as_json(lines: Lines) -> None:
    rows = [json.loads(line) for line in lines("dump", "--json")]
    failed = next(row for row in rows if row.get("error"))
    assert (failed["call"], failed["error"], failed["pid"], failed["result"]) == ("openat", "ENOENT", 10, -2)
    assert [field["name"] for field in failed["args"]][1] in ("path", "pathname", "filename")
    assert next(row for row in rows if row["kind"] == "signal")["signal"] == "SIGCHLD"
    assert next(row for row in rows if row["task"] == VFORKED)["pid"] == VFORKED


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--call", "opnat"], "no call 'opnat'; did you mean open"),
        (["--errno", "ENOENTT"], "no error 'ENOENTT'; did you mean ENOENT?"),
        (["--range", "x"], "'x' is not FIRST:LAST"),
        (["--range", "5:2"], "'5:2' ends before it begins"),
        (["--pid", "99"], "no process 99 in this trace; it has 10, 11, 12"),
    ],
)
def test_what_cannot_be_selected(
    trace: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert funnel.main(["dump", *words, str(trace)]) == 125
    assert message in capsys.readouterr().err


def test_ps_shows_the_tree(lines: Lines) -> None:
    assert lines("ps") == [
        "PID  STATUS             EVENTS  START  COMMAND",
        r" 10  exited 3                9  0.000  sh -c 'ls\n'",
        " 11  killed by SIGSEGV       7  0.000  ├─ ls '-l a'",
        r" 12  exited 4                0  0.000  └─ (sh -c 'ls\n')",
    ]


def test_ps_as_json(lines: Lines) -> None:
    shell, child, vforked = json.loads("\n".join(lines("ps", "--json")))
    assert (shell["parent"], shell["exit_code"], shell["domains"]) == (None, 3, [1])
    assert (child["parent"], child["signal"], child["domains"]) == (10, 11, [2, 3])
    assert (vforked["parent"], vforked["shares_domain"], vforked["ran_nothing"]) == (10, 1, True)


def test_each_process_has_its_own_end(trace: Path) -> None:
    with TraceReader.open(trace) as reader:
        assert [process.status for process in processes(reader)] == [
            "exited 3",
            "killed by SIGSEGV",
            "exited 4",
        ]


def test_info(lines: Lines) -> None:
    text = lines("info")
    assert text[0].endswith("trace.bin: complete")
    facts = dict(line.split(None, 1) for line in text[1:] if line.strip())
    assert facts["command"] == r"sh -c 'ls\n'"
    assert (facts["ended"], facts["processes"], facts["events"]) == ("exited 3", "3", "16")
    assert facts["report"] == "process 11: unknown call 999: answered ENOSYS"
    assert "1 of the system" in facts["files"]


def test_info_as_json(lines: Lines) -> None:
    facts = json.loads("\n".join(lines("info", "--json")))
    assert facts["complete"] is True
    assert facts["stopped"] is None
    assert (facts["processes"], facts["domains"], facts["events"], facts["status"]) == (3, 3, 16, "exited 3")
    assert facts["seconds"] == pytest.approx(8e-6)


def test_a_trace_that_breaks_off_says_where(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = trace.read_bytes()
    with TraceReader.open(trace) as reader:
        end = reader.domains[3].offsets[0]
    trace.write_bytes(whole[: end + 40])
    assert funnel.main(["info", str(trace)]) == 0
    out = capsys.readouterr().out
    assert "not complete" in out
    assert "\nstops " in out
    assert funnel.main(["dump", str(trace)]) == 0
    out, err = capsys.readouterr()
    assert "openat" in out
    assert err.startswith("rr-py: ")


def test_pack_replaces_the_trace_by_one_that_needs_no_files(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert funnel.main(["pack", str(trace)]) == 0
    assert capsys.readouterr().err.startswith("rr-py: packed 1 file (7.0 kB) into ")
    (tmp_path / "library.so").unlink()
    with TraceReader.open(trace) as reader:
        assert [entry.kind for entry in reader.files.values()] == ["stored"]
        assert (reader.complete, reader.total_events) == (True, 16)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.bin"]


def test_a_failed_pack_leaves_the_trace_as_it_was(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = trace.read_bytes()
    (tmp_path / "library.so").write_bytes(b"changed")
    assert funnel.main(["pack", str(trace)]) == 125
    assert "library.so" in capsys.readouterr().err
    assert trace.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["library.so", "trace.bin"]


def test_the_newest_trace_is_taken_when_none_is_named(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert funnel.main(["info"]) == 0
    assert capsys.readouterr().out.startswith("trace.bin: complete")
    trace.unlink()
    assert funnel.main(["info"]) == 125
    assert "no trace" in capsys.readouterr().err
