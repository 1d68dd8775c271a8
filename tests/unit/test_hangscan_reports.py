"""Reports in every form, suppression files, and the pattern store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hangscan import suppress
from hangscan.errors import KnowledgeError, SuppressionError
from hangscan.knowledge import builtin
from hangscan.model import Action, Candidate, Loop, Report, Resource
from hangscan.reports import document, page, sarif, table
from hangscan.store import PatternStore, read, suffix_of
from replayer.backtrace import StackFrame

STACK = (
    StackFrame("fsync", "", 0, "/usr/lib/x86_64-linux-gnu/libc.so.6", "native", 100, 1),
    StackFrame("sqlite3_step", "", 0, "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0", "native", 200, 2),
    StackFrame("store<int>", "/src/app/<odd> name.cc", 12, "/src/app/app", "native", 300, 3),
    StackFrame("main", "/src/app/main.cc", 3, "/src/app/app", "native", 400, 4),
)


def candidate(kind: str = "file", worst: float = 1600.0, stack: tuple[StackFrame, ...] = STACK) -> Candidate:
    return Candidate(
        operation="run a database statement",
        resource=Resource(kind, "/home/a/x.db", "user", "ext4"),
        observed_ms=2.0,
        observed_max_ms=20.0,
        projected_ms={"hdd": worst},
        worst_ms=worst,
        count=3,
        calls=9,
        thread="app (main thread of 7)",
        stack=stack,
        blamed=2 if stack else -1,
        fix="run statements in one worker thread",
        toolkit="GLib",
        paths=("/home/a/x.db",),
        actions=(0,),
        domain=1,
        event=42,
    )


def report(*candidates: Candidate) -> Report:
    action = Action(1, 7, 0, 0, 150_000_000, 1, 9)
    loop = Loop(1, 7, 7, "app", "GLib", 2, [action], name="app (main thread of 7)")
    return Report(
        trace="trace.bin",
        command=["./app", "<x>"],
        environments={"hdd": "a spinning disk"},
        threshold_ms=100.0,
        loops=[loop],
        candidates=list(candidates),
        below=4,
        suppressed=1,
        notes=["process 7 (app): no stacks after event 9: it diverged"],
        end=200_000_000,
    )


def test_table_says_where_what_on_what_how_long_and_the_fix() -> None:
    text = table.text(report(candidate()), 100)
    for words in (
        "1 hang of 100 ms or more in 1 event loop",
        "1. store<int> at /src/app/<odd> name.cc:12",
        "file: run a database statement, 3 times (9 calls)",
        "on /home/a/x.db",
        "here 2.0 ms (up to 20 ms); would be: hdd 1.6 s",
        "by main > [store<int>] > sqlite3_step > fsync",
        "fix: run statements in one worker thread",
        "4 places below the threshold",
        "1 suppressed",
        "note: process 7",
        "cannot know",
    ):
        assert words in text


def test_names_that_are_no_text_do_no_harm() -> None:
    odd = replace(candidate(), paths=("/tmp/\x1b[2J\udcff", "/tmp/b"))
    text = table.text(report(odd))
    assert "\x1b" not in text
    text.encode()
    page.text(report(odd)).encode()
    document.text(report(odd)).encode()


def test_table_says_how_many_it_does_not_show() -> None:
    assert "2 more: --all shows them" in table.text(report(*[candidate()] * 5), 80, most=3)


def test_json_has_what_the_schema_promises() -> None:
    value = json.loads(document.text(report(candidate())))
    assert value["version"] == document.VERSION
    one = value["candidates"][0]
    assert one["resource"] == {"kind": "file", "path": "/home/a/x.db", "scope": "user", "filesystem": "ext4"}
    assert one["projected_ms"] == {"hdd": 1600.0}
    assert one["blamed"]["function"] == "store<int>"
    assert [frame["function"] for frame in one["stack"]] == ["fsync", "sqlite3_step", "store<int>", "main"]
    assert value["below_threshold"] == 4


def test_sarif_has_rules_places_stacks_and_fingerprints() -> None:
    # GIVEN a finding in source below the current folder, and one without a stack
    log = sarif.as_document(report(candidate(), candidate("dns", stack=())), "1.2.3", Path("/src"))
    # WHEN it is read as a service reads it
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    first, second = run["results"]
    # THEN rules are there, places are relative to the root, and what is needed to track findings
    assert log["version"] == "2.1.0"
    assert [rules[one["ruleIndex"]]["id"] for one in (first, second)] == ["hang/file", "hang/dns"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "app/%3Codd%3E%20name.cc", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 12}
    assert len(first["stacks"][0]["frames"]) == 4
    assert first["partialFingerprints"] != second["partialFingerprints"]
    assert first["level"] == "warning"
    assert second["stacks"] == []
    assert run["invocations"][0]["toolExecutionNotifications"]


def test_html_needs_nothing_else_and_escapes_names() -> None:
    text = page.text(report(candidate()))
    assert "store&lt;int&gt;" in text
    assert "store<int>" not in text
    assert "<svg" in text
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text


# ---- suppression ----


def suppressions(tmp_path: Path, text: str) -> list[suppress.Suppression]:
    file = tmp_path / "known.toml"
    file.write_text(text)
    return suppress.read(file)


@pytest.mark.parametrize(
    ("entry", "kept"),
    [
        ('function = "store*"', 0),
        ('function = "load"', 1),
        ('path = "/home/*"', 0),
        ('path = "/etc/*"', 1),
        ('kind = "file"', 0),
        ('kind = "file"\nfunction = "other"', 1),
    ],
)
def test_entries_cover_by_function_path_and_kind(tmp_path: Path, entry: str, kept: int) -> None:
    entries = suppressions(tmp_path, f'[[suppress]]\n{entry}\nreason = "known"')
    left, covered = suppress.split([candidate()], entries)
    assert (len(left), covered) == (kept, 1 - kept)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[[suppress]]\nreason = "x"', "entry 1 names no function, path or kind"),
        ('[[suppress]]\nfunktion = "x"', "entry 1 has funktion"),
        ('[[suppress]]\nkind = "disk"', "entry 1 has kind 'disk'"),
        ("[[suppress]]\nfunction = 3", "entry 1 is no table of texts"),
        ("[[suppress", "known.toml"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(SuppressionError) as caught:
        suppressions(tmp_path, text)
    assert what in caught.value.message


# ---- learnt patterns ----


def test_patterns_are_learnt_once_a_trace(tmp_path: Path) -> None:
    # GIVEN a store that has learnt from a trace
    with PatternStore(tmp_path / "store.sqlite") as store:
        assert store.learn([candidate()], "one.bin") == (1, 0)
        # WHEN the same trace and another one are scanned
        assert store.learn([candidate()], "one.bin") == (0, 1)
        assert store.learn([candidate()], "two.bin") == (0, 1)
        (one,) = store.all()
    # THEN the pattern was seen in two traces; nothing of the application is in it
    assert one.seen == 2
    assert one.suffix == ("fsync", "sqlite3_step")
    assert one.worst_ms == 20.0


def test_stores_and_exports_merge(tmp_path: Path) -> None:
    # GIVEN two stores with one pattern in common
    other = candidate(
        "dns", stack=(StackFrame("getaddrinfo", "", 0, "/usr/lib/libc.so.6", "native"), *STACK[2:])
    )
    with PatternStore(tmp_path / "a.sqlite") as first, PatternStore(tmp_path / "b.sqlite") as second:
        first.learn([candidate()], "one.bin")
        second.learn([candidate(), other], "two.bin")
        export = tmp_path / "b.json"
        export.write_text(second.export())
        # WHEN one takes in the other's export, then the other itself
        added = [first.merge(export), first.merge(tmp_path / "b.sqlite")]
        # THEN each pattern and each trace counts once
        assert added == [1, 0]
        assert sorted((one.kind, one.seen) for one in first.all()) == [("dns", 1), ("file", 2)]


def test_frames_of_the_application_are_no_pattern() -> None:
    assert suffix_of(STACK, 2) == ("fsync", "sqlite3_step")
    assert suffix_of(STACK[2:], 0) == ()


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"version": 9, "patterns": []}', b"\xff\xfe"])
def test_what_is_no_store_says_so(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(KnowledgeError, match="is no export"):
        read(file)


def test_another_database_is_not_touched(tmp_path: Path) -> None:
    import sqlite3

    file = tmp_path / "other.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("create table mine (x)")
    database.close()
    before = file.read_bytes()
    with pytest.raises(KnowledgeError, match="is no pattern store"):
        PatternStore(file)
    assert file.read_bytes() == before


def test_every_built_in_pattern_names_its_asynchronous_counterpart() -> None:
    for pattern in builtin().patterns.rules:
        assert pattern.fix, pattern.functions
        assert pattern.operation, pattern.functions
