"""Real programs recorded at a library's functions and replayed with what the library used gone."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from interfaces.libspec import shipped
from tests.library.conftest import Build, Tool


def both(tool: Tool, interfaces: str, *command: str) -> tuple[bytes, int]:
    """Record; returns what the program printed and its status."""
    options = [word for name in interfaces.split(",") for word in ("--interface", name)]
    recorded = tool("record", "-q", "-o", "t.bin", *options, "--", *command)
    assert "Traceback" not in recorded.err, recorded.err
    return recorded.out, recorded.status


def same(tool: Tool, expected: tuple[bytes, int]) -> None:
    replayed = tool("replay", "t.bin")
    assert (replayed.out, replayed.status) == expected, replayed.err


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="needs the sqlite3 shell")
def test_sqlite_shell_without_its_database(tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as db:
        db.execute("create table t(a, b, c)")
        db.executemany("insert into t values (?, ?, ?)", [(i, f"n{i}", i / 3) for i in range(500)])
    db.close()
    query = "select *, upper(b) from t; select count(*), sum(c) from t; select * from missing"
    expected = both(tool, "sqlite3,libc", "sqlite3", "-init", "/dev/null", str(path), query)
    assert b"N499" in expected[0]
    path.unlink()
    same(tool, expected)


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


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs the system's Python")
def test_python_script_with_zlib_and_sqlite(tool: Tool, tmp_path: Path) -> None:
    """dlopen'ed libraries, and callbacks that call the library again."""
    with sqlite3.connect(tmp_path / "p.db") as db:
        db.execute("create table t(a, b)")
        db.executemany("insert into t values (?, ?)", [(1, b"x"), (2, None), (3, "drei")])
    db.close()
    expected = both(tool, "zlib,sqlite3", "/usr/bin/python3", "-c", PYTHON)
    assert b"(6,)" in expected[0]
    (tmp_path / "p.db").unlink()
    same(tool, expected)


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_curl_without_its_server(tool: Tool, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    "command", [["date", "+%N"], ["cat", "f"], ["ls", "-l", "."], ["md5sum", "f"], ["sort", "f"]]
)
def test_small_tools_at_the_c_library(tool: Tool, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "f").write_text("b\na\nc\n" * 20)
    expected = both(tool, "libc", *command)
    assert expected[0] and expected[1] == 0
    (tmp_path / "f").unlink()
    same(tool, expected)


THREADS = """
#include <pthread.h>
#include <stdio.h>
#include <zlib.h>
pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER; unsigned long h = 1; int n;
void *run(void *a) {
  for (int i = 0; i < 100; i++) {
    unsigned long x = crc32(0, (void *)&i, 4);
    pthread_mutex_lock(&m); h = h * 31 + x + (long)a; if (++n == 150) pthread_cond_signal(&c); pthread_mutex_unlock(&m);
  }
  return a;
}
int main() {
  pthread_t t[2];
  for (long i = 0; i < 2; i++) pthread_create(t + i, 0, run, (void *)(i + 1));
  pthread_mutex_lock(&m); while (n < 150) pthread_cond_wait(&c, &m); printf("%lu\\n", h); pthread_mutex_unlock(&m);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  printf("%lu\\n", h);
}
"""


def test_two_threads_call_in_at_once(tool: Tool, build: Build) -> None:
    program = build("threads", THREADS, "-lz", "-lpthread")
    expected = both(tool, "zlib", str(program))
    same(tool, expected)


LIBRARY = """
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct thing { int n; char name[32]; };
struct thing *thing_new(const char *name) { struct thing *t = malloc(sizeof *t); t->n = rand() + getenv("SEED")[0];
  strcpy(t->name, name); return t; }
const char *thing_name(struct thing *t) { return t->name; }
int thing_fill(struct thing *t, unsigned char *to, int n) { for (int i = 0; i < n / 2; i++) to[i] = t->n + i; return n / 2; }
double thing_half(struct thing *t, float by) { return t->n * 0.5 + by; }
int thing_many(int a, int b, int c, int d, int e, int f, int g, double h, int *sum) { *sum = a + b + c + d + e + f + g + (int)h; return g; }
int thing_print(struct thing *t, char *to, const char *format, ...) { va_list l; va_start(l, format);
  int n = vsprintf(to, format, l); va_end(l); return n + t->n % 2; }
int thing_vprint(struct thing *t, char *to, const char *format, va_list l) { return vsprintf(to, format, l) + t->n % 2; }
int thing_each(struct thing *t, int (*f)(void *, int, const char *), void *data) { int sum = 0;
  for (int i = 0; i < 3; i++) sum += f(data, i + t->n % 7, t->name); return sum; }
int thing_tiny(struct thing *t) { return t->n; }
int thing_big(unsigned char *to, int n) { memset(to, n, n); return n; }
"""

SPEC = """
library = "libthing.so"
types = "typedef struct thing thing;"
handles = ["thing"]
[callback.each]
prototype = "int each(void *data, int n, const char *name)"
args = { data = "data" }
[function]
thing_new = { prototype = "thing *thing_new(const char *name)" }
thing_name = { prototype = "const char *thing_name(thing *t)" }
thing_fill = { prototype = "int thing_fill(thing *t, unsigned char *to, int n)", args = { to = "out[result]" } }
thing_half = { prototype = "double thing_half(thing *t, float by)" }
thing_many = { prototype = "int thing_many(int a, int b, int c, int d, int e, int f, int g, double h, int *sum)" }
thing_print = { prototype = "int thing_print(thing *t, char *to, const char *format, ...)", variadic = "thing_vprint", args = { to = "out[strlen(to) + 1]" } }
thing_each = { prototype = "int thing_each(thing *t, int (*f)(void *, int, const char *), void *data)", args = { f = "callback each", data = "data" } }
thing_tiny = { prototype = "int thing_tiny(thing *t)" }
thing_big = { prototype = "int thing_big(unsigned char *to, int n)", args = { to = "out[n]" } }
"""

