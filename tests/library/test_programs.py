"""Real programs recorded at a library's functions and replayed with what the library used gone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from interfaces.libspec import shipped
from tests.library.conftest import PROGRAMS, ROOT, Build, Tool, both, need, same


def test_sqlite_shell_without_its_database(tool: Tool, tmp_path: Path) -> None:
    need(shutil.which("sqlite3"), "the sqlite3 shell")
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as db:
        db.execute("create table t(a, b, c)")
        db.executemany("insert into t values (?, ?, ?)", [(i, f"n{i}", i / 3) for i in range(500)])
        db.execute("create table big as select zeroblob(1000000) as z from t limit 100")
    db.close()
    assert path.stat().st_size > 100_000_000
    query = "select *, upper(b) from t; select * from missing; select sum(length(hex(z))) from big;"
    query += "".join(f"select {i}, count(*), sum(c) from t where a % 200 = {i};" for i in range(200))
    expected = both(tool, "sqlite3,libc", "sqlite3", "-init", "/dev/null", str(path), query)
    assert b"N499" in expected[0] and b"\n199|" in expected[0]
    path.unlink()
    same(tool, expected)
    assert (tmp_path / "t.bin").stat().st_size < 1_000_000


PYTHON = """
import sqlite3, zlib
data = b'hello ' * 10000
packed = zlib.compress(data)
print(len(packed), zlib.crc32(packed), zlib.decompress(packed) == data)
class Sum:
    def __init__(self): self.sum = 0
    def step(self, value): self.sum += value
    def finalize(self): return self.sum
db = sqlite3.connect('p.db')
db.create_function('twice', 1, lambda value: value * 2)
db.create_aggregate('total_of', 1, Sum)
print(db.execute('select twice(a), b from t').fetchall(), db.execute('select total_of(a) from t').fetchall())
"""


def test_python_script_with_zlib_and_sqlite(tool: Tool, tmp_path: Path) -> None:
    """dlopen'ed libraries, and callbacks that call the library again."""
    need(Path("/usr/bin/python3").exists(), "the system's Python")
    with sqlite3.connect(tmp_path / "p.db") as db:
        db.execute("create table t(a, b)")
        db.executemany("insert into t values (?, ?)", [(1, b"x"), (2, None), (3, "drei")])
    db.close()
    expected = both(tool, "zlib,sqlite3", "/usr/bin/python3", "-c", PYTHON)
    assert b"(6,)" in expected[0]
    (tmp_path / "p.db").unlink()
    same(tool, expected)


def test_curl_without_its_server(tool: Tool, tmp_path: Path) -> None:
    need(shutil.which("curl"), "curl")
    (tmp_path / "page").write_text("line\n" * 50000)
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler);"
            " print(s.server_port, flush=True); s.serve_forever()",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    url = f"http://127.0.0.1:{int(server.stdout.readline())}/page"
    try:
        expected = both(tool, "libcurl", "curl", "-sS", url)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    assert len(expected[0]) == 250000
    same(tool, expected)


THREADS = (PROGRAMS / "threads.c").read_text()


def test_two_threads_call_in_at_once(tool: Tool, build: Build) -> None:
    program = build("threads", THREADS, "-lz", "-lpthread")
    expected = both(tool, "zlib", str(program))
    same(tool, expected)


LIBRARY = (PROGRAMS / "thing.c").read_text()

SPEC = (PROGRAMS / "thing.toml").read_text()

USER = (PROGRAMS / "user.c").read_text()


def test_own_library_with_everything(tool: Tool, build: Build, tmp_path: Path) -> None:
    """Callbacks with the program's data, variadic calls, floating values, ten arguments, three megabytes."""
    build("libthing.so", LIBRARY, "-Wl,-z,now", shared=True)
    program = build("user", USER, str(tmp_path / "libthing.so"), f"-Wl,-rpath,{tmp_path}")
    (tmp_path / "thing.toml").write_text(SPEC)
    recorded = tool(
        "record", "-q", "-o", "t.bin", "--interface", "thing.toml", str(program), env_more={"SEED": "A"}
    )
    assert recorded.status == 3, recorded.err
    assert tool("dump", "t.bin").out.count(b" thing_drop(") == 1
    replayed = tool("replay", "t.bin")
    assert (replayed.out, replayed.status) == (recorded.out, 3), replayed.err


