"""What an interface file says, after parsing: libraries, functions, callbacks, the roles of their values."""

from __future__ import annotations

from dataclasses import dataclass, field

PART_KINDS = {
    "value": False,
    "handle": False,
    "string": False,
    "strings": None,
    "in": True,
    "out": True,
    "inout": True,
    "data": False,
    "callback": None,
    "ignore": False,
    "object": True,
    "realloc": True,
    "alloc": True,
    "new": False,
    "malloc": False,
    "param": None,
    "free": False,
    "void": False,
    "buffer": True,
}
"""Kinds of roles, and whether each takes an expression in brackets (None: it may, or takes a name)."""


@dataclass(frozen=True, slots=True)
class Part:
    """One role: its kind, and the expression or name that goes with it ("" where there is none)."""

    kind: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Guarded:
    """Roles that hold when the C expression `when` is not zero; "" holds always."""

    when: str
    parts: tuple[Part, ...]

    def has(self, kind: str) -> Part | None:
        return next((part for part in self.parts if part.kind == kind), None)


@dataclass(frozen=True, slots=True)
class CType:
    """A C type as far as recording needs it.

    `text` declares a name put in place of `%s`; `kind` is 'void', 'integer', 'floating', 'pointer',
    'function' (pointer to one) or 'struct'. `pointee` is the text of what a pointer points to.
    """

    text: str
    kind: str
    pointee: str = ""
    pointee_kind: str = ""
    constant: bool = False

    def declare(self, name: str) -> str:
        return self.text.replace("%s", name, 1)

    @property
    def bare(self) -> str:
        return self.text.replace("%s", "", 1).strip()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter and its roles, the first whose condition holds."""

    name: str
    type: CType
    roles: tuple[Guarded, ...]


@dataclass(frozen=True, slots=True)
class Extra:
    """Something a call writes besides what its parameters point to.

    `kind`: 'value' (an lvalue), 'advance' (a pointer moved on in the program's own memory), 'string' (a char
    pointer set to the library's text), 'bytes' (`size` bytes at the pointer `expression`), 'offset' (a
    pointer into the same memory of the program as the pointer `size`), 'pointer' (a pointer of the program
    that the library kept), 'copy' (a pointer to `size` bytes of the library's), 'stream' (what a FILE holds
    ready), 'line' (as getline does: a malloc'd buffer made larger if need be, whose size is in `room`),
    'kept' (`size` bytes at the pointer `expression` that the call does not change: checked while recording).
    `when` is a C condition.
    """

    kind: str
    expression: str
    size: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the interface.

    `live`: C condition under which the call is made in earnest in replay, too, and not logged. `variadic`:
    name of the variant that takes a va_list. `special`: a function the engine knows by name. `release`:
    logged before it is carried out, because what it gives up another thread may take at once. `refuse`: an
    errno with which the call always fails, so that the program takes another way. `symbol`: its name in the
    symbol table, for a function that is not exported.
    """

    name: str
    returns: CType
    result: Guarded
    parameters: tuple[Parameter, ...]
    outputs: tuple[Extra, ...] = ()
    inputs: tuple[Extra, ...] = ()
    errno: bool = False
    release: bool = False
    ordered: bool = False
    live: str = ""
    variadic: str = ""
    special: str = ""
    optional: bool = False
    ends: bool = False
    refuse: int = 0
    symbol: str = ""
    has_dots: bool = False


@dataclass(frozen=True, slots=True)
class Callback:
    """A type of function of the program that the library calls, or, with a `symbol`, the one function of this
    name that the library imports from the program. `result`: what its result is to the library.
    """

    name: str
    returns: CType
    parameters: tuple[Parameter, ...]
    symbol: str = ""
    result: str = "value"


@dataclass(frozen=True, slots=True)
class Interface:
    """A library as a replay interface. `libraries` are sonames; `text` is the file as it was read."""

    name: str
    path: str
    title: str
    libraries: tuple[str, ...]
    types: str
    functions: dict[str, Function] = field(default_factory=dict)
    callbacks: dict[str, Callback] = field(default_factory=dict)
    text: str = ""
