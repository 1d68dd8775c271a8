"""A debugger's view of a timeline: gdb's remote serial protocol, forwards and backwards.

What gdb changes (a register, memory, a call of a function) happens in a copy of the process that is thrown
away as soon as the recorded program goes on; the recording cannot be changed.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import suppress

from interfaces.abi import Kind, RegionKind
from interfaces.errors import RrPyError
from replayer import gdbregs
from replayer.corefile import auxv_bytes
from replayer.debuggee import Debuggee, Stop, Triggers, Watch, Why
from replayer.descriptors import NUMBERS
from replayer.errors import ReplayError
from replayer.gdbagent import AgentError, evaluate
from replayer.gdbmonitor import Monitor
from replayer.gdbpackets import Disconnected, Packets
from replayer.memory import MemoryFault
from replayer.timeline import Timeline
from tracefile import EventView

_SUPPORTED = (
    b"PacketSize=20000;QStartNoAckMode+;qXfer:features:read+;qXfer:auxv:read+;qXfer:exec-file:read+;"
    b"qXfer:threads:read+;qXfer:siginfo:read+;qXfer:siginfo:write+;vContSupported+;ReverseStep+;ReverseContinue+;swbreak+;hwbreak+;"
    b"ConditionalBreakpoints+;QPassSignals+"
)
_SIGINT, _SIGTRAP = 2, 5
_OK = b"OK"
_WAITED_FOR = (b"vCont;", b"b", b"c", b"s", b"qRcmd,")
_LARGEST_READ = 0x10000
_GDB_SIGNALS = {
    1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 10, 8: 8, 9: 9, 10: 30, 11: 11, 12: 31, 13: 13, 14: 14, 15: 15,
    17: 20, 18: 19, 19: 17, 20: 18, 21: 21, 22: 22, 23: 16, 24: 24, 25: 25, 26: 26, 27: 27, 28: 28, 29: 23,
    30: 32, 31: 12, 32: 77, **{number: number + 12 for number in range(33, 64)}, 64: 78,
}  # fmt: skip
"""gdb's own numbers of Linux signals."""
_LINUX_SIGNALS = {number: linux for linux, number in _GDB_SIGNALS.items()}


