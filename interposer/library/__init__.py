"""The engine of library interfaces: C stubs that Frida puts into a program, the memory shared with it."""

from interposer.library.engine import Engine, EngineError, Plan

__all__ = ["Engine", "EngineError", "Plan"]
