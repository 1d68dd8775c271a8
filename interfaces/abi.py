"""Python's mirror of interposer/core/abi.h: constants, the event array's dtype, shared-memory structures.

Names are those of the header without `RR_`. tests/unit/test_abi.py compiles a program that prints every
size, offset and constant of the header and compares.
"""

import ctypes
import struct
from collections.abc import Iterator
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    EVENT_DTYPE: np.dtype[np.void]

ABI_VERSION = 1

BASE = 0x7EA000000000
TEXT = BASE
DATA = BASE + 0x200000
GLOBAL = BASE + 0x800000
FILES = GLOBAL + 0x1000
OFFERS_MAX = 64
RING = BASE + 0x1000000
BOOT = BASE + 0x2000000
THREADS = BASE + 0x10000000
THREAD_STRIDE = 0x40000
MAX_THREADS = 32768
SCRATCH = BASE + 0x400000000
END = BASE + 0x1000000000

FD_HELLO = 0
FD_IMAGE = 1
FD_GLOBAL = 2
FD_CONTROL = 3
FD_OUT = 4
FD_ERR = 5
FD_SPARE = 6
FD_DIRTY = 7
FD_COUNT = 8


class Kind(IntEnum):
    """What an event is."""

    SYSCALL = 1
    RELEASE = 2
    SIGNAL = 3
    RDTSC = 4
    CPUID = 5
    TASK_START = 6
    TASK_EXIT = 7
    EXEC = 8
    FORK = 9
    PREEMPT = 10
    YIELD = 11
    DATA = 12
    CHECKSUM = 13
    DEATH = 14
    EXECED = 15
    STOPPED = 16
    RESUME = 17
    LIBCALL = 18
    JOIN = 19
    JOINED = 20


RESTART = -512
"""Result of a call that a signal interrupted and that will be made again."""


class EventFlag(IntFlag):
    """Bits of an event's `flags`."""

    PRECISE = 1
    ECHO_OUT = 2
    ECHO_ERR = 4
    BLOCKED = 8
    UNKNOWN = 16
    PATCHED = 32


class SignalPlace(IntEnum):
    """How a signal event relates to the code around it (`args[0]`)."""

    ENTRY = 1
    EXIT = 2
    FAULT = 3
    PREEMPT = 4


class RegionKind(IntEnum):
    """What a payload region holds."""

    OUT = 1
    IN = 2
    FILE = 3
    SEQ = 4
    REGS = 5
    INFO = 6
    PATH = 7
    DOMAIN = 8
    SIZE = 9
    LENGTH = 10
    FILL = 11


EVENT_SIZE = 96
EVENT_FIELDS = [
    ("task", "<u4"),
    ("kind", "u1"),
    ("flags", "u1"),
    ("nr", "<u2"),
    ("ip", "<u8"),
    ("args", "<u8", (6,)),
    ("result", "<i8"),
    ("time_in", "<u8"),
    ("time_out", "<u8"),
    ("payload_off", "<u4"),
    ("payload_len", "<u4"),
]
"""The fields of struct rr_event, as numpy names them; EVENT_DTYPE is their dtype."""

REGION_HEADER = struct.Struct("<QIBBH")
MAPPED = struct.Struct("<II")
FILL = struct.Struct("<QQ")
FILL_MIN, FILL_MAX = 64, 65536
FILLS_MAX = 0x2000000

SLOTS = 8
SLOT_SIZE = 0x100000
SLOT_EVENTS = 4096
SLOT_EVENTS_OFF = 64
SLOT_PAYLOAD_OFF = SLOT_EVENTS_OFF + SLOT_EVENTS * EVENT_SIZE
SLOT_PAYLOAD_MAX = SLOT_SIZE - SLOT_PAYLOAD_OFF
RING_CTL = 0x10000
GLOBAL_SIZE = 0x20000
FILES_MAX, FILE_SITES_MAX = 512, 16384
RING_SIZE = RING_CTL + SLOTS * SLOT_SIZE
TURN_WORDS = 4096
RING_MAGIC = 0x676E7272
GLOBAL_MAGIC = 0x6C677272


class SlotState(IntEnum):
    """Who may use a slot."""

    FREE = 0
    OPEN = 1
    SEALED = 2


class RingState(IntEnum):
    """What a domain (or the whole session, in `Global.mode`) is doing."""

    RECORDING = 1
    UNRECORDED = 2
    REPLAYING = 3


class Divergence(IntEnum):
    """Why a replay stopped."""

    NONE = 0
    CALL = 1
    ARGS = 2
    IP = 3
    INPUT = 4
    FAULT = 5
    CHECKSUM = 6
    MEMORY = 7
    END = 8
    KIND = 9


class Stop(IntEnum):
    """Why a recording stopped while its program went on."""

    NONE = 0
    RECORDER = 1
    DISK = 2
    REQUEST = 3


