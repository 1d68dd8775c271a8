"""The cheapest interface: components that share state, the cut, the file that is written."""

from __future__ import annotations

import base64
import gzip
import os
import sqlite3
import zlib
from pathlib import Path

import pytest

from interfaces.libspec import SpecError, load, load_all, shipped
from interfaces.libspec.chooser import ENVIRONMENT, PROGRAM, Flow, choices, choose
from interfaces.libspec.components import components
from interfaces.libspec.recorded import described, interfaces_of
from interfaces.libspec.restrict import restrict
from tests.library.conftest import PROGRAMS, Build, Tool, need, same


def test_functions_that_share_state_stay_together() -> None:
    placed = components(load("zlib"))
    assert placed["gzopen"] == placed["gzread"] == placed["gzclose"]
    assert placed["inflateInit_"] == placed["inflate"] == placed["deflateEnd"] != placed["gzread"]
    assert placed["crc32"] == "crc32" and placed["compress2"] == "compress2"
    assert placed["zlibVersion"] == placed["gzopen"], "nobody knows what it uses: with the largest"
    assert set(components(load("libpq")).values()) == {"PGconn"}
    curl = components(load("libcurl"))
    assert curl["curl_share_cleanup"] == curl["curl_slist_append"] == curl["curl_easy_perform"]


@pytest.mark.parametrize("name", shipped())
def test_a_part_of_an_interface_is_the_same_after_it_went_through_a_trace(name: str) -> None:
    whole = load(name)
    part = restrict(whole, list(whole.functions)[::3])
    assert len(part.text) < len(whole.text)
    for library in (described([part]), {"interfaces": [{"name": name, "path": "", "text": part.text}]}):
        (again,) = interfaces_of({"library": library})
        assert again.functions == part.functions and again.callbacks == part.callbacks


@pytest.mark.parametrize("texts", ["", "?", "YWJj", base64.b64encode(zlib.compress(b"[]")).decode(), None])
def test_texts_of_interfaces_that_cannot_be_read(texts: object) -> None:
    library = {**described([load("zlib")]), "texts": texts}
    with pytest.raises(SpecError, match="does not say what is in its library interfaces"):
        interfaces_of({"library": library})


def test_mistakes_in_what_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('use = [{ name = "zlib", only = ["gzopen", "gzopne"] }]')
    with pytest.raises(SpecError, match="zlib has no function 'gzopne'"):
        load_all([str(tmp_path / "a.toml")])
    (tmp_path / "b.toml").write_text("use = [1]")
    with pytest.raises(SpecError, match="is no list of names"):
        load_all([str(tmp_path / "b.toml")])


def test_the_cut_leaves_out_what_nothing_flows_into() -> None:
    """The checksum function gives much to the program, but nothing of the environment."""
    flows = [
        Flow(ENVIRONMENT, "zlib: gz", 300, 3_000_000, "libc", "libc"),
        Flow(ENVIRONMENT, PROGRAM, 2, 10, "libc", "libc"),
        Flow("zlib: gz", PROGRAM, 3, 20, "zlib", "gz"),
        Flow("zlib: crc32", PROGRAM, 10_000, 1_000_000, "zlib", "crc32"),
    ]
    choice = choose(flows)
    assert choice.interfaces == ("libc", "zlib")
    assert choice.components("zlib") == {"gz"}
    assert choice.cost < 200


def test_other_cuts_that_may_be_cheaper_once_measured() -> None:
    """GIVEN two libraries, the one beneath the other, of about the same cost WHEN asked for choices THEN both
    are there, and none that costs far more."""
    flows = [
        Flow(ENVIRONMENT, "low", 100, 100_000, "libc", "libc"),
        Flow("low", "high", 50, 1000, "low", "low"),
        Flow("high", PROGRAM, 40, 900, "high", "high"),
        Flow(ENVIRONMENT, PROGRAM, 2, 10, "libc", "libc"),
    ]
    found = choices(flows)
    assert [choice.interfaces for choice in found] == [("high", "libc"), ("libc", "low")]
    assert [choice.interfaces for choice in choices(flows, 1000)][-1] == ("libc",)


def test_suggest_cuts_where_least_flows(tool: Tool, build: Build, tmp_path: Path) -> None:
    """A library reads three megabytes and hands over one number."""
    (tmp_path / "data.gz").write_bytes(gzip.compress(os.urandom(3000000), 1))
    program = build("app", (PROGRAMS / "far.c").read_text(), "-lz")
    done = tool("interface", "suggest", "-o", "app.toml", "--svg", "app.svg", "--", str(program))
    text = done.out.decode()
    assert "suggested: --interface libc --interface zlib" in text, done.err
    assert "gzread (libz.so" in text and "main (app)" in text, "functions with what lies beneath them"
    assert "<svg" in (tmp_path / "app.svg").read_text()
    written = (tmp_path / "app.toml").read_text()
    assert '"gzread"' in written and '"crc32"' not in written and '"inflate"' not in written
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "app.toml", str(program))
    suggested = (tmp_path / "t.bin").stat().st_size
    tool("record", "-q", "-o", "w.bin", "--interface", "libc", "--interface", "zlib", str(program))
    tool("record", "-q", "-o", "s.bin", str(program))
    assert suggested <= (tmp_path / "w.bin").stat().st_size
    assert suggested * 100 < (tmp_path / "s.bin").stat().st_size
    (tmp_path / "data.gz").unlink()
    same(tool, (recorded.out, recorded.status))


def test_python_that_packs_and_asks(tool: Tool, tmp_path: Path) -> None:
    """What zlib computes from the program's own memory is not logged; what SQLite reads is."""
    need(Path("/usr/bin/python3").exists(), "the system's Python")
    with sqlite3.connect(tmp_path / "p.db") as db:
        db.execute("create table t(a)")
        db.executemany("insert into t values (?)", [(os.urandom(3000).hex(),) for _ in range(300)])
    db.close()
    script = (
        "import sqlite3, zlib\n"
        "print(sqlite3.connect('p.db').execute('select sum(length(a)) from t').fetchall(),"
        " len(zlib.compress(b'x' * 100000)))"
    )
    program = ["/usr/bin/python3", "-I", "-c", script]
    done = tool("interface", "suggest", "--no-measure", "-o", "app.toml", "--", *program)
    assert b"--interface sqlite3" in done.out and b"--interface zlib" not in done.out, (done.out, done.err)
    recorded = tool("record", "-q", "-o", "t.bin", "--interface", "app.toml", "--", *program)
    (tmp_path / "p.db").unlink()
    same(tool, (recorded.out, 0))
