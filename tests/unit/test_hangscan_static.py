"""Static search: Python code by its syntax trees, ELF programs by their call graphs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hangscan import Options
from hangscan.errors import ScanError
from hangscan.static import Found, search
from hangscan.static.report import render

CompileC = Callable[..., Path]
OPTIONS = Options()


def look(tmp_path: Path, **files: str) -> list[tuple[str, str, str]]:
    """(function, call, way) of the hang points in a package."""
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    return points(search([tmp_path], OPTIONS))


def points(found: Found) -> list[tuple[str, str, str]]:
    return [
        (one.place.function, one.call, " > ".join(step.function for step in one.path)) for one in found.points
    ]


def test_a_coroutine_that_blocks_through_helpers_of_other_modules(tmp_path: Path) -> None:
    # GIVEN a coroutine, a helper in another module, and a method
    found = look(
        tmp_path,
        app="from helper import load\nasync def handler():\n    return load('x')\n",
        helper="import time\nclass Store:\n    def read(self):\n        return self.slow()\n"
        "    def slow(self):\n        time.sleep(1)\ndef load(name):\n    return Store().read()\n",
        other="import time\ndef unused():\n    time.sleep(1)\n",
    )
    # THEN the sleep is found where a handler reaches it, not where none does
    assert found == [("Store.slow", "time.sleep", "handler > load > Store.read > Store.slow")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import time\nasync def f():\n    time.sleep(1)\n", ["time.sleep"]),
        ("from time import sleep as s\nasync def f():\n    s(1)\n", ["time.sleep"]),
        ("import os.path\nasync def f():\n    os.path.exists('x')\n", ["os.path.exists"]),
        ("async def f():\n    with open('x') as g:\n        pass\n", ["open"]),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(1)\n", []),
        ("import asyncio, time\nasync def f():\n    await asyncio.to_thread(time.sleep, 1)\n", []),
        ("import time\ndef f():\n    time.sleep(1)\n", []),
        (
            "import sqlite3\ndb = sqlite3.connect('x')\nasync def f():\n    db.commit()\n",
            ["sqlite3.connect().commit"],
        ),
        (
            "from pathlib import Path\nasync def f(x):\n    Path(x).read_text()\n",
            ["pathlib.Path().read_text"],
        ),
        (
            "import subprocess\nasync def f():\n    p = subprocess.Popen(['x'])\n    p.wait()\n",
            ["subprocess.Popen().wait"],
        ),
        ("def open(x): return x\nasync def f():\n    open('x')\n", []),
    ],
)
def test_calls_are_resolved(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert [call for _function, call, _way in look(tmp_path, app=text)] == expected


TK = "import tkinter as tk\nimport time\n"
QT = "from PySide6 import QtWidgets\nimport time\nclass W(QtWidgets.QWidget):\n"
GTK = "from gi.repository import GLib\nimport time\n"
LOOP = "import asyncio\nimport time\nloop = asyncio.get_event_loop()\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TK + "def click(): time.sleep(1)\nb = tk.Button(command=click)\n", "a Tk callback"),
        (TK + "tk.Tk().after(5, lambda: work())\ndef work(): time.sleep(1)\n", "a Tk callback"),
        (QT + "    def paintEvent(self, e): time.sleep(1)\n", "overrides an event handler"),
        (
            QT + "    def __init__(self):\n        self.b.clicked.connect(self.go)\n"
            "    def go(self): time.sleep(1)\n",
            "a Qt slot",
        ),
        (GTK + "def tick(): time.sleep(1)\nGLib.timeout_add(5, tick)\n", "a GLib callback"),
        (LOOP + "def tick(): time.sleep(1)\nloop.call_later(1, tick)\n", "an asyncio callback"),
    ],
)  # fmt: skip
def test_handlers_are_recognised(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "app.py").write_text(text)
    found = search([tmp_path], OPTIONS)
    assert [(one.handler, one.call) for one in found.points] == [(why, "time.sleep")]


def test_code_that_does_not_parse_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def f(:\n")
    (tmp_path / "good.py").write_text("import time\nasync def f(): time.sleep(1)\n")
    found = search([tmp_path], OPTIONS)
    assert len(found.points) == 1
    assert "bad.py" in found.notes[0]


def test_what_is_neither_program_nor_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ScanError, match="no ELF program and no Python code"):
        search([tmp_path / "notes.txt"], OPTIONS)
    with pytest.raises(ScanError, match="no such file"):
        search([tmp_path / "missing"], OPTIONS)


PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
#include <pthread.h>
typedef void (*callback)(void *);
unsigned g_timeout_add(unsigned ms, callback, void *);
unsigned g_idle_add(callback function, void *data) { function(data); return 1; }
__attribute__((noinline)) void save(int f) { fsync(f); __asm__ volatile(""); }
__attribute__((noinline)) void helper(int f) { save(f); __asm__ volatile(""); }
void on_tick(void *data) { helper(3); __asm__ volatile(""); }
void on_idle(void *data) { __asm__ volatile("nop"); }
static void *worker(void *data) { if (system("true")) return data; return 0; }
void on_start(void *data) { pthread_t t; pthread_create(&t, 0, worker, 0); }
void never(void) { sleep(1); }
int main(void) {
  g_timeout_add(5, on_tick, 0);
  g_timeout_add(5, on_start, 0);
  g_idle_add(on_idle, 0);
  return 0;
}
"""
STUB = "unsigned g_timeout_add(unsigned ms, void (*f)(void *), void *d) { return 0; }\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program with handlers, linked to a library that takes them."""
    import subprocess

    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    (tmp_path / "stub.c").write_text(STUB)
    (tmp_path / "app.c").write_text(PROGRAM)
    library = tmp_path / "libstub.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "stub.c"], check=True)
    subprocess.run(
        ["gcc", "-g", "-O1", "-pthread", "-o", tmp_path / "app", tmp_path / "app.c", library], check=True
    )
    return tmp_path / "app"


def test_the_way_from_a_handler_to_what_blocks(program: Path) -> None:
    # GIVEN a program whose timer handler syncs through two helpers, and whose thread runs a command
    # WHEN it is searched
    found = search([program], OPTIONS)
    # THEN the sync is found with its way; threads and unreachable code are left alone
    assert points(found) == [("save", "fsync", "on_tick > helper > save")]
    (one,) = found.points
    assert one.handler == "given to g_timeout_add"
    assert one.path[-1].file.endswith("app.c")
    assert one.path[-1].line == 8


def test_a_stripped_program_says_so_and_is_searched_by_its_unwind_tables(program: Path) -> None:
    import subprocess

    subprocess.run(["strip", program], check=True)
    found = search([program], OPTIONS)
    assert [one.call for one in found.points] == ["fsync"]
    assert any("stripped" in note for note in found.notes)


def test_results_in_every_form(program: Path, tmp_path: Path) -> None:
    found = search([program], OPTIONS)
    assert "way: on_tick > helper > save" in render(found, "table", "1", tmp_path)
    value = json.loads(render(found, "json", "1", tmp_path))
    assert value["points"][0]["path"][0]["function"] == "on_tick"
    log = json.loads(render(found, "sarif", "1", tmp_path))
    flow = log["runs"][0]["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"]
    assert len(flow) == 3
