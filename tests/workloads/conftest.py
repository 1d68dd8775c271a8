"""Workloads use the recorder of tests/programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.conftest import Recorder


@pytest.fixture
def rr(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)
