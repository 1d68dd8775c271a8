"""Options: what belongs to rr-py and what to the recorded program; options whose value may be left out."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rr_py.commands.record import command as record
from rr_py.text import count, duration, size


def parse(*words: str) -> dict[str, object]:
    with record.make_context("record", list(words)) as context:
        return context.params


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["ls", "-la", "--color"], ["ls", "-la", "--color"]),
        (["--", "ls", "-o", "x"], ["ls", "-o", "x"]),
        (["-q", "--", "--odd"], ["--odd"]),
        (["-q", "ls", "--", "-q"], ["ls", "--", "-q"]),
        (["ls", "--checksum"], ["ls", "--checksum"]),
        (["-o", "--checksum", "ls"], ["ls"]),
        (["--env", "A=--checksum", "ls", "--env"], ["ls", "--env"]),
    ],
)
def test_the_programs_options_are_its_own(words: list[str], program: list[str]) -> None:
    assert parse(*words)["program"] == tuple(program)


def test_an_optional_value_never_takes_the_program() -> None:
    found = parse("--checksum", "--chaos", "--repeat-until-fail", "ls")
    assert (found["program"], found["checksum"], found["chaos"], found["repeat"]) == (("ls",), 1000, 0, 1000)
    found = parse("--checksum=7", "--chaos=8", "--repeat-until-fail=9", "ls")
    assert (found["program"], found["checksum"], found["chaos"], found["repeat"]) == (("ls",), 7, 8, 9)
    found = parse("ls")
    assert (found["checksum"], found["chaos"], found["repeat"]) == (None, None, None)


def test_the_value_of_an_option_is_not_taken_for_an_option() -> None:
    assert parse("-o", "--checksum", "ls")["trace"] == "--checksum"


def test_help_shows_where_a_value_may_be_left_out() -> None:
    assert "--checksum[=EVERY]" in record.get_help(click.Context(record, info_name="record"))


@given(st.lists(st.text(min_size=1), min_size=1))
def test_any_words_after_two_dashes_are_the_program(words: list[str]) -> None:
    assert parse("-q", "--", *words)["program"] == tuple(words)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_234_567, "1.2 MB"),
        (99_949_999, "99.9 MB"),
        (99_950_000, "100 MB"),
        (999_500_000, "1.0 GB"),
        (5_000_000_000_000_000, "5000 TB"),
    ],
)
def test_sizes(number: int, text: str) -> None:
    assert size(number) == text


def test_counts_and_durations() -> None:
    assert count(1, "event") == "1 event"
    assert count(12345, "event") == "12 345 events"
    assert count(3, "process", "processes") == "3 processes"
    assert [duration(s) for s in (0.35, 2.44, 185, 7380)] == ["350 ms", "2.4 s", "3 min 05 s", "2 h 03 min"]
