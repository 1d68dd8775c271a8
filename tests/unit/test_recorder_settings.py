"""Environment settings that recording adds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from recorder.settings import needed


def test_an_openmp_program_waits_passively(tmp_path: Path) -> None:
    # GIVEN a program that links an OpenMP library, and one that does not
    source = tmp_path / "p.c"
    source.write_text("#include <omp.h>\nint main(void) { return omp_get_max_threads() == 0; }\n")
    subprocess.run(["gcc", "-fopenmp", "-o", "team", source.name], cwd=tmp_path, check=True)
    # THEN only the first gets the setting, by path or by name, and never over the user's own
    assert needed("./team", {}, str(tmp_path)) == {"OMP_WAIT_POLICY": "passive"}
    assert needed("team", {"PATH": str(tmp_path)}) == {"OMP_WAIT_POLICY": "passive"}
    assert needed("./team", {"OMP_WAIT_POLICY": "active"}, str(tmp_path)) == {}
    assert needed("true", {"PATH": os.environ["PATH"]}) == {}


def test_what_cannot_be_read_needs_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    assert needed(str(empty), {}) == needed(str(tmp_path), {}) == needed("no-such-program-here", {}) == {}
