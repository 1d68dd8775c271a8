"""What a scan is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_ENVIRONMENTS = ("hdd", "slow-dns")
DEFAULT_THRESHOLD_MS = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of `scan`. Times in milliseconds.

    `environments` are names of models or paths of TOML files. `critical` are functions whose calls are
    critical paths, `threads` kernel thread ids or thread names whose whole life is. `remote` are globs of
    paths that environment models move like the user's own data. `startup` includes what an event loop's
    thread does before its first wait. `most_stops` bounds how often one process's replay is stopped.
    """

    environments: tuple[str, ...] = DEFAULT_ENVIRONMENTS
    threshold_ms: float = DEFAULT_THRESHOLD_MS
    critical: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    remote: tuple[str, ...] = ()
    pid: int | None = None
    startup: bool = False
    suppressions: Path | None = None
    patterns: Path | None = None
    most_stops: int = 1500
    ignore_cpu: bool = False
    environment_folders: tuple[Path, ...] = field(default=())
