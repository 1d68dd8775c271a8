"""The plain command lines of `record` and `replay`, read without click: importing it is a fifth of a start.

Only what needs no help, no completion and no error message is taken: every other command line is click's,
which reads these words the same way (a test compares the two).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

CHECKSUM_EVERY = 1000
_SPELT = "--checksum="


def plain(words: Sequence[str]) -> Callable[[], int] | None:
    """What runs the command line and returns its exit status; None where click has to read it."""
    read = {"record": _record, "replay": _replay}.get(words[0]) if words else None
    return read(words[1:]) if read is not None else None


def _record(words: Sequence[str]) -> Callable[[], int] | None:
    from rr_py.recording import record_words

    trace: str | None = None
    checksum: int | None = None
    quiet = False
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        word = words[at]
        at += 1
        if word in ("-q", "--quiet"):
            quiet = True
        elif word in ("-o", "--output") and at < len(words) and words[at] and not words[at].startswith("-"):
            trace = words[at]
            at += 1
        elif word == "--checksum":
            checksum = CHECKSUM_EVERY
        elif word.startswith(_SPELT) and _is_count(word[len(_SPELT) :]):
            checksum = int(word[len(_SPELT) :])
        else:
            return None
    program = tuple(words[at + 1 :] if at < len(words) and words[at] == "--" else words[at:])
    if not program:
        return None
    return partial(record_words, program, trace=trace, checksum=checksum, quiet=quiet)


def _replay(words: Sequence[str]) -> Callable[[], int] | None:
    from rr_py.replaying import run

    trace: str | None = None
    verify = silent = False
    for word in words:
        if word == "--verify":
            verify = True
        elif word in ("-q", "--no-output"):
            silent = True
        elif word and not word.startswith("-") and trace is None:
            trace = word
        else:
            return None
    return partial(run, trace, verify=verify, silent=silent)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0
