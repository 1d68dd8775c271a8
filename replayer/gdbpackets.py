"""Packets of gdb's remote serial protocol on a stream socket."""

from __future__ import annotations

import select
import socket

_INTERRUPT = 0x03
_LARGEST = 1 << 20
_ESCAPED = frozenset(b"#$}*")


class Disconnected(Exception):
    """The debugger has closed the connection, or what it sends is no protocol."""


class Packets:
    """Both directions of one connection. Not for several threads."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        self._socket = connection
        self._buffer = bytearray()
        self._interrupted = False
        self.acknowledge = True

    def receive(self) -> bytes:
        """The next packet's content, unescaped. Raises Disconnected."""
        while True:
            packet = self._take()
            if packet is not None:
                return packet
            self._fill()

    def interrupted(self) -> bool:
        """Whether the debugger asks to stop what runs, or is gone; does not wait."""
        while not self._interrupted and select.select([self._socket], [], [], 0)[0]:
            try:
                self._fill()
            except Disconnected:
                self._interrupted = True
            self._look_for_interrupt()
        return self._interrupted

    def clear_interrupt(self) -> None:
        """What was asked is answered."""
        self._interrupted = False

    def send(self, content: bytes) -> None:
        """Send a packet. Raises Disconnected."""
        escaped = escape(content)
        try:
            self._socket.sendall(b"$%s#%02x" % (escaped, sum(escaped) & 0xFF))
        except OSError:
            raise Disconnected from None

    def _fill(self) -> None:
        try:
            data = self._socket.recv(1 << 16)
        except OSError:
            data = b""
        if not data or len(self._buffer) > _LARGEST:
            raise Disconnected
        self._buffer += data

    def _look_for_interrupt(self) -> None:
        """A lone interrupt byte in front of everything else, or behind acknowledgements."""
        while self._buffer and self._buffer[0] in (0x2B, 0x2D, _INTERRUPT):
            if self._buffer[0] == _INTERRUPT:
                self._interrupted = True
            del self._buffer[0]

    def _take(self) -> bytes | None:
        self._look_for_interrupt()
        start = self._buffer.find(b"$")
        end = self._buffer.find(b"#", start + 1)
        if start < 0 or end < 0 or len(self._buffer) < end + 3:
            return None
        content = bytes(self._buffer[start + 1 : end])
        check = self._buffer[end + 1 : end + 3]
        del self._buffer[: end + 3]
        if self.acknowledge:
            good = check == b"%02x" % (sum(content) & 0xFF)
            try:
                self._socket.sendall(b"+" if good else b"-")
            except OSError:
                raise Disconnected from None
            if not good:
                return None
        return unescape(content)


def escape(content: bytes) -> bytes:
    """With the bytes that mean something in a packet replaced."""
    if not _ESCAPED.intersection(content):
        return content
    return b"".join(b"}%c" % (byte ^ 0x20) if byte in _ESCAPED else b"%c" % byte for byte in content)


def unescape(content: bytes) -> bytes:
    """The opposite of `escape`."""
    if b"}" not in content:
        return content
    result = bytearray()
    bytes_ = iter(content)
    for byte in bytes_:
        result.append(next(bytes_, 0x20) ^ 0x20 if byte == 0x7D else byte)
    return bytes(result)