USER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct thing; struct thing *thing_new(const char *); const char *thing_name(struct thing *);
int thing_fill(struct thing *, unsigned char *, int); double thing_half(struct thing *, float);
int thing_many(int, int, int, int, int, int, int, double, int *); int thing_print(struct thing *, char *, const char *, ...);
int thing_each(struct thing *, int (*)(void *, int, const char *), void *); int thing_tiny(struct thing *);
int thing_big(unsigned char *, int);
int each(void *data, int n, const char *name) { char *p = data; printf("%d %s %s\\n", n, name, p); return n * strlen(p); }
int main(int argc, char **argv) {
  struct thing *t = thing_new(argc > 1 ? argv[1] : "one"); unsigned char b[16]; char text[99]; int sum;
  printf("%s %d %f\\n", thing_name(t), thing_tiny(t), thing_half(t, 1.25f));
  printf("%d %d\\n", thing_fill(t, b, 16), b[7]);
  printf("%d", thing_many(1, 2, 3, 4, 5, 6, 7, 8.0, &sum)); printf(" %d\\n", sum);
  printf("%d %s\\n", thing_print(t, text, "%d %.2f %s", 3, 2.5, "x"), text);
  char *data = malloc(8); strcpy(data, "data"); printf("%d\\n", thing_each(t, each, data));
  int n = 3000000; unsigned char *big = malloc(n); thing_big(big, n); unsigned h = 0; for (int i = 0; i < n; i++) h = h * 31 + big[i];
  printf("%u\\n", h);
  if (getenv("MORE")) thing_fill(t, b, 8);
  return 3;
}
"""


def test_own_library_with_everything(tool: Tool, build: Build, tmp_path: Path) -> None:
    """Callbacks with the program's data, variadic calls, floating values, ten arguments, three megabytes."""
    build("libthing.so", LIBRARY, shared=True)
    program = build("user", USER, str(tmp_path / "libthing.so"), f"-Wl,-rpath,{tmp_path}")
    (tmp_path / "thing.toml").write_text(SPEC)
    recorded = tool(
        "record", "-q", "-o", "t.bin", "--interface", "thing.toml", str(program), env_more={"SEED": "A"}
    )
    assert recorded.status == 3, recorded.err
    replayed = tool("replay", "t.bin")
    assert (replayed.out, replayed.status) == (recorded.out, 3), replayed.err


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--interface", "sqlite", "true"], "no interface of this name"),
        (["--interface", "bad.toml", "true"], "bad.toml: function f, key 'prototype'"),
        (["--interface", "zlib", "./static"], "linked statically"),
        (["--interface", "zlib", "./missing"], "not found"),
        (["--interface", "zlib", "--chaos", "true"], "cannot go with --interface"),
    ],
)
def test_bad_input_gives_one_message(
    tool: Tool, build: Build, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "bad.toml").write_text('library = "libx.so"\n[function.f]\nprototype = "int f("\n')
    if "./static" in arguments:
        build("static", "int main() { return 0; }", "-static")
    done = tool("record", *arguments)
    assert done.status in (125, 126, 127)
    assert message in done.err and "Traceback" not in done.err


def test_library_that_is_never_loaded(tool: Tool) -> None:
    done = tool("record", "-q", "-o", "t.bin", "--interface", "libpq", "true")
    assert "never loaded libpq.so.5" in done.err


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


def test_check_lists_what_escapes(tool: Tool, build: Build, tmp_path: Path) -> None:
    program = build(
        "app",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n#include <zlib.h>\n"
        "int main() { char *e = getenv(\"HOME\"); return crc32(0, (void *)e, 1) == time(0); }",
        "-lz",
    )
    done = tool("interface", "check", "--interface", "zlib", "--", str(program))
    assert b"getenv" in done.out and b"time" in done.out and b"crc32" not in done.out, done.err


def test_suggest_cuts_where_least_flows(tool: Tool, build: Build, tmp_path: Path) -> None:
    """A library reads three megabytes and hands over one number."""
    pytest.importorskip("networkx")
    (tmp_path / "data.gz").write_bytes(gzip.compress(os.urandom(3000000), 1))
    program = build(
        "app",
        "#include <stdio.h>\n#include <zlib.h>\n#include <unistd.h>\nint main() { gzFile f = gzopen(\"data.gz\", \"r\");"
        " for (int i = 0; i < 47; i++) gzseek(f, 60000, SEEK_CUR); char c; gzread(f, &c, 1); printf(\"%ld %d\\n\", (long)gztell(f), getpid() > 0);"
        " gzclose(f); }",
        "-lz",
    )
    done = tool("interface", "suggest", "-o", "app.toml", "--svg", "app.svg", "--", str(program))
    assert b"suggested: --interface libc --interface zlib" in done.out, done.err
    assert "<svg" in (tmp_path / "app.svg").read_text()
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "app.toml", str(program))
    assert (tmp_path / "t.bin").stat().st_size < 100000
    (tmp_path / "data.gz").unlink()
    same(tool, (recorded.out, recorded.status))


def test_attach_watches_and_leaves_the_process_alone(tool: Tool, build: Build) -> None:
    program = build(
        "loop",
        "#include <stdio.h>\n#include <zlib.h>\n#include <unistd.h>\nint main() { puts(\"up\"); fflush(stdout);"
        " for (;;) { crc32(0, (void *)\"abc\", 3); usleep(1000); } }",
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
