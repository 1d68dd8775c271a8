"""What a text is compared with: a regular expression, and what can be told of it without running it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass

_WILD = "*?["


@dataclass(frozen=True, slots=True)
class Pattern:
    """Texts that match, by `test`.

    Each text that matches contains `literal`. With `inside` the opposite holds, too: each text that contains
    it matches.
    """

    test: Callable[[str], object]
    literal: str = ""
    inside: bool = False

    def match(self, text: str) -> bool:
        """Whether the text matches."""
        return self.literal in text if self.inside else bool(self.test(text))

    @staticmethod
    def of(text: str) -> Pattern:
        """What `~ "text"` means: a shell pattern, or without `*`, `?` and `[` any text that contains it."""
        if any(mark in text for mark in _WILD):
            plain = re.split(r"[*?]", text.partition("[")[0])
            return Pattern(re.compile(fnmatch.translate(text)).match, max(plain, key=len))
        return Pattern.containing(text)

    @staticmethod
    def containing(text: str) -> Pattern:
        """Matches where the text is some part of a text."""
        return Pattern(re.compile(re.escape(text)).search, text, inside=True)

    @staticmethod
    def equal(text: str) -> Pattern:
        """Matches the text and no other."""
        return Pattern(re.compile(re.escape(text)).fullmatch, text)

    @staticmethod
    def within(expression: str, flags: int = 0) -> Pattern:
        """Matches where the regular expression matches some part of the text. `re.error` where it is none."""
        return Pattern(re.compile(expression, flags | re.DOTALL).search)
