"""All domains in one order of time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interfaces.abi import EVENT_DTYPE
from tracefile import Chunk, DomainStart, TraceReader, TraceWriter

_counter = itertools.count()


def write(path: Path, domains: list[list[list[int]]]) -> None:
    """Each domain is a list of chunks, each chunk a list of times."""
    with TraceWriter.create(path, {}) as writer:
        for domain, chunks in enumerate(domains, 1):
            writer.add_domain(DomainStart(domain=domain, kind="fork", pid=domain))
            first = 0
            for times in chunks:
                events = np.zeros(len(times), EVENT_DTYPE)
                events["time_in"] = np.maximum(np.array(times, np.int64) - 3, 0)
                events["time_out"] = times
                writer.add_events(domain, first, events.tobytes(), b"")
                first += len(times)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6), max_size=4),
        min_size=1,
        max_size=5,
    )
)
def test_merged_order(tmp_path: Path, domains: list[list[list[int]]]) -> None:
    """Every event comes once, each domain in its own order, by the latest time seen in its domain."""
    path = tmp_path / f"trace-{next(_counter) + 1}.bin"
    write(path, domains)
    expected = []
    for domain, chunks in enumerate(domains, 1):
        latest = 0
        for number, time in enumerate(itertools.chain.from_iterable(chunks)):
            latest = max(latest, time)
            expected.append((latest, domain, number))
    with TraceReader.open(path) as reader:
        merged = [(event.domain, event.number) for event in reader.merged()]
        runs = [
            (chunk.domain, chunk.first_event + i)
            for chunk, start, stop in reader.merged_runs()
            for i in range(start, stop)
        ]
    assert merged == runs == [(domain, number) for _, domain, number in sorted(expected)]


def test_one_chunk_a_domain_is_loaded_only_while_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN domains that follow each other in time WHEN merging THEN the next is not read before its turn."""
    path = tmp_path / "trace.bin"
    write(path, [[[10, 20]], [[110, 120]], [[210, 220]]])
    with TraceReader.open(path) as reader:
        loaded: list[int] = []
        original = reader.chunks

        def spy(domain: int, start_event: int = 0) -> Iterator[Chunk]:
            loaded.append(domain)
            return original(domain, start_event)

        monkeypatch.setattr(reader, "chunks", spy)
        runs = reader.merged_runs()
        assert next(runs)[0].domain == 1
        assert loaded == [1]
        assert [chunk.domain for chunk, _, _ in runs] == [2, 3]