class GlobalFlag(IntFlag):
    """Bits of `Global.flags`."""

    NO_PATCH = 1
    ONE_DOMAIN = 2
    NO_FAULT_CPUID = 4
    WATCH_CODE = 8
    STAMP = 16
    LATE_FAULT = 32


class KnownFlag(IntFlag):
    """Bits of `KnownFile.flags`."""

    CODE = 1
    OWN = 2
    SHARED = 4


class Msg(IntEnum):
    """Types of messages between the core and the tool."""

    HELLO_EXEC = 1
    HELLO_FORK = 2
    SEALED = 3
    EXEC = 4
    EXEC_FAILED = 5
    MAP_FILE = 6
    REPORT = 7
    DEATH = 8
    IMAGE_UNSAFE = 9
    SHARE = 10
    JOINED = 11
    NEED_RING = 16
    NEED_FILE = 17
    STUCK = 18
    TASK = 19


class Share(IntEnum):
    """What is about to be shared (`a` of a `Msg.SHARE`)."""

    FILE = 1
    SYSV = 2
    ALL = 3


class Report(IntEnum):
    """What a `Msg.REPORT` tells (its `a`)."""

    UNKNOWN_CALL = 1
    UNKNOWN_IOCTL = 2
    SHARED_OUTSIDE = 3
    SHARED_LATE = 4
    REFUSED = 5
    SECCOMP = 6
    GS = 7
    COMPAT = 8
    PTRACE = 9
    FOREIGN_WRITE = 10


class BootOp(IntEnum):
    """Steps of a boot plan."""

    MAP = 1
    DATA = 2
    STACK = 3
    BRK = 4
    PATCH = 5
    START = 6


_u8, _u32, _u64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64


class Event(ctypes.LittleEndianStructure):
    """struct rr_event."""

    _fields_ = [
        ("task", _u32),
        ("kind", _u8),
        ("flags", _u8),
        ("nr", ctypes.c_uint16),
        ("ip", _u64),
        ("args", _u64 * 6),
        ("result", ctypes.c_int64),
        ("time_in", _u64),
        ("time_out", _u64),
        ("payload_off", _u32),
        ("payload_len", _u32),
    ]


class Slot(ctypes.LittleEndianStructure):
    """struct rr_slot: the first 64 bytes of each slot."""

    _fields_ = [
        ("state", _u32),
        ("nevents", _u32),
        ("payload_used", _u32),
        ("last", _u32),
        ("first_event", _u64),
        ("sequence", _u64),
        ("pad", _u8 * 32),
    ]


class Ring(ctypes.LittleEndianStructure):
    """struct rr_ring: the control area at the start of a ring."""

    _fields_ = [
        ("magic", _u32),
        ("version", _u32),
        ("domain", _u32),
        ("state", _u32),
        ("event_count", _u64),
        ("sequence", _u64),
        ("baton", _u32),
        ("last_holder", _u32),
        ("grants", _u32),
        ("ntasks", _u32),
        ("held_since", _u64),
        ("stopped_tasks", _u32),
        ("pending_signals", _u32),
        ("pending_since", _u64),
        ("one_domain", _u64),
        ("death_signal", _u32),
        ("exit_code", _u32),
        ("exited", _u32),
        ("stop_reason", _u32),
        ("stop_at", _u64),
        ("stopped", _u32),
        ("stopped_tid", _u32),
        ("diverged", _u32),
        ("diverged_tid", _u32),
        ("found", Event),
        ("diverged_event", _u64),
        ("diverged_regs", _u64),
        ("waiting_output", _u32),
        ("owner", _u32),
        ("waiting_seq", _u64),
        ("checksum_every", _u64),
        ("wanting", _u64),
        ("spin_patience", _u64),
        ("stops", _u64),
        ("reserved", _u64 * 5),
        ("turn", _u32 * TURN_WORDS),
    ]


FILE_WRITES = 16


class FileWrite(ctypes.LittleEndianStructure):
    """struct rr_file_write: a part of a file that was written."""

    _fields_ = [("dev", _u64), ("ino", _u64), ("from", _u64), ("to", _u64), ("size", _u64)]


class Global(ctypes.LittleEndianStructure):
    """struct rr_global: the page all processes of a session share."""

    _fields_ = [
        ("magic", _u32),
        ("version", _u32),
        ("mode", _u32),
        ("tool_pid", _u32),
        ("fd_base", _u32),
        ("next_domain", _u32),
        ("output_seq", _u64),
        ("output_lock", _u32),
        ("flags", _u32),
        ("out_dev", _u64),
        ("out_ino", _u64),
        ("out_rdev", _u64),
        ("err_dev", _u64),
        ("err_ino", _u64),
        ("err_rdev", _u64),
        ("checksum_every", _u64),
        ("slice_ns", _u64),
        ("replay_echo", _u64),
        ("seed", _u64),
        ("tsc_start", _u64),
        ("tsc_start_ns", _u64),
        ("tsc_rate", _u64),
        ("reserved", _u64 * 13),
        ("mapped_generation", _u32),
        ("writes_lock", _u32),
        ("writes", _u64),
        ("file_writes", FileWrite * FILE_WRITES),
    ]


