"""The engine of library interfaces: C stubs that Frida puts into a program, the memory shared with it."""

from interposer.library.engine import Engine, Plan
from interposer.library.errors import EngineError

__all__ = ["Engine", "EngineError", "Plan"]
