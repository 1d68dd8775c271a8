"""Programs replayed at the C library alone, their files and children gone."""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.library.conftest import PROGRAMS, Build, Tool, both, same


@pytest.mark.parametrize(
    "command",
    [
        "date +%N",
        "ls -la d",
        "sort f",
        "wc f",
        "md5sum f",
        "tar cf - d",
        "dd if=f of=/dev/stdout bs=4",
        "bash -c 'echo $RANDOM; read -r a < f; echo $a; for i in 1 2; do echo $i; done'",
        "dash -c 'x=$(echo a; exit 3); echo $x $?; (echo sub; exit 4); echo $?'",
        "openssl rand -hex 8",
        "openssl genpkey -algorithm ed25519",
        "openssl enc -aes-256-cbc -pbkdf2 -k secret -in f -a",
        "bash -c 'echo a > g; echo hi there > g; echo b; printf %s c > g; echo d'",
        "perl -e 'print time, rand, qq(\\n); open F, q(f); print while <F>'",
    ],
)
def test_tools(tool: Tool, tmp_path: Path, command: str) -> None:
    (tmp_path / "f").write_text("b\na\nc\n" * 20)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "e").write_text("x")
    expected = both(tool, "libc", *shlex.split(command))
    assert expected[0] and expected[1] == 0
    (tmp_path / "f").unlink()
    (tmp_path / "d" / "e").unlink()
    same(tool, expected)


def test_streams_descriptors_and_tables(tool: Tool, build: Build, tmp_path: Path) -> None:
    """Macros and functions in turn, scanf, memory streams, copies of the output, files in memory, popen."""
    numbers = random.Random(1)
    lines = ["x" * 70, *(f"{i} word{i} {i / 7} abc {numbers.random()} Q" for i in range(3000))]
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    program = build("stdio", (PROGRAMS / "stdio.c").read_text())
    expected = both(tool, "libc", str(program), stdin=b"from stdin\ntwo\n")
    assert expected[1] == 5
    for text in (b"in memory 42", b"through a copy", b"from a child", b"from stdin", b"scanned 3: "):
        assert text in expected[0]
    assert b"not for the terminal" not in expected[0]
    for name in ("in", "out", "other"):
        (tmp_path / name).unlink()
    same(tool, expected)
    assert not (tmp_path / "out").exists()


def test_less_usual_functions(tool: Tool, build: Build, tmp_path: Path) -> None:
    """Walks, tables, hosts, times, wide streams, queues, short addresses, calls by number; a thread that
    waits when the program ends.
    """
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "a").write_text("alpha")
    (tmp_path / "d" / "sub" / "b").write_text("beta")
    (tmp_path / "mounts").write_text("disk /one ext4 rw 0 0\nother /two tmpfs rw 0 0\n")
    program = build("more", (PROGRAMS / "more.c").read_text(), "-pthread")
    native = subprocess.run([program], cwd=tmp_path, capture_output=True, check=False)
    assert native.returncode == 6
    (tmp_path / "socket-with-a-long-name").unlink()
    expected = both(tool, "libc", str(program))
    assert expected == (native.stdout, 6)
    for text in (b"a sub 2\n", b"d/sub/b 4 0 level 2", b"fts d/sub/b 8", b"other on /two", b"127.0.0.1 1"):
        assert text in native.stdout
    shutil.rmtree(tmp_path / "d")
    for name in ("mounts", "wide", "socket-with-a-long-name"):
        (tmp_path / name).unlink()
    same(tool, expected)
    assert not (tmp_path / "wide").exists()