def test_functions_of_the_program_that_the_library_calls(tool: Tool, build: Build) -> None:
    """qsort and bsearch call back hundreds of times; snprintf is variadic."""
    program = build("sorts", (PROGRAMS / "sorts.c").read_text())
    expected = both(tool, str(PROGRAMS / "sorts.toml"), str(program))
    assert b"42 words 2.500 x 1099511627776   9.2|left    |" in expected[0]
    same(tool, expected)
    text = tool("dump", "t.bin").out
    assert text.count(b"-> order(") > 100 and b"<- order returns" in text


def test_curl_write_functions_and_options(tool: Tool, build: Build, tmp_path: Path) -> None:
    need(next(Path("/usr/lib").glob("*/libcurl.so.4"), None), "libcurl")
    program = build("fetch", (PROGRAMS / "fetch.c").read_text(), "-l:libcurl.so.4")
    page = tmp_path / "page"
    page.write_text("line\n" * 40000)
    expected = both(tool, "libcurl", str(program), f"file://{page}")
    assert b"No error: body 200000 " in expected[0] and b"head " in expected[0]
    page.unlink()
    same(tool, expected)


def test_python_extension_at_the_c_api(tool: Tool, build: Build, tmp_path: Path) -> None:
    """What the module calls of Python is called again, and gives the objects the log names."""
    example = ROOT / "examples" / "python_extension"
    ask = "import sysconfig; print(sysconfig.get_path('include'))"
    done = subprocess.run(["/usr/bin/python3", "-c", ask], capture_output=True, text=True, check=True)
    include = done.stdout.strip()
    need(Path(include, "Python.h").exists(), "Python.h of the system's Python")
    build("sensor.so", (example / "sensor.c").read_text(), f"-I{include}", shared=True)
    (tmp_path / "readings.txt").write_text("mon 3\ntue 4\n")
    shutil.copy(example / "station.py", tmp_path)
    command = ["/usr/bin/python3", "station.py"]
    expected = both(tool, str(example / "sensor.toml"), *command)
    assert b"['tue', '4']" in expected[0] and b"ValueError 0 to 64 bytes" in expected[0]
    (tmp_path / "readings.txt").unlink()
    same(tool, expected)


def test_divergence_names_function_and_argument(tool: Tool, build: Build, tmp_path: Path) -> None:
    build("libthing.so", LIBRARY, shared=True)
    text = (
        USER.replace('argc > 1 ? argv[1] : "one"', 'fgets(text, 9, fopen("name", "r"))')
        .replace("struct thing *t =", "char text[99]; struct thing *t =")
        .replace("unsigned char b[16]; char text[99];", "unsigned char b[16];")
    )
    program = build("user", text, str(tmp_path / "libthing.so"), f"-Wl,-rpath,{tmp_path}")
    (tmp_path / "thing.toml").write_text(SPEC)
    (tmp_path / "name").write_text("first")
    tool("record", "-q", "-o", "t.bin", "--interface", "thing.toml", str(program), env_more={"SEED": "A"})
    (tmp_path / "name").write_text("other")
    replayed = tool("replay", "t.bin")
    assert replayed.status == 124
    assert 'thing_new(name="first")' in replayed.err and 'thing_new(name="other")' in replayed.err


def test_a_program_that_has_changed_is_not_run(tool: Tool, build: Build) -> None:
    text = '#include <stdio.h>\nint main() { puts("%s"); }'
    program = build("app", text % "one")
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "zlib", str(program))
    replayed = tool("replay", "t.bin")
    assert replayed.out == recorded.out == b"one\n"
    assert "only calls of zlib came from the log" in replayed.err
    assert tool("replay", "--verify", "t.bin").status == 125
    build("app", text % "two")
    replayed = tool("replay", "t.bin")
    assert replayed.out == b"" and "/app has changed since the recording" in replayed.err
    assert replayed.status == 125
    program.unlink()
    replayed = tool("replay", "t.bin")
    assert "/app, which was recorded, cannot be opened" in replayed.err and replayed.status == 125


