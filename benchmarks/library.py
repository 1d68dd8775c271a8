"""What a recorded library call costs, beside an empty hook of Frida's: `python -m benchmarks.library`.

One program calls a small function many times and prints the processor time a call took: as it is, with an
empty CModule hook (enter and leave), and recorded at an interface. They take turns; medians are printed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CALLS = 1_000_000
ROUNDS = 5
LIMIT_NS = 400
"""A recorded call may cost so much more than one with an empty hook."""

LIBRARY = """
unsigned step(unsigned a, unsigned b);
unsigned step(unsigned a, unsigned b) { for (int i = 0; i < 4; i++) a = a * 31 + b; return a; }
int fill(unsigned char *to, int n);
int fill(unsigned char *to, int n) { for (int i = 0; i < n; i++) to[i] = i; return n; }
"""
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
unsigned step(unsigned, unsigned); int fill(unsigned char *, int);
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}
int main(int count, char **words)
{
	int calls = atoi(words[1]);
	unsigned x = 1;
	unsigned char b[64];
	puts("ready"); fflush(stdout);
	if (count > 2) getchar();
	double a = now();
	for (int i = 0; i < calls; i++) x = step(x, i);
	double c = now();
	for (int i = 0; i < calls; i++) x += fill(b, 64);
	double d = now();
	printf("%.2f %.2f %u\\n", (c - a) / calls, (d - c) / calls, x);
}
"""
INTERFACE = """
library = "libstep.so"
[function]
step = { prototype = "unsigned step(unsigned a, unsigned b)" }
fill = { prototype = "int fill(unsigned char *to, int n)", args = { to = "out[result]" } }
"""
HOOK = """
const hook = new CModule('void onEnter(void *c) {} void onLeave(void *c) {}');
for (const name of ['step', 'fill']) Interceptor.attach(Module.getGlobalExportByName(name), hook);
Interceptor.flush();
"""


def main() -> int:
    """Measure, print a table, and fail where a recorded call costs too much."""
    with tempfile.TemporaryDirectory(prefix="rr-py-bench-") as name:
        folder = Path(name)
        program = build(folder)
        rows: dict[str, list[tuple[float, float]]] = {"native": [], "empty hook": [], "recorded": []}
        for number in range(ROUNDS):
            rows["native"].append(native(program))
            rows["empty hook"].append(hooked(program))
            rows["recorded"].append(recorded(program, folder, number))
    found = {key: tuple(statistics.median(column) for column in zip(*rows[key], strict=True)) for key in rows}
    print(f"{'ns of processor time a call':28}  {'two numbers':>12}  {'64 bytes out':>12}")
    for key, values in found.items():
        print(f"{key:28}  {values[0]:12.0f}  {values[1]:12.0f}")
    above = [found["recorded"][i] - found["empty hook"][i] for i in (0, 1)]
    print(f"{'recorded above empty hook':28}  {above[0]:12.0f}  {above[1]:12.0f}")
    return int(max(above) > LIMIT_NS)


def build(folder: Path) -> Path:
    """The library, the program and the interface file."""
    (folder / "step.c").write_text(LIBRARY)
    (folder / "app.c").write_text(PROGRAM)
    (folder / "step.toml").write_text(INTERFACE)
    library = ["gcc", "-O1", "-shared", "-fPIC", "-Wl,-soname,libstep.so", "-o", "libstep.so", "step.c"]
    subprocess.run(library, cwd=folder, check=True)
    subprocess.run(
        ["gcc", "-O1", "-o", "app", "app.c", "./libstep.so", f"-Wl,-rpath,{folder}"], cwd=folder, check=True
    )
    return folder / "app"


def _figures(text: str) -> tuple[float, float]:
    first, second, _ = text.splitlines()[-1].split()
    return float(first), float(second)


def native(program: Path) -> tuple[float, float]:
    """As it is."""
    done = subprocess.run([program, str(CALLS)], capture_output=True, text=True, check=True)
    return _figures(done.stdout)


def hooked(program: Path) -> tuple[float, float]:
    """With Frida's own hooks that do nothing."""
    import frida

    command = [str(program), str(CALLS), "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        session = frida.get_local_device().attach(process.pid)
        script = session.create_script(HOOK)
        script.load()
        return _figures(process.communicate("\n")[0])


def recorded(program: Path, folder: Path, number: int) -> tuple[float, float]:
    """At the interface, into a trace."""
    trace = folder / f"{number}.bin"
    words = ["record", "-q", "-o", str(trace), "--interface", str(folder / "step.toml")]
    command = [sys.executable, "-m", "rr_py", *words, str(program), str(CALLS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    trace.unlink()
    return _figures(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
