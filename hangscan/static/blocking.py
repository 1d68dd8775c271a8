"""Which functions block, for a static search: names of the built-in patterns and of the store's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from hangscan.knowledge import Pattern, builtin
from hangscan.store import Learnt, PatternStore, default_path
from replayer.backtrace import StackFrame

_CALLS = {
    "file": ("fsync", "fdatasync", "statfs", "statvfs", "fopen", "open", "openat", "stat", "lstat", "access",
             "opendir", "readdir", "rename", "unlink", "sync", "statfs64", "statvfs64", "fopen64", "open64",
             "stat64", "lstat64", "opendir64", "readdir64"),
    "child": ("wait", "waitpid", "wait4", "popen", "system"),
    "socket": ("connect", "accept", "recv", "send", "recvfrom", "sendto"),
    "filelock": ("lockf", "flock"),
}  # fmt: skip
_NOT = frozenset(
    {"pthread_mutex_lock", "g_mutex_lock", "QMutex::lock", "dlopen", "realpath", "glob", "connect", "accept",
     "recv", "send", "recvfrom", "sendto", "pthread_rwlock_rdlock", "g_rec_mutex_lock", "XInternAtom",
     "g_cond_wait", "pthread_cond_wait", "SSL_read", "SSL_write"}
)  # fmt: skip
"""Called everywhere, and seldom for long: only dynamic evidence counts for these."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Why a function is said to block, and what to do instead."""

    kind: str
    operation: str
    pattern: Pattern | None
    fix: str
    source: str = "built in"

    def advice(self, toolkit: str) -> str:
        """What to call instead in a program of this toolkit."""
        return self.pattern.advice(toolkit) if self.pattern is not None else self.fix


@dataclass(slots=True)
class Blocking:
    """Looks functions up by the names that binaries and Python code call them by."""

    learnt: dict[str, Learnt] = field(default_factory=dict)
    _native: dict[str, Blocks | None] = field(default_factory=dict)
    _python: dict[str, Pattern] = field(default_factory=dict)

    @classmethod
    def load(cls, store: Path | None) -> Blocking:
        """With the learnt patterns of a store (None: the user's own, if there is one)."""
        path = store or default_path()
        learnt: dict[str, Learnt] = {}
        if store is not None or path.exists():
            with PatternStore(path, create=False) as patterns:
                for one in patterns.all():
                    learnt.setdefault(one.suffix[-1], one)
        found = cls(learnt)
        for pattern in builtin().patterns.rules:
            for name in pattern.call:
                found._python[name] = pattern
        return found

    def native(self, name: str) -> Blocks | None:
        """Whether a function of a binary blocks, by its (demangled, short) name."""
        if name not in self._native:
            self._native[name] = self._find(name)
        return self._native[name]

    def python(self, name: str) -> Pattern | None:
        """Whether what Python code calls by this dotted name blocks."""
        return self._python.get(name)

    def python_names(self) -> Iterable[str]:
        """All dotted names that block."""
        return self._python.keys()

    def _find(self, name: str) -> Blocks | None:
        if name in _NOT or name.startswith("g_settings_get_"):
            return None
        learnt = self.learnt.get(name)
        if learnt is not None and not name.startswith(("g_main_", "gtk_main", "g_signal_", "g_closure_")):
            return Blocks(
                learnt.kind, learnt.operation, None, learnt.fix, f"learnt, seen in {learnt.seen} traces"
            )
        pattern = builtin().patterns.match(StackFrame(name, "", 0, "", "native"))
        if pattern is not None and pattern.toolkit not in ("Python", "sqlite3", "requests"):
            return Blocks(pattern.kind, pattern.operation, pattern, pattern.fix)
        for kind, names in _CALLS.items():
            if name in names:
                from hangscan.knowledge import default_fix

                return Blocks(kind, name, None, default_fix(kind, ""))
        return None
