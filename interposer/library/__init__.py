"""The engine of library interfaces: C stubs put into a program by Frida, and the memory they share with the tool."""

from interposer.library.engine import Engine, EngineError, Plan

__all__ = ["Engine", "EngineError", "Plan"]
