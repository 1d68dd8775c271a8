"""What recording costs at system calls, at libraries, and where `interface suggest` cuts.

`python -m benchmarks.interfaces [NAME...]` prints the table of docs/interfaces.md: bytes of the trace, and
processor time of program and recorder as a multiple of the program's own. Each recording is replayed after
the servers and files it used are gone; one that does not write the same is marked. Fails where a suggestion
is larger than the better of the other two.
"""

from __future__ import annotations

import gzip
import os
import pwd
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "library" / "programs"
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
PAGE = 405_000

WEB = """
import http.server, ssl, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
if len(sys.argv) > 1:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain('c.pem', 'k.pem')
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"""
SCRIPT = """
import sqlite3, zlib
rows = sqlite3.connect('p.db').execute('select a, length(b) from t').fetchall()
packed = zlib.compress(repr(rows).encode())
print(len(rows), len(packed), zlib.crc32(packed))
"""


@dataclass(slots=True)
class Case:
    """A program to record: its command, its libraries' interfaces, what it needs in its environment, and what
    is done away with before its recordings are replayed."""

    command: Sequence[str]
    interfaces: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    remove: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Bytes of a trace, processor seconds, the interfaces, and whether its replay wrote the same."""

    size: int
    seconds: float
    at: str
    same: bool


def main(names: Sequence[str]) -> int:
    """Measure the cases of these names (all by default), print the table."""
    print("| program | native | system calls | library | suggested |\n|---|---|---|---|---|")
    worse = False
    for title, prepare in CASES.items():
        if names and not any(name in title for name in names):
            continue
        with tempfile.TemporaryDirectory(prefix="rr-py-bench-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            folder.chmod(0o755)
            native, rows = measured(folder, prepare)
        shown = [_cell(row, native) for row in rows]
        print(f"| {title} | {native:.2f} s | {' | '.join(shown)} |", flush=True)
        worse = worse or rows[2].size > min(rows[0].size, rows[1].size) or not all(row.same for row in rows)
    return int(worse)


def _cell(row: Row, native: float) -> str:
    size = f"{row.size / 1e6:.1f} MB" if row.size >= 1e6 else f"{row.size / 1e3:.1f} kB"
    times = f"{row.seconds:.1f} s"
    return f"{row.at + ': ' if row.at else ''}{size}, {times}{'' if row.same else ' (replay differs)'}"


def measured(folder: Path, prepare: Callable[[Path, ExitStack], Case]) -> tuple[float, list[Row]]:
    """Native seconds, and the three recordings of a case."""
    with ExitStack() as stack:
        case = prepare(folder, stack)
        env = {**os.environ, "PYTHONPATH": str(ROOT), **case.env}
        native = min(_run(case.command, folder, env)[0] for _ in range(2))
        done = _tool(["interface", "suggest", "-o", "suggested.toml", "--", *case.command], folder, env)
        last = [line for line in done.splitlines() if line.startswith("suggested:")][-1]
        options = {
            "system": [],
            "library": [word for name in case.interfaces for word in ("--interface", name)],
            "suggested": ["--interface", "suggested.toml"] if (folder / "suggested.toml").exists() else [],
        }
        recorded = {}
        for name, words in options.items():
            seconds, out = _run(
                [
                    sys.executable,
                    "-m",
                    "rr_py",
                    "record",
                    "-q",
                    "-o",
                    f"{name}.bin",
                    *words,
                    "--",
                    *case.command,
                ],
                folder,
                env,
            )
            recorded[name] = seconds, out
    for gone in case.remove:
        (folder / gone).unlink()
    at = last.removeprefix("suggested: ").replace("--interface ", "").partition(":")[0]
    places = {"system": "", "library": " ".join(case.interfaces), "suggested": at}
    rows = []
    for name, (seconds, out) in recorded.items():
        command = [sys.executable, "-m", "rr_py", "replay", f"{name}.bin"]
        replayed = subprocess.run(
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        size = (folder / f"{name}.bin").stat().st_size
        rows.append(Row(size, seconds, places[name], replayed.stdout == out))
    return native, rows


def _run(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> tuple[float, bytes]:
    """Processor seconds of a command and all it started, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def _tool(words: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    command = [sys.executable, "-m", "rr_py", *words]
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, errors="replace", timeout=600
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def _built(folder: Path, source: Path, *flags: str) -> str:
    target = folder / source.stem
    subprocess.run(["gcc", "-O2", "-g", "-o", target, source, *flags], check=True)
    return str(target)


@contextmanager
def _server(command: Sequence[str], folder: Path) -> Iterator[str]:
    """A server of our own that prints where it is."""
    server = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
        server.stdout.close()


def _page(folder: Path) -> None:
    generator = random.Random(1)
    text = "".join(f"{generator.randrange(10**12):012d} some words of a line\n" for _ in range(PAGE // 34))
    (folder / "page").write_text(text.ljust(PAGE, "."))


def sqlite_shell(folder: Path, stack: ExitStack) -> Case:
    with sqlite3.connect(folder / "a.db") as db:
        db.execute("create table t(a integer primary key, b)")
        rows = ((i, random.Random(i).randbytes(420).hex()) for i in range(100_000))
        db.executemany("insert into t values (?, ?)", rows)
    db.close()
    queries = "".join(f"select {i}, substr(b, 1, 20) from t where a = {i * 400};" for i in range(200))
    command = ["sqlite3", "-init", "/dev/null", "a.db", queries + "select sum(length(b)) from t;"]
    return Case(command, ["sqlite3", "libc"], remove=["a.db"])


def curl(folder: Path, stack: ExitStack) -> Case:
    _page(folder)
    port = stack.enter_context(_server([sys.executable, "-c", WEB], folder))
    return Case(["curl", "-sS", f"http://127.0.0.1:{port}/page"], ["libcurl", "libc"])


def tls(folder: Path, stack: ExitStack) -> Case:
    _page(folder)
    request = "req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 2 -subj /CN=localhost"
    subprocess.run(["openssl", *request.split()], cwd=folder, check=True, capture_output=True)
    program = _built(folder, PROGRAMS / "tls.c", "-lssl", "-lcrypto")
    port = stack.enter_context(_server([sys.executable, "-c", WEB, "tls"], folder))
    return Case([program, f"127.0.0.1:{port}"], ["openssl", "libc"])


def psql(folder: Path, stack: ExitStack) -> Case:
    """A session with a server of its own on a socket in a folder of its own."""
    tools, place = POSTGRES[-1], Path(tempfile.mkdtemp(prefix="rr-py-pg-"))
    stack.callback(shutil.rmtree, place, ignore_errors=True)
    as_owner: list[str] = []
    if os.geteuid() == 0:
        owner = pwd.getpwnam("postgres")
        os.chown(place, owner.pw_uid, owner.pw_gid)
        as_owner = ["runuser", "-u", "postgres", "--"]
    made = [*as_owner, str(tools / "initdb"), "-D", str(place / "data"), "-A", "trust", "-U", "postgres"]
    subprocess.run(made, check=True, capture_output=True, cwd="/")
    control = [*as_owner, str(tools / "pg_ctl"), "-D", str(place / "data"), "-w"]
    options = ["-o", f"-k {place} -c listen_addresses= -c fsync=off", "-l", str(place / "log"), "start"]
    subprocess.run([*control, *options], check=True, stdout=subprocess.DEVNULL, cwd="/")

    def end() -> None:
        pid = int((place / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        subprocess.run([*control, "stop", "-m", "immediate"], capture_output=True, cwd="/")

    stack.callback(end)
    queries = (
        "drop table if exists t",
        "create table t as select i, md5(i::text) h, i / 3.0 d from generate_series(1, 3000) i",
        "select * from t order by h limit 1000",
        "select i % 10, count(*), sum(d), min(h) from t group by 1 order by 1",
        "select missing from t",
        "select now() > '2020-01-01', count(*) from pg_class",
    )
    words = [word for query in queries for word in ("-c", query)]
    env = {"PGHOST": str(place), "PGUSER": "postgres", "PAGER": "cat"}
    return Case([str(tools / "psql"), "-X", "-d", "postgres", *words], ["libpq", "libc"], env)


def window(folder: Path, stack: ExitStack) -> Case:
    program = _built(folder, PROGRAMS / "window.c", "-lX11")
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]
    display = stack.enter_context(_server(command, folder))
    return Case([program], ["x11", "libc"], {"DISPLAY": f":{display}"})


def script(folder: Path, stack: ExitStack) -> Case:
    with sqlite3.connect(folder / "p.db") as db:
        db.execute("create table t(a, b)")
        db.executemany(
            "insert into t values (?, ?)", ((i, random.Random(i).randbytes(1500).hex()) for i in range(1000))
        )
    db.close()
    command = ["/usr/bin/python3", "-I", "-c", SCRIPT]
    return Case(command, ["zlib", "sqlite3", "libc"], remove=["p.db"])


def sorts(folder: Path, stack: ExitStack) -> Case:
    generator = random.Random(3)
    (folder / "words").write_text("".join(f"{generator.randrange(10**9)}\n" for _ in range(200)))
    return Case(["sort", "words"], ["libc"], remove=["words"])


def far(folder: Path, stack: ExitStack) -> Case:
    (folder / "data.gz").write_bytes(gzip.compress(random.Random(5).randbytes(3_000_000), 1))
    return Case([_built(folder, PROGRAMS / "far.c", "-lz")], ["zlib", "libc"], remove=["data.gz"])


def report(folder: Path, stack: ExitStack) -> Case:
    generator = random.Random(7)
    (folder / "numbers").write_text("".join(f"{generator.randrange(10**9)}\n" for _ in range(400_000)))
    program = _built(folder, ROOT / "examples" / "internal_interface" / "report.c")
    return Case([program, "numbers"], ["libc"], remove=["numbers"])


CASES: dict[str, Callable[[Path, ExitStack], Case]] = {
    "sqlite3 shell, 201 queries on 89 MB": sqlite_shell,
    "curl, 405 kB over HTTP": curl,
    "TLS client, 405 kB": tls,
    "psql, 6 statements": psql,
    "a window (Xlib)": window,
    "Python script, sqlite3 and zlib": script,
    "sort, 200 lines": sorts,
    "3 MB read through zlib for one number": far,
    "4 MB read by a function of the program": report,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
