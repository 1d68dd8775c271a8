"""Library interfaces as data: TOML files that say what crosses a library's functions.

from interfaces.libspec import load
interface = load("sqlite3")        # a shipped name, or the path of a file
"""

from interfaces.libspec.errors import SpecError
from interfaces.libspec.load import ADDED, completed, load, load_all, shipped
from interfaces.libspec.model import Callback, Function, Interface, Parameter

__all__ = [
    "ADDED",
    "Callback",
    "Function",
    "Interface",
    "Parameter",
    "SpecError",
    "completed",
    "load",
    "load_all",
    "shipped",
]
