"""Functions of the program itself as the replay interface."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from interfaces.libspec import SpecError, load_all
from recorder import RecordOptions
from recorder.repeat import Repeat
from rr_py.internal import Found
from rr_py.suggesting import system_run
from tests.library.conftest import PROGRAMS, ROOT, Build, Tool, same

REPORT = (ROOT / "examples" / "internal_interface" / "report.c").read_text()
INTERFACE = """
use = ["libc"]
program = "report"
types = "typedef struct summary summary;"
[function.load_total]
prototype = "int load_total(const char *path, summary *out)"
symbol = "load_total"
args = { out = "data" }
outputs = ["bytes: (char *)out | 24"]
"""


def numbers(folder: Path, count: int = 100000) -> Path:
    """A file with a number on each line."""
    path = folder / "numbers.txt"
    path.write_text("".join(f"{n}\n" for n in range(count)))
    return path


def test_a_static_function_of_the_program(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN an interface at a function that is not exported WHEN the file is gone THEN it replays."""
    program = build("report", REPORT)
    data = numbers(tmp_path)
    (tmp_path / "report.toml").write_text(INTERFACE)
    options = ["-q", "-o", "t.bin", "--interface", "report.toml"]
    recorded = tool("record", *options, str(program), str(data), "no")
    assert recorded.status == 1 and b"100000 lines" in recorded.out, recorded.err
    data.unlink()
    same(tool, (recorded.out, 1))
    dumped = tool("dump", "t.bin").out.decode()
    assert dumped.count("load_total(") == 2 and "fgets" not in dumped


