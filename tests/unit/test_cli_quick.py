"""Command lines that are read without click mean what click reads in them."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rr_py.commands.record import command as record
from rr_py.commands.replay import command as replay
from rr_py.quick import plain

WORDS = [
    *("-q", "--quiet", "-o", "--output", "--output=x", "-ox", "-qo", "--checksum", "--checksum=7"),
    *("--checksum=0", "--checksum=", "--checksum=x", "--checksum=٣", "--check", "--env", "A=B", "--cwd", "."),
    *("--chaos", "--tui", "--", "-", "", "ls", "-la", "a b", "--help", "-h", "--verify", "--no-output"),
    *("-p", "7", "--gdb", "--nonsense"),
]


def by_click(command: click.Command, words: list[str]) -> dict[str, object]:
    with command.make_context(str(command.name), list(words)) as context:
        return context.params


@given(st.lists(st.sampled_from(WORDS), max_size=6))
def test_a_recording_is_read_as_click_reads_it(words: list[str]) -> None:
    simple = plain(["record", *words])
    if simple is None:
        return
    assert isinstance(simple, partial)
    found = by_click(record, words)
    assert simple.args == (found["program"],)
    assert simple.keywords == {name: found[name] for name in ("trace", "checksum", "quiet")}
    others = ("cwd", "one_domain", "chaos", "repeat", "in_tui", "interfaces")
    assert not any(found[name] not in (None, False, ()) for name in others)


@given(st.lists(st.sampled_from(WORDS), max_size=4))
def test_a_replay_is_read_as_click_reads_it(words: list[str]) -> None:
    simple = plain(["replay", *words])
    if simple is None:
        return
    assert isinstance(simple, partial)
    found = by_click(replay, words)
    assert simple.args == (found["trace"],)
    assert simple.keywords == {name: found[name] for name in ("verify", "silent")}
    assert not any(found[name] for name in ("pid", "gdb", "debugger", "port", "timeout", "ignore_cpu"))


PLAIN = ["record ls -l", "record -q -o t --checksum -- ls", "replay", "replay --verify t"]


@pytest.mark.parametrize("words", PLAIN)
def test_plain_words_need_no_click(words: str) -> None:
    code = "import sys, rr_py.main as m; assert m.plain(sys.argv[1:]); assert 'click' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, *words.split()], check=True)


@pytest.mark.parametrize("words", [[], ["record"], ["dump"], ["record", "--tui", "ls"], ["replay", "a", "b"]])
def test_all_else_is_left_to_click(words: list[str]) -> None:
    assert plain(words) is None
