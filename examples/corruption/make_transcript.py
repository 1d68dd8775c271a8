"""Records the program, finds the guilty line in gdb, and writes what was typed and said to transcript.txt.

Addresses, thread ids and what gdb says of its surroundings differ from run to run and are left out or made
the same, so that two runs give the same text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "build" / "corrupt"
COMMANDS = [
    "continue",
    "print account->balance",
    "watch -location account->balance",
    "reverse-continue",
    "backtrace 2",
    "print name",
    "print i",
    "print account->balance",
    "info threads",
    "when",
]
RR_PY = [sys.executable, "-m", "rr_py"]


def main(target: Path = HERE / "transcript.txt") -> int:
    """Write the transcript; returns 1 when the guilty line was not found."""
    trace = HERE / "build" / "corrupt.bin"
    trace.unlink(missing_ok=True)
    paths = [str(HERE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [*RR_PY, "record", "-o", trace, PROGRAM], env=environment, capture_output=True, text=True
    )
    lines = [
        "$ rr-py record -o corrupt.bin build/corrupt",
        *done.stderr.splitlines(),
        "Segmentation fault",
        "",
    ]
    script = HERE / "build" / "commands.gdb"
    script.write_text("".join(f"echo (gdb) {command}\\n\n{command}\n" for command in COMMANDS))
    words = f"-nx -batch -iex 'set debuginfod enabled off' -iex 'set style enabled off' -x {script}"
    done = subprocess.run(
        [*RR_PY, "replay", "--gdb", "--debugger-args", words, trace],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    said = done.stdout.split("(gdb) continue", 1)[-1]
    lines += ["$ rr-py replay --gdb corrupt.bin", *("(gdb) continue" + said).splitlines()]
    text = cleaned("\n".join(lines))
    target.write_text(text + "\n")
    found = "the guilty line" in text.split("reverse-continue", 1)[-1]
    print(f"{target}: {'the guilty line was found' if found else 'NOT FOUND'}")
    return 0 if found else 1


def cleaned(text: str) -> str:
    """The text without what differs from run to run."""
    text = text.replace(f"{HERE}/", "")
    tids = sorted({int(word) for word in re.findall(r"Thread (\d+)", text)} - {1, 2, 3})
    for number, tid in enumerate(tids):
        text = re.sub(rf"\b{tid}\b", f"TID{number + 1}", text)
    text = re.sub(r"(recorded 1 process), .*; (replay with: rr-py replay).*", r"\1; \2 corrupt.bin", text)
    noise = re.compile(r"\[(New|Switching|Inferior)|warning:|\d+\t\.\.")
    kept = [line for line in text.splitlines() if not noise.match(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in kept)).strip()


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