class Server:
    """Serves one debugger until it is gone. `timeline` stays the caller's."""

    def __init__(self, timeline: Timeline, connection: socket.socket) -> None:
        self.timeline = timeline
        self._packets = Packets(connection)
        self._conditions: dict[int, list[bytes]] = {}
        self._watches: list[Watch] = []
        self._signals = frozenset(_GDB_SIGNALS)
        """Those that gdb wants to hear of."""
        self._tid = timeline.process.tid
        self._spoiled: Debuggee | None = None
        self._before: dict[int, bytes] = {}
        self._stop = b""
        self._ends = False
        self._may_say = False
        self._takes_words = False
        """gdb shows errors in words, too (gdb 16)."""
        self._calling = 0
        self.monitor = Monitor(self)
        timeline.interrupted = self._packets.interrupted
        timeline.progress = self._progress

    def serve(self) -> None:
        """Answer packets until the debugger has gone; never raises for what it sends."""
        try:
            while not self._ends:
                packet = self._packets.receive()
                answer = self._answer(packet)
                if answer is not None:
                    self._packets.send(answer)
                    if packet == b"QStartNoAckMode":
                        self._packets.acknowledge = False
        except Disconnected:
            pass
        finally:
            self._unspoil()
            self.monitor.close()
            self.timeline.interrupted = self.timeline.progress = None

    def say(self, text: str) -> None:
        """Show text in the debugger's console, where the protocol lets us."""
        if self._may_say:
            self._packets.send(b"O" + text.encode().hex().encode())

    @property
    def process(self) -> Debuggee:
        """What is looked at: the timeline's process, or its copy that gdb has changed."""
        return self._spoiled if self._spoiled is not None else self.timeline.process

    @property
    def tid(self) -> int:
        """The thread gdb talks about."""
        return self._tid

    def _progress(self, part: float, what: str) -> None:
        self.say(f"rr-py: {what} ({part:.0%})\n")

    # ---- dispatch ----

    def _answer(self, packet: bytes) -> bytes | None:
        self._may_say = packet.startswith(_WAITED_FOR)
        try:
            for prefix, handler in self._handlers():
                if packet.startswith(prefix):
                    return handler(packet[len(prefix) :])
            return b""
        except (ValueError, IndexError):
            return b"E16"
        except MemoryFault:
            return b"E0e"
        except RrPyError as error:
            with suppress(Disconnected):
                self.say(f"rr-py: {error.message}\n  {error.remedy}\n")
            return b"E." + error.message.split("\n")[0].encode() if self._takes_words else b"E01"

    def _supported(self, rest: bytes) -> bytes:
        self._takes_words = b"error-message+" in rest.split(b";")
        return _SUPPORTED

    def _handlers(self) -> tuple[tuple[bytes, Callable[[bytes], bytes | None]], ...]:
        return (
            (b"m", self._read_memory),
            (b"vCont?", lambda _rest: b"vCont;c;C;s;S;r"),
            (b"vCont;", self._continue),
            (b"g", self._read_registers),
            (b"p", self._read_register),
            (b"H", self._choose_thread),
            (b"Z", self._insert),
            (b"z", self._remove),
            (b"bs", self._step_back),
            (b"bc", self._go_back),
            (b"qXfer:", self._transfer),
            (b"T", self._is_alive),
            (b"X", self._write_binary),
            (b"M", self._write_memory),
            (b"G", self._write_registers),
            (b"P", self._write_register),
            (b"?", lambda _rest: self._stop or self._stop_reply(_SIGTRAP)),
            (b"qSupported", self._supported),
            (b"QPassSignals:", self._pass_signals),
            (b"QStartNoAckMode", lambda _rest: _OK),
            (b"qfThreadInfo", lambda _rest: b"m" + b",".join(b"%x" % tid for tid in self._tids())),
            (b"qsThreadInfo", lambda _rest: b"l"),
            (b"qThreadExtraInfo,", self._thread_text),
            (b"qC", lambda rest: b"" if rest else b"QC%x" % self._tid),
            (b"qAttached", lambda _rest: b"1"),
            (b"qSymbol", lambda _rest: _OK),
            (b"qRcmd,", lambda rest: self.monitor.run(bytes.fromhex(rest.decode()).decode())),
            (b"!", lambda _rest: _OK),
            (b"vRun", self._run_again),
            (b"R", lambda _rest: None),
            (b"vKill", lambda _rest: _OK),
            (b"D", self._end),
            (b"k", self._killed),
            (b"c", lambda _rest: self._continue(b"c")),
            (b"s", lambda _rest: self._continue(b"s")),
        )

    def _end(self, _rest: bytes) -> bytes:
        self._ends = True
        return _OK

    def _killed(self, _rest: bytes) -> None:
        self._ends = True

    def _run_again(self, _rest: bytes) -> bytes:
        self._unspoil()
        self.timeline.seek(self.timeline.first)
        return self._stop_reply(_SIGTRAP)

    # ---- threads ----

    def _tids(self) -> list[int]:
        return [block.tid for block in self.process.threads()] or [self._tid]

    def _choose_thread(self, rest: bytes) -> bytes:
        tid = int(rest[1:].split(b".")[-1], 16) if rest[1:] not in (b"-1", b"0") else self.process.tid
        if tid not in self._tids():
            return b"E03"
        self._tid = tid
        return _OK

    def _is_alive(self, rest: bytes) -> bytes:
        return _OK if int(rest.split(b".")[-1], 16) in self._tids() else b"E03"

    def _thread_text(self, rest: bytes) -> bytes:
        tid = int(rest.split(b".")[-1], 16)
        return self.monitor.thread_text(tid).encode().hex().encode()

    # ---- registers ----

    def _values(self) -> list[bytes]:
        try:
            return gdbregs.values(self.process.state(self._tid))
        except MemoryFault:
            return [b""] * len(gdbregs.ALL)

    def _read_registers(self, _rest: bytes) -> bytes:
        return b"".join(
            value.hex().encode() or b"xx" * (one.bits // 8)
            for one, value in zip(gdbregs.ALL, self._values(), strict=True)
        )

    def _read_register(self, rest: bytes) -> bytes:
        number = int(rest, 16)
        if number >= len(gdbregs.ALL):
            return b"E16"
        return self._values()[number].hex().encode() or b"xx" * (gdbregs.ALL[number].bits // 8)

    def _write_registers(self, rest: bytes) -> bytes:
        data = bytes.fromhex(rest.decode().replace("x", "0"))
        wanted: dict[str, int] = {}
        at = 0
        for one in gdbregs.ALL:
            wanted[one.name] = int.from_bytes(data[at : at + one.bits // 8], "little")
            at += one.bits // 8
        return self._set(wanted)

    def _write_register(self, rest: bytes) -> bytes:
        number, _equals, value = rest.partition(b"=")
        one = gdbregs.ALL[int(number, 16)]
        return self._set({one.name: int.from_bytes(bytes.fromhex(value.decode()), "little")})

    def _set(self, wanted: dict[str, int]) -> bytes:
        if self._tid != self.process.tid:
            raise ReplayError(
                "registers can be changed, and functions called, in the thread that stopped", "See `when`."
            )
        self._spoil().set_registers(self._tid, wanted)
        return _OK

    # ---- memory ----

    def _read_memory(self, rest: bytes) -> bytes:
        address, size = (int(word, 16) for word in rest.split(b","))
        size = min(size, _LARGEST_READ)
        try:
            return self.process.read(address, size).hex().encode()
        except MemoryFault:
            page = -address % 4096
            if 0 < page < size:
                return self.process.read(address, page).hex().encode()
            raise

    def _write_memory(self, rest: bytes) -> bytes:
        head, _colon, data = rest.partition(b":")
        return self._write(head, bytes.fromhex(data.decode()))

    def _write_binary(self, rest: bytes) -> bytes:
        head, _colon, data = rest.partition(b":")
        return self._write(head, data)

    def _write(self, head: bytes, data: bytes) -> bytes:
        address, size = (int(word, 16) for word in head.split(b","))
        if not size:
            return _OK
        self._spoil().write(address, data[:size])
        return _OK

    # ---- the copy that may be changed ----

    def _spoil(self) -> Debuggee:
        """The copy; made now if there is none."""
        if self._spoiled is None:
            self._before = self._all_registers(self.timeline.process)
            self._spoiled = self.timeline.process.copy(alone=True)
            self._spoiled.divert()
            self._spoiled.show_output(True)
        return self._spoiled

    def _all_registers(self, process: Debuggee) -> dict[int, bytes]:
        found = {}
        for block in process.threads():
            with suppress(MemoryFault):
                found[block.tid] = b"".join(gdbregs.values(process.state(block.tid))[:17])
        return found

    def _unspoil(self) -> None:
        if self._spoiled is not None:
            self._spoiled.close()
            self._spoiled = None

    def _calls(self) -> bool:
        """Whether gdb is about to run code in the copy: it has changed the registers."""
        if self._spoiled is None:
            return False
        return self._all_registers(self._spoiled) != self._before

    # ---- breakpoints ----

    def _insert(self, rest: bytes) -> bytes:
        kind, address, size, conditions = _breakpoint(rest)
        if kind in (0, 1):
            self._conditions[address] = conditions
            return _OK
        pieces = _pieces(address, size, reads=kind != 2)
        if len({*self._watches, *pieces}) > 4:
            return b"E1c"
        self._watches = [*self._watches, *(one for one in pieces if one not in self._watches)]
        return _OK

    def _remove(self, rest: bytes) -> bytes:
        kind, address, size, _conditions = _breakpoint(rest)
        if kind in (0, 1):
            self._conditions.pop(address, None)
        else:
            gone = _pieces(address, size, reads=kind != 2)
            self._watches = [one for one in self._watches if one not in gone]
        return _OK

    def _pass_signals(self, rest: bytes) -> bytes:
        """Those that gdb does not want to hear of (`handle SIGNAL nostop noprint pass`)."""
        quiet = {_LINUX_SIGNALS.get(int(word, 16), 0) for word in rest.split(b";") if word}
        self._signals = frozenset(_GDB_SIGNALS.keys() - quiet)
        return _OK

    def triggers(self) -> Triggers:
        """What gdb has set."""
        return Triggers(frozenset(self._conditions), tuple(self._watches), signals=self._signals)

    def _condition(self, process: Debuggee) -> bool:
        """Whether gdb wants to know of a stop of the process where it is."""
        with suppress(MemoryFault):
            state = process.state(process.tid)
            codes = self._conditions.get(state.registers.rip)
            if not codes:
                return True
            values = gdbregs.values(state)

            def register(number: int) -> int:
                return int.from_bytes(values[number], "little")

            for code in codes:
                try:
                    if evaluate(code, register, process.read):
                        return True
                except AgentError:
                    return True
            return False
        return True

    def _wants_condition(self) -> Callable[[Debuggee], bool] | None:
        return self._condition if any(self._conditions.values()) else None

    # ---- going on and back ----

    def _continue(self, rest: bytes) -> bytes:
        action = _action(rest, self._tid)
        if self._calls():
            return self._run_call(*action)
        if self._spoiled is not None:
            self.say("rr-py: what you changed is undone: the program goes on as it was recorded\n")
            self._unspoil()
        self._calling = 0
        what, tid, within = action
        timeline = self.timeline
        if timeline.position.event >= timeline.total and what != "s":
            return self._stop_reply(_SIGTRAP, b"replaylog:end;")
        if what == "c":
            stop = timeline.forward(self.triggers(), self._wants_condition())
        else:
            stop = timeline.step(1, self.triggers(), tid=tid, within=within)
        return self._stopped(stop)

    def _run_call(self, what: str, tid: int, within: tuple[int, int] | None) -> bytes:
        assert self._spoiled is not None
        stop = self._spoiled.go(
            1 << 62,
            Triggers(frozenset(self._conditions)),
            over=True,
            steps=0 if what == "c" else 1,
            tid=tid,
            within=within,
            interrupted=self._packets.interrupted,
        )
        if stop.why is Why.CALL:
            self.say(f"rr-py: system call {stop.signal} cannot be made in a copy that is thrown away\n")
        if stop.why is Why.ENDED:
            self._unspoil()
            return b"X09"
        return self._stopped(stop)

    def _step_back(self, _rest: bytes) -> bytes:
        self._unspoil()
        if not self.timeline.step_back(self._tid):
            return self._stop_reply(_SIGTRAP, b"replaylog:begin;")
        return self._stop_reply(_SIGTRAP)

    def _go_back(self, _rest: bytes) -> bytes:
        self._unspoil()
        self._packets.clear_interrupt()
        stop = self.timeline.backward(self.triggers(), self._wants_condition())
        if stop is None:
            if self._packets.interrupted():
                self._packets.clear_interrupt()
                return self._stop_reply(_SIGINT)
            return self._stop_reply(_SIGTRAP, b"replaylog:begin;")
        if stop.why is Why.WATCH:
            self.timeline.before_hit(self.triggers())
        return self._stopped(stop)

    def _stopped(self, stop: Stop) -> bytes:
        match stop.why:
            case Why.BREAKPOINT:
                return self._stop_reply(_SIGTRAP, b"swbreak:;")
            case Why.WATCH if stop.watch is not None:
                name = b"awatch" if stop.watch.reads else b"watch"
                return self._stop_reply(_SIGTRAP, b"%s:%x;" % (name, stop.watch.address))
            case Why.INTERRUPTED:
                self._packets.clear_interrupt()
                return self._stop_reply(_SIGINT)
            case Why.SIGNAL:
                return self._stop_reply(_GDB_SIGNALS.get(stop.signal, _SIGTRAP))
            case Why.EVENT:
                return self._at_end()
            case Why.ENDED:
                self.say(f"rr-py: {stop.message}\n")
                return self._stop_reply(_SIGTRAP, b"replaylog:end;")
            case _:
                return self._stop_reply(_SIGTRAP)

    def _at_end(self) -> bytes:
        """The log is over: with the signal that the process died of, if it did."""
        timeline = self.timeline
        last = timeline.reader.event(timeline.domain, timeline.total - 1)
        if last.kind == Kind.DEATH:
            return self._stop_reply(_GDB_SIGNALS.get(last.nr, _SIGTRAP))
        self.say(f"rr-py: {self._how_it_ends(last)}\n")
        return self._stop_reply(_SIGTRAP, b"replaylog:end;")

    def _how_it_ends(self, last: EventView) -> str:
        """What comes behind the last event, in words."""
        pid = self.timeline.reader.domains[self.timeline.domain].pid
        if last.kind == Kind.EXECED:
            domain = last.args[0]
            return f"the process executes another program here; to debug that: @{pid}/{domain}"
        if last.kind == Kind.JOIN:
            other = self.timeline.reader.domains[last.args[0]]
            return (
                "the process begins to share memory with another one here, and goes on in its log; "
                f"to debug that: @{other.pid}/{other.domain}"
            )
        if last.nr == NUMBERS["exit_group"]:
            return f"the process exits here, with status {last.args[0] & 0xFF}"
        return "the recording ends here"

    def _stop_reply(self, number: int, why: bytes = b"") -> bytes:
        self._tid = self.process.tid
        self._stop = b"T%02x%sthread:%x;" % (number, why, self._tid)
        return self._stop

    # ---- data gdb reads in pieces ----

    def _transfer(self, rest: bytes) -> bytes:
        if rest.startswith(b"siginfo:write:"):
            return self._call_is_over(rest.split(b":", 4)[-1])
        match = re.fullmatch(rb"([a-z-]+):read:([^:]*):([0-9a-f]+),([0-9a-f]+)", rest)
        if match is None:
            return b""
        if match[1] == b"features" and match[2] != b"target.xml":
            return b"E00"
        data = self._object(match[1].decode())
        if data is None:
            return b""
        offset, size = int(match[3], 16), int(match[4], 16)
        piece = data[offset : offset + size]
        return (b"m" if offset + size < len(data) else b"l") + piece

    def _call_is_over(self, data: bytes) -> bytes:
        """gdb saves the signal's data before it calls a function, and puts them back behind it: the outermost
        of nested calls ends the copy."""
        self._calling = max(self._calling - 1, 0)
        if not self._calling:
            self._unspoil()
        return b"%x" % len(data)

    def _recorded_siginfo(self) -> bytes:
        """Of the signal that is delivered next."""
        event = self.timeline.reader.event(self.timeline.domain, self.timeline.position.event)
        return next((one.data for one in event.regions if one.kind == RegionKind.INFO), b"")

    def _object(self, name: str) -> bytes | None:
        timeline = self.timeline
        info = timeline.reader.domains[timeline.domain]
        match name:
            case "features":
                return gdbregs.description().encode()
            case "auxv":
                return auxv_bytes(timeline.reader, info)
            case "exec-file":
                return self.monitor.executable().encode(errors="surrogateescape")
            case "siginfo":
                self._calling += 1
                if self.timeline.process.signal and self._tid == self.process.tid:
                    return self._recorded_siginfo()
                with suppress(MemoryFault):
                    return self.process.state(self._tid).siginfo
                return b""
            case "threads":
                threads = "".join(
                    f'<thread id="{tid:x}" name="{self.monitor.thread_text(tid)}"/>' for tid in self._tids()
                )
                return f'<?xml version="1.0"?><threads>{threads}</threads>'.encode()
            case _:
                return None


def _breakpoint(rest: bytes) -> tuple[int, int, int, list[bytes]]:
    """Kind, address, size and conditions of a Z or z packet."""
    head, *more = rest.split(b";")
    kind, address, size = head.split(b",")[:3]
    conditions = [
        bytes.fromhex(match[1].decode())
        for part in more
        if part.startswith(b"X")
        for match in re.finditer(rb"X[0-9a-f]+,([0-9a-f]+)", part)
    ]
    return int(kind, 16), int(address, 16), int(size, 16), conditions


def _pieces(address: int, size: int, *, reads: bool) -> list[Watch]:
    """Places the processor can watch that make up a range."""
    pieces = []
    end = address + max(size, 1)
    while address < end:
        piece = next(one for one in (8, 4, 2, 1) if address % one == 0 and address + one <= end)
        pieces.append(Watch(address, piece, reads))
        address += piece
    return pieces


def _action(rest: bytes, tid: int) -> tuple[str, int, tuple[int, int] | None]:
    """The first action that is not plain going on: "c" or "s", of which thread, and in which range."""
    chosen: tuple[str, int, tuple[int, int] | None] = ("c", tid, None)
    for part in rest.split(b";"):
        what, _colon, thread = part.partition(b":")
        who = int(thread.split(b".")[-1], 16) if thread and thread != b"-1" else tid
        kind = what[:1].lower()
        if kind == b"s":
            return "s", who, None
        if kind == b"r":
            start, end = (int(word, 16) for word in what[1:].split(b","))
            return "s", who, (start, end)
    return chosen
