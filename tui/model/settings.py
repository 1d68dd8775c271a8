"""What the user has chosen: keys from a TOML file, columns and theme as the interface keeps them."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import platformdirs

from interfaces.errors import ExitStatus, RrPyError


class SettingsError(RrPyError):
    """The user's key file cannot be used."""


def keys_path() -> Path:
    """Where the user's keys are: `keys.toml` in the configuration folder, or what $RR_PY_KEYS names."""
    named = os.environ.get("RR_PY_KEYS")
    return Path(named) if named else Path(platformdirs.user_config_dir("rr-py")) / "keys.toml"


def load_keys(known: Iterable[str], path: Path | None = None) -> dict[str, str]:
    """The keys of the user's file, by action: `{"find.search": "ctrl+f"}`; empty where there is no file.

    The file has a table `[keys]` with lines such as `"find.search" = "ctrl+f"` (several keys separated by
    commas; "" for none). SettingsError says what is wrong with it.
    """
    place = path if path is not None else keys_path()
    try:
        text = place.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as why:
        raise _wrong(place, f"cannot be read: {why}") from why
    try:
        table = tomllib.loads(text).get("keys", {})
    except tomllib.TOMLDecodeError as why:
        raise _wrong(place, str(why)) from why
    if not isinstance(table, dict):
        raise _wrong(place, "[keys] is not a table")
    names = list(known)
    found: dict[str, str] = {}
    for name, keys in _flat(table):
        if name not in names:
            close = get_close_matches(name, names, n=1)
            raise _wrong(place, f"no action {name!r}" + (f"; did you mean {close[0]}?" if close else ""))
        if not isinstance(keys, str):
            raise _wrong(place, f"the keys of {name!r} are not a text")
        found[name] = keys.replace(" ", "")
    return found


def _flat(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """`find.search = ...` is a table within a table in TOML, unless it is quoted; both are meant alike."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _wrong(path: Path, problem: str) -> SettingsError:
    return SettingsError(f"{path}: {problem}", "Correct the file, or move it away.", ExitStatus.TOOL_FAILED)


COLUMNS = ("row", "time", "thread", "call", "result", "duration")
DEFAULT_WIDTHS = {"row": 9, "time": 12, "thread": 14, "call": 0, "result": 12, "duration": 8}
"""Characters of each column; 0 takes what is left."""
WIDTH_MAX = 60


@dataclass(slots=True)
class Settings:
    """Columns in their order with their widths, those that are hidden, and the theme."""

    widths: dict[str, int] = field(default_factory=lambda: dict(DEFAULT_WIDTHS))
    hidden: set[str] = field(default_factory=set)
    theme: str = ""
    environment: str = ""

    @staticmethod
    def path() -> Path:
        """The file they are kept in."""
        return Path(platformdirs.user_state_dir("rr-py")) / "tui.json"

    @classmethod
    def load(cls) -> Settings:
        """What was kept; defaults where that is missing or damaged."""
        settings = cls()
        try:
            found = json.loads(cls.path().read_text("utf-8"))
            for name, width in found["widths"].items():
                if name in settings.widths and isinstance(width, int):
                    settings.widths[name] = max(0, min(width, WIDTH_MAX))
            settings.hidden = {str(name) for name in found["hidden"]} & (set(COLUMNS) - {"call"})
            settings.theme = str(found["theme"])
            settings.environment = str(found["environment"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return settings

    def save(self) -> None:
        """Keep them; a folder that cannot be written to is no reason to fail."""
        document = {
            "widths": self.widths,
            "hidden": sorted(self.hidden),
            "theme": self.theme,
            "environment": self.environment,
        }
        with contextlib.suppress(OSError):
            self.path().parent.mkdir(parents=True, exist_ok=True)
            self.path().write_text(json.dumps(document) + "\n", "utf-8")