def test_printf_and_its_relatives(tool: Tool, build: Build, tmp_path: Path) -> None:
    """Arguments in all registers and on the stack; results; the output's name leads to a file for a while."""
    program = build("prints", (PROGRAMS / "prints.c").read_text())
    native = subprocess.run([program, "2.75"], cwd=tmp_path, capture_output=True, check=False)
    written = (tmp_path / "printed").read_bytes()
    assert b"2.75 2 x  2.75 8.25 1.25 1099511627776 (nil) 45 45 2.750000" in native.stdout
    assert b"in the file 19 2.750000 words 7\n" in written and native.stderr == b"error 12 2.750e+00\n"
    (tmp_path / "printed").unlink()
    expected = both(tool, "libc", str(program), "2.75")
    assert expected == (native.stdout, native.returncode)
    assert (tmp_path / "printed").read_bytes() == written
    (tmp_path / "printed").unlink()
    replayed = tool("replay", "t.bin")
    assert (replayed.out, replayed.status) == expected, replayed.err
    assert replayed.err.encode() == native.stderr and not (tmp_path / "printed").exists()


def test_a_stream_at_the_end_of_memory(tool: Tool, build: Build, tmp_path: Path) -> None:
    """What the library gives back is looked at as far as it reaches, and no byte further."""
    text = (
        "#include <malloc.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "int main() { mallopt(M_TOP_PAD, 0); void *p = 0; for (int i = 0; i < 400; i++) "
        '{ FILE *f = fopen("f", "r"); if (!f) return 1; if (fgetc(f) != 65) return 2; p = f; } puts("ok"); }'
    )
    (tmp_path / "f").write_text("A")
    program = build("ends", text)
    expected = both(tool, "libc", str(program))
    assert expected == (b"ok\n", 0)
    (tmp_path / "f").unlink()
    same(tool, expected)


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_library_loaded_late(tool: Tool, build: Build, tmp_path: Path, binding: str) -> None:
    """Its calls are seen, and those of functions looked up by name, whatever Frida makes of the functions."""
    text = (PROGRAMS / "late.c").read_text()
    library = build("late.so", text, "-DLIBRARY", f"-Wl,-z,{binding}", shared=True)
    expected = both(tool, "libc", str(build("late", text)), str(library), stdin=b"x")
    assert b"(late) R" in expected[0] and expected[1] == 0
    same(tool, expected)


def test_instructions(tool: Tool, build: Build) -> None:
    """RDTSC, RDTSCP, RDRAND and RDSEED in any width, in threads, with signals; not in constants."""
    flags = Path("/proc/cpuinfo").read_text().split()
    program = build(
        "instructions", (PROGRAMS / "instructions.c").read_text(), "-mrdrnd", "-mrdseed", "-pthread"
    )
    expected = both(tool, "libc", str(program), *(name for name in ("rdrand", "rdseed") if name in flags))
    assert expected[0].endswith(b"constant 310f\n") and expected[1] == 0
    same(tool, expected)


def test_text_that_is_given_back(tool: Tool, build: Build) -> None:
    """gettext without a translation returns its parameter, and programs look whether it did."""
    text = r"""
    #include <libintl.h>
    #include <stdio.h>
    int main(void) { static char word[] = "word"; puts(gettext(word) == word ? "same" : "other"); return 0; }
    """
    expected = both(tool, "libc", str(build("given", text)))
    assert expected == (b"same\n", 0)
    same(tool, expected)


def test_addresses(tool: Tool, build: Build, tmp_path: Path) -> None:
    """Memory of the program lies where it lay, though replay lacks what the C library allocated."""
    (tmp_path / "in").write_text("word " * 300 + "\nb\n" * 100)
    expected = both(tool, "libc", str(build("heap", (PROGRAMS / "heap.c").read_text())), "in")
    assert expected[1] == 0 and expected[0].count(b"0x") >= 7
    (tmp_path / "in").unlink()
    same(tool, expected)


def test_addresses_of_objects(tool: Tool) -> None:
    script = (
        "import os; os.listdir(); print(object(), [hash(object()) for _ in range(9)], open('/etc/passwd'))"
    )
    expected = both(tool, "libc", "/usr/bin/python3", "-c", script)
    assert b"<object object at 0x" in expected[0]
    same(tool, expected)