class KnownFile(ctypes.LittleEndianStructure):
    """struct rr_known_file: a file that stays as it is, and the answer to who maps it."""

    _fields_ = [
        ("dev", _u64),
        ("ino", _u64),
        ("size", _u64),
        ("mtime", _u64),
        ("mtime_nsec", _u64),
        ("ctime", _u64),
        ("ctime_nsec", _u64),
        ("file", _u32),
        ("flags", _u32),
        ("nsites", _u32),
        ("first_site", _u32),
    ]


class KnownFiles(ctypes.LittleEndianStructure):
    """struct rr_known_files: behind struct rr_global, at FILES."""

    _fields_ = [
        ("count", _u32),
        ("nsites", _u32),
        ("files", KnownFile * FILES_MAX),
        ("sites", _u32 * FILE_SITES_MAX),
    ]


class Offer(ctypes.LittleEndianStructure):
    """struct rr_offer: a file of the trace that the tool keeps open while it replays."""

    _fields_ = [
        ("file", _u32),
        ("fd", _u32),
        ("shift", _u64),
    ]


class Offers(ctypes.LittleEndianStructure):
    """struct rr_offers: in a replay, at FILES."""

    _fields_ = [
        ("count", _u64),
        ("offers", Offer * OFFERS_MAX),
    ]


class MsgStruct(ctypes.LittleEndianStructure):
    """struct rr_msg: one datagram."""

    _fields_ = [
        ("type", _u32),
        ("result", ctypes.c_int32),
        ("pid", _u32),
        ("tid", _u32),
        ("a", _u64),
        ("b", _u64),
        ("c", _u64),
        ("d", _u64),
    ]


class Boot(ctypes.LittleEndianStructure):
    """struct rr_boot: one step of a boot plan."""

    _fields_ = [
        ("op", _u32),
        ("prot", _u32),
        ("file", _u32),
        ("flags", _u32),
        ("addr", _u64),
        ("len", _u64),
        ("off", _u64),
    ]


class Region(NamedTuple):
    """One payload region: `data` is what memory at `addr` held, or what `kind` says."""

    addr: int
    kind: RegionKind
    arg: int
    data: bytes
    full_hi: int = 0


def iter_regions(payload: bytes | bytearray | memoryview) -> Iterator[Region]:
    """Yield the regions of one event's payload; ValueError where the bytes are not whole regions.

    A FILL region comes out as the OUT region that it stands for; those of an event unfold to `FILLS_MAX`
    bytes at most.
    """
    view = memoryview(payload)
    at, end, unfolded = 0, len(view), 0
    while at < end:
        if end - at < REGION_HEADER.size:
            raise ValueError(f"payload offset {at}: {end - at} bytes left, a region header needs 16")
        addr, length, kind, arg, full_hi = REGION_HEADER.unpack_from(view, at)
        at += REGION_HEADER.size
        if length > end - at:
            raise ValueError(f"payload offset {at}: region of {length} bytes, {end - at} left")
        try:
            region_kind = RegionKind(kind)
        except ValueError:
            raise ValueError(f"payload offset {at - 16}: region kind {kind} is not known") from None
        data = bytes(view[at : at + length])
        if region_kind == RegionKind.FILL:
            data = _unfolded(data, at)
            region_kind = RegionKind.OUT
            unfolded += len(data)
            if unfolded > FILLS_MAX:
                raise ValueError(f"payload offset {at}: the event's filled memory is over {FILLS_MAX} bytes")
        yield Region(addr, region_kind, arg, data, full_hi)
        at += (length + 7) & ~7


def _unfolded(data: bytes, at: int) -> bytes:
    """The memory that a FILL region stands for."""
    if len(data) != FILL.size:
        raise ValueError(f"payload offset {at}: a fill of {len(data)} bytes instead of {FILL.size}")
    length, word = FILL.unpack(data)
    if not FILL_MIN <= length <= FILL_MAX:
        raise ValueError(f"payload offset {at}: a fill of {length} bytes of memory")
    memory: bytes = word.to_bytes(8, "little") * (length // 8 + 1)
    return memory[:length]


def parse_regions(payload: bytes | bytearray | memoryview) -> list[Region]:
    """The regions of one event's payload, in order; ValueError where the bytes are not whole regions."""
    return list(iter_regions(payload))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """EVENT_DTYPE when it is first asked for: importing numpy takes longer than a short recording."""
        if name != "EVENT_DTYPE":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from interfaces.arrays import numpy

        globals()[name] = dtype = numpy().dtype(EVENT_FIELDS)
        return dtype
