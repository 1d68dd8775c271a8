"""Environment models: what is built in, what files may say, and what they make of operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangscan.environments import Environment, available, load, read
from hangscan.errors import EnvironmentFileError
from hangscan.model import Operation, Resource

NAMES = {
    "ssd", "hdd", "nfs", "nfs-down", "slow-dns", "dns-down", "offline", "slow-network", "dead-service",
    "busy-cpu",
    "cold-cache", "swap",
}  # fmt: skip


def operation(name: str, resource: Resource, ms: float = 1.0, size: int = 0, first: bool = True) -> Operation:
    return Operation(1, 1, 1, name, resource, 0, int(ms * 1e6), size=size, first=first)


def user_file(path: str = "/home/a/x") -> Resource:
    return Resource("file", path, "user", "ext4")


def one(name: str) -> Environment:
    return load([name])[0]


def test_every_built_in_model_loads_and_names_public_sources() -> None:
    # GIVEN the models that come with the tool
    # WHEN all are loaded
    models = load(sorted(available()))
    # THEN none is missing, and each figure has a source to look up
    assert {model.name for model in models} == NAMES
    for model in models:
        assert model.title
        for figure in model.figures:
            assert figure.source.startswith("https://"), (model.name, figure)
            assert figure.note


def test_a_model_moves_the_users_data_only() -> None:
    # GIVEN a spinning disk
    hdd = one("hdd")
    # WHEN the user's file and one of the system are synced
    mine = hdd.project(operation("fsync", user_file()))
    system = hdd.project(operation("fsync", Resource("file", "/usr/lib/x", "system", "ext4"), ms=2))
    # THEN only the first is slower than observed
    assert mine.tail_ms > 100
    assert (system.median_ms, system.tail_ms) == (2, 2)


def test_what_was_read_before_is_in_the_page_cache() -> None:
    # GIVEN a spinning disk
    hdd = one("hdd")
    # WHEN a file is read for the first time, and again
    first = hdd.project(operation("read", user_file(), size=2_000_000))
    again = hdd.project(operation("read", user_file(), size=2_000_000, first=False))
    # THEN the first costs a seek and the transfer, the second nothing
    assert first.median_ms == pytest.approx(10 + 40)
    assert again.median_ms == 0


def test_a_dead_server_counts_once_an_action() -> None:
    assert one("nfs-down").project(operation("stat", user_file())).once


def test_what_was_observed_on_tmpfs_is_nothing_unless_it_is_moved() -> None:
    # GIVEN a file of the user on tmpfs, and one beside it that no model moves
    mine = Resource("file", "/run/user/0/x", "user", "tmpfs")
    # WHEN a model moves it, and another does not
    moved = one("nfs-down").project(operation("stat", mine, ms=5))
    left = one("dns-down").project(operation("stat", mine, ms=5))
    # THEN it is slow in the one, and takes no time in the other
    assert moved.tail_ms > 1000
    assert left.tail_ms == 0


def test_remote_sockets_only_are_offline() -> None:
    offline = one("offline")
    near = offline.project(operation("connect", Resource("socket", peer="127.0.0.1:80")))
    far = offline.project(operation("connect", Resource("socket", peer="192.0.2.1:80", remote_peer=True)))
    assert near.tail_ms == 1
    assert far.tail_ms == 127_000


def test_computing_is_multiplied_on_a_busy_machine() -> None:
    assert one("busy-cpu").project(operation("compute", Resource("cpu"), ms=50)).median_ms == 200


def test_a_file_of_the_users_own_is_taken(tmp_path: Path) -> None:
    # GIVEN a model of the user's
    file = tmp_path / "tape.toml"
    file.write_text(
        'title = "a tape"\n[[figure]]\nkinds = ["file"]\noperations = ["read"]\nmedian_ms = 60000\n'
        'source = "https://example.org/tape"\n'
    )
    # WHEN it is named by path, or by name with its folder
    by_path, by_name = load([str(file)])[0], load(["tape"], [tmp_path])[0]
    # THEN both are the same
    assert by_path == by_name
    assert by_path.name == "tape"
    assert by_path.project(operation("read", user_file())).tail_ms == 60000


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("title = ", "Invalid value"),
        ('title = "x"', "it has no [[figure]]"),
        (
            '[[figure]]\nkinds = ["disk"]\noperations = ["*"]\nmedian_ms = 1\nsource = "s"',
            "kind 'disk' is none of",
        ),
        ('[[figure]]\nkinds = ["file"]\noperations = ["*"]\nmedian_ms = 1', "figure 1 names no source"),
        ('[[figure]]\nkinds = ["file"]\noperations = ["*"]\nsource = "s"', "figure 1 says no time"),
        ('[[figure]]\nkinds = ["file"]\noperations = ["*"]\nmedian_ms = -1\nsource = "s"', "median_ms is -1"),
        (
            '[[figure]]\nkinds = ["file"]\noperations = "*"\nmedian_ms = 1\nsource = "s"',
            "operations is a list",
        ),
        (
            '[[figure]]\nkinds = ["file"]\noperations = ["*"]\nslow = 1\nsource = "s"',
            "has slow, which no figure",
        ),
        (
            '[[figure]]\nkinds = ["file"]\noperations = ["*"]\nwhere = "x"\nmedian_ms = 1\nsource = "s"',
            "where is",
        ),
    ],
)
def test_a_broken_file_says_what_is_wrong(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(text)
    with pytest.raises(EnvironmentFileError) as caught:
        read(file)
    assert str(file) in caught.value.message
    assert what in caught.value.message


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(EnvironmentFileError, match=r"'floppy'.*nfs-down"):
        load(["floppy"])
