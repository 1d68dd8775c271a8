"""What is wrong with an interface file."""

from __future__ import annotations

from interfaces.errors import RrPyError


class SpecError(RrPyError):
    """An interface file that cannot be used; the message names file, function and key."""

    def __init__(self, file: str, where: str, key: str, problem: str, remedy: str = "") -> None:
        place = ", ".join(part for part in (where, f"key {key!r}" if key else "") if part)
        super().__init__(
            f"{file}: {place}: {problem}" if place else f"{file}: {problem}",
            remedy or "See docs/interfaces.md.",
        )
        self.file, self.where, self.key = file, where, key


class MissingPackageError(RrPyError):
    """An optional package that library interfaces need is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"library interfaces need the package {package}, which is not installed",
            "Install it with: pip install 'rr-py[library]'",
        )
