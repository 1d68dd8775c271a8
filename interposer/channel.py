"""Messages between the tool and the core: struct rr_msg, one datagram each, with descriptors beside it."""

import array
import os
import socket
import struct
from typing import NamedTuple

_LAYOUT = struct.Struct("<IiIIQQQQ")
_FDS_MAX = 4
_CREDENTIALS = struct.Struct("<iII")
_ANCILLARY = socket.CMSG_SPACE(_FDS_MAX * 4) + socket.CMSG_SPACE(_CREDENTIALS.size)
_FLAGS = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT


class Message(NamedTuple):
    """One message; the meaning of `a` to `d` depends on the type (abi.h)."""

    type: int
    result: int = 0
    pid: int = 0
    tid: int = 0
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0


class Received(NamedTuple):
    """A message, the descriptors that came with it (now the receiver's), and who really sent it."""

    message: Message
    fds: tuple[int, ...]
    sender: int
    """The sender's process id as seen from here; 0 where the channel does not (or did not yet) ask for it."""


class Channel:
    """One end of a SOCK_SEQPACKET pair, never blocking. Receiving gives None when nothing is waiting."""

    def __init__(self, end: socket.socket, *, credentials: bool = False) -> None:
        end.setblocking(False)
        if credentials:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket = end
        self.closed = False

    @classmethod
    def pair(cls, *, credentials: bool = False) -> "tuple[Channel, socket.socket]":
        """Our end and the core's end of a new pair."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours, credentials=credentials), theirs

    @classmethod
    def adopt(cls, fd: int) -> "Channel":
        """The channel behind a descriptor that was received. Raises OSError when it is no socket."""
        return cls(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=fd), credentials=True)

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> Received | None:
        """The next message, None when there is none now; `closed` becomes True when there never will be.

        A datagram that is no message is dropped.
        """
        while True:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(_LAYOUT.size, _ANCILLARY, _FLAGS)
            except (BlockingIOError, InterruptedError):
                return None
            except ConnectionError:
                data, ancillary = b"", []
            if not data:
                self.closed = True
                return None
            fds, sender = _ancillary(ancillary)
            if len(data) == _LAYOUT.size:
                return Received(Message(*_LAYOUT.unpack(data)), fds, sender)
            for fd in fds:
                os.close(fd)

    def send(self, message: Message, extra: bytes = b"", fds: tuple[int, ...] = ()) -> bool:
        """Answer; `extra` follows the message in the same datagram. False when nobody listens (any more)."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._socket.sendmsg([_LAYOUT.pack(*message), extra], ancillary, socket.MSG_NOSIGNAL)
        except (ConnectionError, BlockingIOError):
            return False
        return True

    def close(self) -> None:
        self._socket.close()


def _ancillary(items: list[tuple[int, int, bytes]]) -> tuple[tuple[int, ...], int]:
    fds: tuple[int, ...] = ()
    sender = 0
    for level, kind, data in items:
        if level != socket.SOL_SOCKET:
            continue
        if kind == socket.SCM_RIGHTS:
            whole = array.array("i")
            whole.frombytes(data[: len(data) - len(data) % whole.itemsize])
            fds += tuple(whole)
        elif kind == socket.SCM_CREDENTIALS:
            sender = _CREDENTIALS.unpack(data)[0]
    return fds, sender
