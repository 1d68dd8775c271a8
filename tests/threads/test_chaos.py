"""--chaos brings out a race that ordinary recordings hardly ever show, and what it finds replays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Record, Recorded, Replay


def test_a_race_is_found_and_replays(build: Callable[[str], Path], record: Record, replay: Replay) -> None:
    found = record(build("chaos_race"), options=("--chaos", "--repeat-until-fail=100"))
    assert (found.status, found.out.splitlines()[-1]) == (1, "the race was hit"), found.said
    for _ in range(3):
        again = replay(found.trace)
        assert (again.returncode, again.stdout) == (1, "the race was hit\n"), again.stderr


@pytest.mark.parametrize("name", ["race_queue", "futex_ops", "prefork_64", "sync_objects", "spawn_threaded"])
def test_programs_under_chaos(name: str, build: Callable[[str], Path], same: Callable[..., Recorded]) -> None:
    recorded = same(build(name), options=("--chaos=12345", "--checksum=200"))
    assert recorded.status == 0 and recorded.out