def test_a_library_that_has_changed_is_not_run(tool: Tool, build: Build, tmp_path: Path) -> None:
    """Only where its functions do not come from the log; also where the program that loads it was started."""
    text = '#include <stdio.h>\nint help(int n);\nint main() { printf("%d\\n", help(1)); }'
    library = build("libhelp.so", "int help(int n) { return n + 1; }", shared=True)
    program = build("app", text, str(library), f"-Wl,-rpath,{tmp_path}")
    for name in ("replaced", "run"):
        interface = ["--interface", "help.toml"] if name == "replaced" else []
        (tmp_path / "help.toml").write_text(
            'library = "libhelp.so"\n[function]\nhelp = { prototype = "int help(int n)" }\n'
        )
        command = ["sh", "-c", f"{program}; echo end"] if name == "run" else [str(program)]
        done = tool("record", "-q", "-o", f"{name}.bin", "--interface", "libc", *interface, "--", *command)
        assert done.out.startswith(b"2\n"), done.err
    build("libhelp.so", "int help(int n) { return n + 2; }", shared=True)
    assert tool("replay", "replaced.bin").out == b"2\n"
    replayed = tool("replay", "run.bin")
    assert (replayed.out, replayed.status) == (b"", 125)
    assert "/libhelp.so has changed since the recording" in replayed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--interface", "sqlite", "true"], "no interface of this name"),
        (["--interface", "bad.toml", "true"], "bad.toml: function f, key 'prototype'"),
        (
            ["--interface", "size.toml", "true"],
            "function f, key 'args.p': the expression 'n +' does not parse",
        ),
        (["--interface", "zlib", "./static"], "linked statically"),
        (["--interface", "zlib", "./missing"], "not found"),
        (["--interface", "zlib", "--chaos", "true"], "cannot go with --interface"),
    ],
)
def test_bad_input_gives_one_message(
    tool: Tool, build: Build, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "bad.toml").write_text('library = "libx.so"\n[function.f]\nprototype = "int f("\n')
    (tmp_path / "size.toml").write_text(
        'library = "libx.so"\n[function.f]\nprototype = "int f(void *p, int n)"\nargs = { p = "in[n +]" }\n'
    )
    if "./static" in arguments:
        build("static", "int main() { return 0; }", "-static")
    done = tool("record", *arguments)
    assert done.status in (125, 126, 127)
    assert message in done.err and "Traceback" not in done.err


def test_library_that_is_never_loaded(tool: Tool) -> None:
    done = tool("record", "-q", "-o", "t.bin", "--interface", "libpq", "true")
    assert "never loaded libpq.so.5" in done.err


def test_wrong_soname_is_told(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(
        'library = "libc.so.66"\n[function.getpid]\nprototype = "int getpid(void)"\n'
    )
    done = tool("record", "-q", "-o", "t.bin", "--interface", "x.toml", "true")
    assert "never loaded libc.so.66: nothing of the interface x was recorded" in done.err


def test_unknown_function_is_told(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(
        'library = "libc.so.6"\n[function.no_such]\nprototype = "int no_such(int a)"\n'
    )
    done = tool("record", "-q", "-o", "t.bin", "--interface", "x.toml", "true")
    assert "has no no_such" in done.err


def test_stubs_of_all_shipped_interfaces_compile(tool: Tool) -> None:
    options = [word for name in shipped() for word in ("--interface", name)]
    done = tool("record", "-q", "-o", "t.bin", *options, "true")
    assert done.status == 0, done.err
    assert "cannot be made" not in done.err


def test_attach_watches_and_leaves_the_process_alone(tool: Tool, build: Build) -> None:
    program = build(
        "loop",
        '#include <stdio.h>\n#include <zlib.h>\n#include <unistd.h>\nint main() { puts("up"); fflush(stdout);'
        ' for (;;) { crc32(0, (void *)"abc", 3); usleep(1000); } }',
        "-lz",
    )
    process = subprocess.Popen([str(program)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        done = tool("attach", str(process.pid), "--interface", "zlib", "--seconds", "0.5")
        assert b'crc32(crc=0, buf="abc", n=3) = 891568578' in done.out, done.err
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_x11_program_without_its_display(tool: Tool, build: Build) -> None:
    """Xlib's macros read the Display structure itself."""
    need(shutil.which("Xvfb"), "Xvfb")
    need(Path("/usr/include/X11/Xlib.h").exists(), "Xlib")
    program = build("window", (PROGRAMS / "window.c").read_text(), "-lX11")
    told, tell = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(tell), "-screen", "0", "640x480x24", "-nolisten", "tcp"],
        pass_fds=[tell],
        stderr=subprocess.DEVNULL,
    )
    os.close(tell)
    try:
        with os.fdopen(told) as numbers:
            display = numbers.readline().strip()
        recorded = tool(
            "record",
            "-q",
            "-o",
            "t.bin",
            "--interface",
            "x11",
            str(program),
            env_more={"DISPLAY": f":{display}"},
        )
    finally:
        server.terminate()
        server.wait()
    assert b"window" in recorded.out and recorded.status == 0, recorded.err
    same(tool, (recorded.out, 0))
