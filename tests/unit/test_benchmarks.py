"""The benchmarks' own arithmetic: ratios, comparison, plots. Nothing is timed here."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.plot import Series, plot
from benchmarks.running import Cost, Measured, RunFailed, median, timed
from benchmarks.works import WORKS, Work


def measured() -> Measured:
    return Measured(
        native=[Cost(1.0, 0.5), Cost(9.0, 0.5), Cost(2.0, 0.5)],
        record=[Cost(3.0, 1.0)],
        replay=[Cost(1.0, 0.25)],
        others={"strace -f": 40.0},
        trace=1234,
    )


def work() -> Work:
    return Work("some work", lambda folder, size: ["true"], 1, 1.5, None)


def test_ratios_are_of_medians() -> None:
    """GIVEN runs WHEN put together THEN each ratio is of the medians, of time and of processor time."""
    found = report.figures(work(), measured())
    assert (found["native_s"], found["record"], found["replay"]) == (2.0, 1.5, 0.5)
    assert (found["record_cpu"], found["replay_cpu"], found["strace -f"]) == (2.0, 0.5, 40.0)
    assert median([]) == 0.0


def test_table_has_a_row_a_work() -> None:
    """GIVEN figures WHEN shown THEN there is one row, goals and other tools included, blank where unknown."""
    lines = report.table({"some work": report.figures(work(), measured())}, ["strace -f", "rr"]).splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:6] == ["some work", "2.00 s", "1.50x", "1.50", "0.50x", ""]
    assert cells[6:] == ["2.00x", "0.50x", "1.2 kB", "40x", ""]


def test_comparison_names_what_got_worse() -> None:
    """GIVEN an earlier run WHEN one ratio grew by a third and one by a tenth THEN only the first is told."""
    now: report.Figures = {"w": {"native_s": 1.0, "record": 2.0, "replay": 1.1, "trace_bytes": 10}}
    before = {"works": {"w": {"record": 1.5, "replay": 1.0, "trace_bytes": 10}}}
    assert report.compare(before, now) == ["w: record was 1.50, is 2.00"]
    assert report.compare({"works": {}}, now) == []


def test_plot_is_whole_svg() -> None:
    """GIVEN two lines WHEN plotted THEN the text is XML with as many points in each, and both names."""
    series = [Series("a<b", (1, 10, 100), (0.1, 1, 9)), Series("b", (1, 100), (2, 3))]
    text = plot("events", "seconds", series)
    root = ElementTree.fromstring(text)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [3, 2]
    assert {"a<b", "b", "events", "seconds"} <= {element.text for element in root.iter() if element.text}


def test_failed_run_says_why(tmp_path: Path) -> None:
    """GIVEN a command that fails WHEN timed THEN its status and last words are the message."""
    with pytest.raises(RunFailed, match="exit status 3: oh no"):
        timed(["sh", "-c", "echo oh no >&2; exit 3"], tmp_path, {"PATH": "/usr/bin:/bin"})


def test_works_are_told_apart(tmp_path: Path) -> None:
    """GIVEN the table of works WHEN looked at THEN names differ and every command can be made."""
    assert len({one.name for one in WORKS}) == len(WORKS)
    assert all(one.command(tmp_path, 1) for one in WORKS)
    assert all((one.client is None) == (one.stop is None) for one in WORKS)