def test_memory_that_is_said_to_be_kept(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN an interface that says a structure is left alone WHEN it is not THEN the recorder says so."""
    program = build("report", REPORT)
    data = numbers(tmp_path, 10)
    kept = INTERFACE.replace("bytes: (char *)out | 24", "kept: (char *)out + 8 | 8")
    (tmp_path / "report.toml").write_text(kept)
    broken = "load_total changed memory that its interface says it leaves alone"
    recorded = tool("record", "-o", "t.bin", "--interface", "report.toml", str(program), "no")
    assert broken not in recorded.err, recorded.err
    recorded = tool("record", "-o", "u.bin", "--interface", "report.toml", str(program), str(data))
    assert broken in recorded.err, recorded.err


def test_a_name_that_several_functions_have(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN two files with a static function of one name THEN the recorder does not choose between them."""
    (tmp_path / "other.c").write_text(
        "#include <stdlib.h>\n"
        "static __attribute__((noinline)) int load_total(const char *p) { return atoi(p); }\n"
        "int other(const char *p);\nint other(const char *p) { return load_total(p); }\n"
    )
    program = build("report", REPORT, str(tmp_path / "other.c"))
    (tmp_path / "report.toml").write_text(INTERFACE)
    recorded = tool("record", "-o", "t.bin", "--interface", "report.toml", str(program), "no")
    assert recorded.out == b"no: cannot be read\n"
    assert "several functions have this name" in recorded.err, recorded.err


def test_mistakes(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(INTERFACE.replace('"report"', '"./report"'))
    with pytest.raises(SpecError, match=r"'\./report' is no"):
        load_all([str(tmp_path / "a.toml")])
    (tmp_path / "b.toml").write_text(INTERFACE)
    assert [item.name for item in load_all([str(tmp_path / "b.toml")])] == ["libc", "b"]


def test_what_lies_beneath_a_function_of_the_program_crosses(
    tool: Tool, build: Build, tmp_path: Path
) -> None:
    """GIVEN an interface at an internal function alone WHEN checked THEN what it reads does not escape."""
    program = build("report", REPORT)
    data = numbers(tmp_path, 10)
    (tmp_path / "report.toml").write_text(INTERFACE.replace('use = ["libc"]', ""))
    checked = tool("interface", "check", "--interface", "report.toml", "--", str(program), str(data))
    out = checked.out.decode()
    assert "system calls beneath the interface" in out and "  read  " not in out, (out, checked.err)


# ---- functions of the program that the chooser finds ----

CAN_BE_CUT = {
    "plain": "int plain(const char *p)",
    "fills": 'outputs = ["bytes: (char *)c + 8 | 24", "bytes: (char *)c + 40 | 16", '
    '"kept: (char *)c + 0 | 8", "kept: (char *)c + 32 | 8"]',
    "cached": "int cached(const char *p)",
    "dups": 'returns = "malloc string"',
    "constant": 'returns = "string"',
    "reads": 'args = { p = "string", to = "out[n]" }',
    "array": 'args = { p = "string", to = "out[n]" }',
    "opens": "int opens(const char *p)",
    "flt": "double flt(const char *p, double by, float *out)",
    "err": "int err(const char *p)",
    "big_": 'outputs = ["bytes: (char *)b + 0 | 102"]',
    "nonconst": 'outputs = ["kept: p | strlen((const char *)p) + 1"]',
}
CANNOT = {
    "stores": "keeps memory that it allocated",
    "counts": "changes the variable counter",
    "lists": "changes its caller's variables",
    "prints": "changes an object on the heap",
    "opened": "keeps memory that it allocated",
    "usesfile": "keeps memory that it allocated",
    "allocs": "keeps memory that it allocated",
    "cachefile": "changes the variable file_cache",
    "callback": "takes f: a function of the program",
    "envs": "keeps memory that it allocated",
    "frees": "frees or moves memory of the program",
    "inbuf": "changes its caller's variables",
    "threads_own": "changes memory of the program",
    "maps": "leaves memory mapped",
    "jumps": "is left by a jump",
    "many": "has parameters on the stack",
    "pairs": "passes a structure by value",
    "raws": "makes system calls by its own instructions",
    "dots": "takes any number of parameters",
}


FRAMES = "-fno-optimize-sibling-calls"


@pytest.fixture(
    params=[
        "-O0",
        "-O1",
        f"-O2 {FRAMES}",
        f"-Os {FRAMES}",
        "-fno-pie -no-pie",
        f"-fcf-protection=full -O2 {FRAMES}",
    ]
)
def kinds(request: pytest.FixtureRequest, build: Build, tmp_path: Path) -> tuple[Path, Found]:
    """The program with functions of all kinds, compiled in several ways, and what is found in it."""
    program = build("kinds", (PROGRAMS / "kinds.c").read_text(), *str(request.param).split())
    options = RecordOptions(command=[str(program), str(tmp_path / "kinds.c")])
    return program, system_run(options, Repeat()).own


def test_which_functions_can_be_cut(kinds: tuple[Path, Found], tool: Tool, tmp_path: Path) -> None:
    """GIVEN functions with effects of all kinds WHEN they are watched THEN those that the types state can be
    cut, the others cannot, and a recording at all of them replays without what they read."""
    program, own = kinds
    stated = own.statements()
    assert set(stated) >= CAN_BE_CUT.keys()
    for name, text in CAN_BE_CUT.items():
        assert text in stated[name].text().replace('\\"', '"'), stated[name].text()
    for name, reason in CANNOT.items():
        assert reason in own.refused.get(name, ""), (name, own.refused.get(name), name in stated)
    (tmp_path / "all.toml").write_text('use = ["libc"]\n' + own.text(stated.keys()))
    source = tmp_path / "kinds.c"
    recorded = tool("record", "-o", "t.bin", "--interface", "all.toml", str(program), str(source))
    assert "is not recorded" not in recorded.err, recorded.err
    source.unlink()
    same(tool, (recorded.out, recorded.status))


def test_suggest_cuts_inside_the_program(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN a program with debug information that reads megabytes for three numbers WHEN asked for the
    cheapest interface THEN it is at the function that reads, and the log a hundred times smaller."""
    program = build("report", REPORT)
    data = tmp_path / "numbers.txt"
    generator = random.Random(7)
    data.write_text("".join(f"{generator.randrange(10**9)}\n" for _ in range(300000)))
    done = tool("interface", "suggest", "-o", "app.toml", "--", str(program), str(data))
    text = done.out.decode()
    assert "load_total (report)  can be cut" in text, (text, done.err)
    assert "suggested: --interface libc and at load_total of the program" in text, (text, done.err)
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "app.toml", str(program), str(data))
    tool("record", "-q", "-o", "s.bin", str(program), str(data))
    tool("record", "-q", "-o", "l.bin", "--interface", "libc", str(program), str(data))
    least = min((tmp_path / name).stat().st_size for name in ("s.bin", "l.bin"))
    assert (tmp_path / "t.bin").stat().st_size * 100 < least
    data.unlink()
    same(tool, (recorded.out, 0))


@pytest.mark.parametrize("how", [["-g0"], ["-g0", "-s"], ["-g1"], ["-gsplit-dwarf"]])
def test_without_debug_information(how: list[str], tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN no debug information, or no symbols WHEN asked THEN the cut is at libraries or system calls."""
    program = build("report", REPORT, *how)
    data = numbers(tmp_path, 1000)
    done = tool("interface", "suggest", "-o", "app.toml", "--", str(program), str(data))
    text = done.out.decode()
    assert "suggested:" in text and "of the program" not in text and "can be cut" not in text, (
        text,
        done.err,
    )


def test_several_runs_together(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN a function that changes a variable only where a file is missing WHEN one run shows that THEN it
    cannot be cut, though the other run alone would say so."""
    text = REPORT.replace("\treturn -1;", "\treturn missing++, -1;").replace(
        "struct summary {", "int missing;\nstruct summary {", 1
    )
    text = text.replace("return failed;", "return failed + missing;")
    program = build("report", text)
    data = numbers(tmp_path, 20000)
    alone = tool("interface", "suggest", "--no-measure", "--", str(program), str(data)).out.decode()
    assert "load_total (report)  can be cut" in alone, alone
    done = tool("interface", "suggest", "--no-measure", "--also", "no such", "--", str(program), str(data))
    both = done.out.decode()
    assert "load_total (report)  changes the variable missing" in both, (both, done.err)
    bad = tool("interface", "suggest", "--also", '"no', "--", str(program), str(data))
    assert bad.status == 125 and "--also" in bad.err, bad.err


LATE = """
#include <stdio.h>
#include <stdlib.h>
int late;
static __attribute__((noinline)) int reads(const char *path)
{
	static int calls;
	char line[64];
	int sum = 0;
	FILE *file = fopen(path, "r");
	while (fgets(line, sizeof(line), file))
		sum += atoi(line);
	fclose(file);
	if (++calls > 15)
		late = sum;
	return sum;
}
int main(int count, char **words)
{
	int sum = 0;
	for (int i = 0; i < 20; i++)
		sum += reads(words[1]);
	printf("%d %d\\n", sum, late);
}
"""


def test_a_cut_that_does_not_replay_is_not_suggested(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN a function that changes a variable after more calls than are watched WHEN asked for the
    cheapest interface THEN the recording there does not replay, and another one is suggested."""
    program = build("late", LATE)
    data = numbers(tmp_path, 3000)
    done = tool("interface", "suggest", "-o", "app.toml", "--", str(program), str(data))
    assert "a recording at reads does not replay: its output differs" in done.err, (done.out, done.err)
    text = done.out.decode()
    assert "suggested:" in text and "of the program" not in text, text


def test_input_is_there_again_in_each_run(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN a program that adds up what it reads from a pipe WHEN run several times THEN each reads all."""
    program = build("report", REPORT)
    numbers(tmp_path, 20000)
    done = tool(
        "interface",
        "suggest",
        "-o",
        "app.toml",
        "--",
        str(program),
        "/dev/stdin",
        stdin=(tmp_path / "numbers.txt").read_bytes(),
    )
    assert done.out.count(b"20000 lines, total 199990000") == 2, (done.out, done.err)
    assert b"suggested: --interface libc and at load_total" in done.out, done.err


def test_a_program_that_uses_up_its_input(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN a program that removes the file it reads WHEN run several times THEN it is said so."""
    text = REPORT.replace("fclose(file);", "fclose(file);\n\tremove(path);")
    program = build("report", text)
    data = numbers(tmp_path, 10)
    done = tool("interface", "suggest", "--", str(program), str(data))
    assert done.status == 125 and "first it exited with 0, then it exited with 1" in done.err, done.err


def test_a_script_that_puts_a_file_in_place(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN a program that removes what it reads, run by a script that makes it again WHEN asked for the
    cheapest interface THEN an answer is given, and what it writes records and replays."""
    program = build("report", REPORT.replace("fclose(file);", "fclose(file);\n\tremove(path);"))
    numbers(tmp_path, 5000)
    (tmp_path / "s.sh").write_text(f"cp numbers.txt in.txt; exec {program} in.txt\n")
    done = tool("interface", "suggest", "-o", "app.toml", "--", "sh", "s.sh")
    assert done.status == 0 and b"suggested:" in done.out, (done.out, done.err)
    assert "does not replay" not in done.err, done.err
    if (tmp_path / "app.toml").exists():
        recorded = tool("record", "-q", "-o", "t.bin", "--interface", "app.toml", "--", "sh", "s.sh")
        same(tool, (recorded.out, recorded.status))


def test_separate_debug_information(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a program whose debug information stands in another file, found by build id WHEN watched THEN
    its function can be cut."""
    program = build("report", REPORT, "-Wl,--build-id")
    data = numbers(tmp_path, 5000)
    notes = subprocess.run(["readelf", "-n", program], check=True, capture_output=True, text=True).stdout
    identity = next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line)
    target = tmp_path / "debug" / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    target.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, target], check=True)
    subprocess.run(["strip", "--strip-debug", program], check=True)
    options = RecordOptions(command=[str(program), str(data)])
    assert not system_run(options, Repeat()).own.statements()
    monkeypatch.setattr("replayer.prototypes.DEBUG_FOLDERS", (str(tmp_path / "debug"),))
    assert "load_total" in system_run(options, Repeat()).own.statements()


def test_a_function_of_a_library_without_an_interface(tool: Tool, build: Build, tmp_path: Path) -> None:
    """GIVEN a library of one's own with debug information WHEN asked for the cheapest interface THEN it
    is at its function, and what is written needs no debug information."""
    library, main = REPORT.split("int main(")
    library = library.replace(
        "static __attribute__((noinline)) int", "int load_total(const char *, struct summary *);\nint"
    )
    build("libtotal.so", library, shared=True)
    head = library[: library.index("/* The sum")] + "int load_total(const char *path, struct summary *out);\n"
    options = [str(tmp_path / "libtotal.so"), f"-Wl,-rpath,{tmp_path}"]
    program = build("report", f"{head}int main({main}", *options)
    data = numbers(tmp_path, 50000)
    done = tool("interface", "suggest", "-o", "app.toml", "--", str(program), str(data))
    assert b"load_total (libtotal.so)  can be cut" in done.out, (done.out, done.err)
    subprocess.run(["strip", "--strip-debug", tmp_path / "libtotal.so", program], check=True)
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "app.toml", str(program), str(data))
    data.unlink()
    same(tool, (recorded.out, 0))
    assert "load_total(" in tool("dump", "t.bin").out.decode()
