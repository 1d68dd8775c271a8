"""`interface check`: what a program takes from its environment past an interface, with stacks."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.library.conftest import PROGRAMS, Build, Tool


def groups(text: str) -> dict[str, list[str]]:
    """What escapes -> the lines of its stack."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith(" " * 11):
            current.append(line.strip())
        elif line[:9].strip().isdigit():
            current = found.setdefault(line[9:].strip(), [])
    return found


def test_every_way_past_the_interface_is_listed_with_its_stack(
    tool: Tool, build: Build, tmp_path: Path
) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"hello"))
    (tmp_path / "shared").write_bytes(bytes(4096))
    program = build("app", (PROGRAMS / "escapes.c").read_text(), "-lz")
    done = tool("interface", "check", "--interface", "zlib", "--", str(program))
    text = done.out.decode()
    assert "zlib: 1 function the program imports are not in the file: gzoffset" in text, done.err
    found = groups(text)
    by = {what.split("  ")[0]: (what, stack) for what, stack in found.items()}
    assert "(gzoffset is not in zlib)" in by["lseek"][0]
    assert any(line.startswith("main (app.c:") for line in by["lseek"][1])
    assert any(line.startswith("direct (app.c:") for line in by["getpid"][1])
    assert any("memory shared with others" in what for what in found)
    assert any("a file in memory" in what for what in found)
    assert any(line.startswith("maps (app.c:") for line in by["openat"][1])
    assert "time" in by
    assert not any("gzopen" in line or "gzread" in line for stack in found.values() for line in stack)


def test_an_interface_that_holds(tool: Tool, build: Build, tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"hello"))
    text = (
        "#include <zlib.h>\nint main() { char b[9];"
        ' gzFile g = gzopen("x.gz", "r"); return gzread(g, b, 9) != 5; }'
    )
    done = tool("interface", "check", "--interface", "zlib", "--", str(build("app", text, "-lz")))
    assert done.out.endswith(b"nothing escapes the interface\n"), (done.out, done.err)


def test_functions_that_the_linker_chooses_and_what_needs_no_interface(tool: Tool, build: Build) -> None:
    """GIVEN time() and gettimeofday(), which have no code of their names, an allocator that draws a number
    for itself, and a library that is loaded later WHEN checked at libc THEN none of them escapes."""
    text = """
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/time.h>
    #include <time.h>
    int main(void)
    {
        struct timeval t;
        void *p = malloc(100);
        gettimeofday(&t, 0);
        printf("%d %d %p\\n", time(0) > 0, t.tv_sec > 0, dlopen("libz.so.1", RTLD_NOW));
        free(p);
    }
    """
    done = tool("interface", "check", "--interface", "libc", "--", str(build("app", text)))
    assert done.out.endswith(b"nothing escapes the interface\n"), (done.out, done.err)


def test_what_other_processes_and_programs_do(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN a program whose child, and what that execs, make system calls by themselves WHEN checked THEN
    both are listed with their stacks."""
    last = "#include <unistd.h>\nint main(void) { return syscall(140, 0, 0) < 0; }"
    build("last", last)
    text = """
    #include <sys/wait.h>
    #include <unistd.h>
    static __attribute__((noinline)) long own(long number)
    {
        long result;
        __asm__ volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
        return result;
    }
    int main(void)
    {
        if (fork() == 0) {
            own(39);
            execl("./last", "last", (char *)0);
        }
        wait(0);
        return 0;
    }
    """
    program = build("app", text)
    done = tool("interface", "check", "--interface", "zlib", "--", str(program))
    text = done.out.decode()
    assert "3 processes and programs of theirs" in text, (text, done.err)
    found = groups(text)
    assert any(line.startswith("own (app.c:") for line in found["getpid  0 B"]), text
    assert any(
        "main (last.c:" in line for what in found if what.startswith("getpriority") for line in found[what]
    )
