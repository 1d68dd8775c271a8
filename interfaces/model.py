"""The data model of the call table: calls, arguments, and the memory a call touches.

An `Effect` states which bytes at an argument the kernel reads or writes, as a function of arguments and
result. It may state more bytes than the kernel touches (the rest is logged unchanged), never fewer: replay
lives on it. The numbers of the enums here are those of the generated C header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

NO_ARG = 255


class Treat(IntEnum):
    """How replay treats a call."""

    UNKNOWN = 0
    FEED = 1
    REDO = 2
    REFUSE = 3


class Block(IntEnum):
    """Whether a call may wait."""

    NEVER = 0
    MAY = 1
    WAIT = 2


class Op(IntEnum):
    """How the length of an effect is found; generate.py documents each for C."""

    FIXED = 1
    RESULT = 2
    ARG = 3
    BITS = 4
    LENPTR = 5
    STRING = 6
    STRINGS = 7
    IOVEC = 8
    MSGHDR = 9
    MMSGHDR = 10
    PAGES = 11
    CPUMASK = 12
    SPECIAL = 13
    COUNTED = 14
    VIA = 15


class When(IntEnum):
    """Which results an output effect holds for."""

    ALWAYS = 0
    SUCCESS = 1
    POSITIVE = 2


class Special(IntEnum):
    """Effects that no rule expresses; the core handles each by name (Op.SPECIAL, `size`)."""

    SEM_ARRAY = 1
    ETHTOOL = 2


class Flag(IntFlag):
    """What else the core must know about a call.

    FD: the first argument is a descriptor, and what it is decides whether the call waits. PATH: it waits
    for a file system's metadata at most. ECHO: it writes to a descriptor. XFER: it moves data between
    descriptors. NEWFD: the result is a new descriptor (or new ones are in memory). RESTART: the kernel makes
    it again after a handler with SA_RESTART. MASK: it takes a signal mask.
    """

    FD = 1
    PATH = 2
    ECHO = 4
    XFER = 8
    NEWFD = 16
    RESTART = 32
    MASK = 64


FD_ARGS_SHIFT = 16
INT_ARGS_SHIFT = 24

INTS = frozenset({"int", "uint", "fd", "dirfd", "pid", "uid", "msec", "clockid", "socktype", "protocol",
"optname"})
"""Types of arguments that are 32 bits wide."""


@dataclass(frozen=True, slots=True)
class Spec:
    """An effect as declared on an argument: the length is named, not numbered."""

    op: Op
    out: bool
    length: str = ""
    when: When = When.ALWAYS
    size: int = 0
    unit: int = 1
    off: int = 0
    off2: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """Memory at `args[arg]` that the kernel writes (`out`) or reads.

    `len_arg` is the argument that bounds it (`NO_ARG`: none); `size`, `unit`, `off`, `off2` as the
    operation says.
    """

    op: Op
    out: bool
    arg: int
    len_arg: int = NO_ARG
    when: When = When.ALWAYS
    size: int = 0
    unit: int = 1
    off: int = 0
    off2: int = 0


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument: its name, how to show it (`type`, with `of` naming the flag set, enum or layout).

    `count` names the argument (or "result") that counts the elements of an array or the bytes of a buffer.
    """

    name: str
    type: str
    of: str = ""
    count: str = ""
    specs: tuple[Spec, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A call's behaviour for one value of its selector: a request of ioctl, a command of fcntl, ..."""

    key: int
    name: str
    args: tuple[Arg, ...]
    effects: tuple[Effect, ...]
    treat: Treat
    block: Block


@dataclass(frozen=True, slots=True)
class Selector:
    """Which case holds: `((args[arg] >> shift) & mask)`, or with `pair` `args[arg] << 16 | args[arg + 1]`.

    Where no case matches, the call's own effects hold, or with `closed` what it does is not known.
    """

    arg: int
    mask: int = 0xFFFFFFFF
    shift: int = 0
    pair: bool = False
    closed: bool = False

    def key(self, args: tuple[int, ...] | list[int]) -> int:
        """The key that `args` select."""
        if self.pair:
            return (args[self.arg] & 0xFFFF) << 16 | (args[self.arg + 1] & 0xFFFF)
        return ((args[self.arg] & 0xFFFFFFFF) >> self.shift) & self.mask


@dataclass(frozen=True, slots=True)
class Call:
    """One system call.

    `effects` hold when no case of `cases` matches (a case has all arguments and effects); `index` finds
    cases by their key. `waits_on` names what the call may wait for: "fd", "path", "fds", "time", "child",
    "signal", "lock", "disk", "peer", "memory", or None. `family` is the table module it is declared in.
    """

    number: int
    name: str
    args: tuple[Arg, ...]
    effects: tuple[Effect, ...]
    treat: Treat
    block: Block
    waits_on: str | None
    flags: Flag
    family: str
    returns: str = "int"
    selector: Selector | None = None
    cases: tuple[Case, ...] = ()
    index: Mapping[int, Case] = field(default_factory=dict, compare=False, repr=False)

    def case(self, args: tuple[int, ...] | list[int]) -> Case | None:
        """The case that `args` select, None where the call has none for them."""
        if self.selector is None:
            return None
        return self.index.get(self.selector.key(args))

    @property
    def int_mask(self) -> int:
        """Bit i is set where argument i is 32 bits wide: the kernel ignores the upper half."""
        return sum(1 << i for i, arg in enumerate(self.args) if arg.type in INTS)

    @property
    def fd_mask(self) -> int:
        """Bit i is set where argument i is a descriptor (also a directory descriptor)."""
        return sum(1 << i for i, arg in enumerate(self.args) if arg.type in ("fd", "dirfd"))
