"""The filter language: what it means, what is wrong, what may come next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.tui_trace import region
from interfaces.abi import EventFlag, Kind, RegionKind
from interfaces.calls import BY_NAME, CALLS
from tests.tui.conftest import Story, indexed
from tui.model.decode import Decoded
from tui.model.query.complete import complete
from tui.model.query.evaluate import cost_of
from tui.model.query.fields import FIELDS, Cost, integer, nanoseconds
from tui.model.query.language import And, Compare, Not, Or, QueryError, parse, quote
from tui.model.trace import TraceModel


def rows(model: TraceModel, text: str) -> list[int]:
    view = model.view(parse(text), everything=True)
    model.fill(view)
    return view.rows(0, len(view))


def brute(model: TraceModel, passes: object) -> list[int]:
    assert callable(passes)
    return [row for row in range(model.index.rows) if passes(model.decode(row))]


@pytest.fixture
def server(traces: Callable[[int], Path]) -> TraceModel:
    return indexed(traces(5_000))


READ, OPENAT = BY_NAME["read"].number, BY_NAME["openat"].number


def is_call(event: Decoded, nr: int) -> bool:
    return event.kind == Kind.SYSCALL and event.nr == nr


CASES = [
    ("call == read", lambda e: is_call(e, READ)),
    ("call in (read, openat)", lambda e: is_call(e, READ) or is_call(e, OPENAT)),
    ('call ~ "*poll*"', lambda e: e.kind == Kind.SYSCALL and "poll" in CALLS[e.nr].name),
    ("call == %files", lambda e: e.kind == Kind.SYSCALL and CALLS[e.nr].family == "files"),
    ("family == paths", lambda e: e.kind == Kind.SYSCALL and CALLS[e.nr].family == "paths"),
    ("errno == ENOENT", lambda e: e.error == 2),
    ("failed and not call == read", lambda e: e.error != 0 and e.nr != READ),
    ("duration > 1ms", lambda e: e.took > 1_000_000),
    ("kind == exec", lambda e: e.kind == Kind.EXEC),
    ("result == 60", lambda e: e.kind == Kind.SYSCALL and e.result == 60),
    ("fd == 5 and call == close", lambda e: is_call(e, BY_NAME["close"].number)),
    ("tid == 4713", lambda e: e.view.task == 4713),
    ("domain == 2 or tid == 4712", lambda e: e.view.domain == 2 or e.view.task == 4712),
    ("event < 10", lambda e: e.view.number < 10),
    ("row >= 100 row < 110", lambda e: 100 <= e.row < 110),
    ("arg == 0x7f0000001000", lambda e: 0x7F0000001000 in e.args),
    ('data ~ "brown fox"', lambda e: any(b"brown fox" in region.data for region in e.regions)),
    ('path ~ "*.db" and call == openat', lambda e: any(p.endswith(".db") for p in e.paths)),
]


@pytest.mark.parametrize(("text", "passes"), CASES, ids=[text for text, _ in CASES])
def test_a_filter_finds_what_looking_at_each_event_finds(
    server: TraceModel, text: str, passes: object
) -> None:
    """GIVEN a filter WHEN evaluated over whole columns THEN the rows are those of decoding each event."""
    found = rows(server, text)
    assert found == brute(server, passes)
    assert found


def test_paths_of_descriptors_count(server: TraceModel) -> None:
    """GIVEN reads of open files WHEN filtered by path THEN what the descriptor stands for decides."""
    text = 'call == read and path ~ "*.db"'
    expected = [
        row
        for row in range(server.index.rows)
        if is_call(server.decode(row), READ) and server.label(row, 5).endswith(".db")
    ]
    assert rows(server, text) == expected
    assert expected


def test_what_blocked_calls_had_read_counts(story: Story) -> None:
    """GIVEN a call that blocked WHEN filtered by its path THEN the event that began it tells it."""
    path = region(RegionKind.IN, 1, 0x7000, b"/var/slow.db\0")
    story.domain(1, 100)
    story.call("openat", (-100, 0x7000), kind=Kind.RELEASE, payload=path)
    story.call("getpid", task=101)
    story.call("openat", (-100, 0x7000), 4, flags=EventFlag.PRECISE | EventFlag.BLOCKED)
    story.read(4, b"x")
    story.close().close()
    model = indexed(story.path)
    assert rows(model, "path ~ slow and kind == syscall") == [2, 3]
    assert rows(model, "text ~ slow and kind == syscall") == [2]
    assert rows(model, "data ~ slow") == [0, 2]
    assert rows(model, "blocked") == [2]
    assert model.label(3, 4) == "/var/slow.db"


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("cal == read", 0, "no field 'cal'; did you mean call?"),
        ("call == raed", 8, "no call 'raed'; did you mean read?"),
        ("call read", 5, "call is followed by one of"),
        ("call ==", 7, "expected a call name"),
        ("duration > soon", 11, "'soon' is not a time"),
        ("duration > 10kg", 11, "is not a time"),
        ("(call == read", 13, "expected ), found the end"),
        ("call == read)", 12, "expected the end, found ')'"),
        ("path ~ /(/", 7, "not a regular expression"),
        ("path == /x/", 8, "a regular expression follows ~"),
        ('path ~ "abc', 7, "a string that does not end"),
        ("and", 0, "expected a field"),
        ("call == read and", 16, "expected a field, found the end"),
        ("errno == ENOWAY", 9, "no value 'ENOWAY'"),
        ("call == %nothing", 8, "no family 'nothing'"),
        ("call == read $", 13, "'$' has no meaning here"),
        ("failed == 1", 7, "expected the end"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, position: int, message: str) -> None:
    """GIVEN a text that is no filter WHEN parsed THEN the error names the place and what is wrong."""
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.position == position


def test_and_binds_closer_than_or() -> None:
    """GIVEN and, or, not WHEN parsed THEN they bind as in Python, and words side by side mean and."""
    query = parse("failed or blocked and not unknown")
    assert query is not None
    assert isinstance(query.root, Or)
    assert isinstance(query.root.parts[1], And)
    assert isinstance(query.root.parts[1].parts[1], Not)
    assert parse("failed blocked") is not None
    assert parse("   ") is None


def test_a_text_alone_searches_the_line() -> None:
    """GIVEN a string WHEN parsed THEN it is a condition on the text."""
    query = parse('"hello"')
    assert query is not None
    assert isinstance(query.root, Compare)
    assert query.root.field is FIELDS["text"]
    assert cost_of(query.root) == Cost.DECODE


@pytest.mark.parametrize("value", ["plain", 'with "quotes"', "back\\slash", "", "ends\\"])
def test_quoted_texts_come_back(value: str) -> None:
    """GIVEN any text WHEN quoted and parsed THEN exactly it matches."""
    query = parse(f"path == {quote(value)}")
    assert query is not None
    assert isinstance(query.root, Compare)
    assert query.root.pattern is not None
    assert query.root.pattern.match(value)
    assert not query.root.pattern.match(value + "x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10ms", 1e7), ("1.5s", 1.5e9), ("3", 3e9), ("7us", 7e3), ("2min", 120e9), ("5ns", 5), ("x", None)],
)
def test_times_have_units(text: str, expected: float | None) -> None:
    """GIVEN a time WHEN read THEN it is in nanoseconds; without unit it means seconds."""
    assert nanoseconds(text) == expected


def test_numbers_have_units() -> None:
    """GIVEN a number WHEN read THEN k and Ki, and hexadecimal, are understood."""
    assert [integer(text) for text in ("4k", "4KiB", "0x10", "-3", "1.5k", "x")] == [
        4000, 4096, 16, -3, 1500, None,
    ]  # fmt: skip


def test_completion_follows_the_grammar() -> None:
    """GIVEN a filter being typed WHEN completed THEN fields, operators, values, words come in turn."""

    def first(text: str, number: int = 1) -> list[str]:
        return [item.text for item in complete(text, len(text))][:number]

    assert first("dur") == ["duration"]
    assert first("call ") == ["=="]
    assert first("call == opena") == ["openat"]
    assert first("call == read ") == ["and"]
    assert first("call == read and fail") == ["failed"]
    assert first("errno == ENOEN") == ["ENOENT"]
    assert first("call in (rea") == ["read"]
    assert first("call in (read, wri") == ["write"]
    assert first("failed ") == ["and"]
    assert "10ms" in first("duration > ", 4)
    assert first('path ~ "unfinished') == []


def test_completion_prefers_what_the_trace_has() -> None:
    """GIVEN values of the trace WHEN completed THEN they come first and say so."""
    found = complete("pid == ", 7, lambda field: ["42"] if field.name == "pid" else [])
    assert [item.text for item in found] == ["42"]
    calls = complete("call == ", 8, lambda field: ["writev"])
    assert calls[0].text == "writev"
    assert calls[0].help == "in this trace"


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("path ~ /etc/passwd", "/etc/passwd-", "/etc/hosts"),
        ("path ~ /etc and failed", "/etc/hosts", "/usr/bin"),
        ("path == /etc/passwd", "/etc/passwd", "/etc/passwd-"),
        ("path in (/etc/passwd, /etc/hosts)", "/etc/passwd", "/etc"),
        ("path ~ /etc/*.conf", "/etc/a/b.conf", "/etc/hosts"),
        ("path ~ /^.etc.h/", "/etc/hosts", "/usr/etc/hosts"),
        ("(path ~ /a.c/)", "xabcx", "abd"),
        (r"path ~ /a\/b/", "xa/bx", "ab"),
        ("path ~ *.db and failed", "/a.db", "/a.dbx"),
        ("path ~ .gz", "/a.gz", "/agz"),
        ("path ~ 127.0.0.1:80", "127.0.0.1:80", "127.0.0.1"),
        ("(path ~ lib-2.0+x)", "/lib-2.0+x.so", "/lib-2.0"),
        ("path~a.b&&failed", "a.b", "a.b&&"[:1]),
    ],
)
def test_paths_need_no_quotes(text: str, matching: str, other: str) -> None:
    """GIVEN a path behind ~ or == WHEN parsed THEN it is one; between two slashes it is an expression."""
    query = parse(text)
    assert query is not None
    node = query.root
    while not isinstance(node, Compare):
        assert isinstance(node, And | Or)
        node = node.parts[0]
    assert node.pattern is not None
    assert node.pattern.match(matching)
    assert not node.pattern.match(other)
