"""Messages and shared memory between the tool and the core."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces import abi
from interposer.channel import Channel, Message
from interposer.errors import InterposerError
from interposer.shared import GlobalPage, Ring

u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    ours, theirs = Channel.pair(credentials=True)
    core = Channel(theirs)
    yield ours, core
    ours.close()
    core.close()


def over(channel: Channel) -> bool:
    return channel.closed


@given(st.builds(Message, u32, st.integers(-(2**31), 2**31 - 1), u32, u32, u64, u64, u64, u64))
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    ours, theirs = Channel.pair()
    core = Channel(theirs)
    assert core.send(message)
    received = ours.receive()
    assert received is not None
    assert received.message == message
    ours.close()
    core.close()


def test_descriptors_and_the_sender_come_with_it(ends: tuple[Channel, Channel]) -> None:
    ours, core = ends
    read, write = os.pipe()
    assert core.send(Message(1), fds=(read, write))
    os.close(read)
    received = ours.receive()
    assert received is not None
    assert received.sender == os.getpid()
    assert len(received.fds) == 2
    assert not any(os.get_inheritable(fd) for fd in received.fds)
    os.write(write, b"x")
    assert os.read(received.fds[0], 1) == b"x"
    for fd in (write, *received.fds):
        os.close(fd)


def test_nothing_waiting_is_not_the_end(ends: tuple[Channel, Channel]) -> None:
    ours, core = ends
    assert ours.receive() is None
    assert not over(ours)
    core.send(Message(3))
    core.close()
    received = ours.receive()
    assert received is not None
    assert received.message.type == 3
    assert ours.receive() is None
    assert over(ours)
    assert not ours.send(Message(4)), "nobody listens"


def test_a_datagram_that_is_no_message_is_dropped_with_its_descriptors(ends: tuple[Channel, Channel]) -> None:
    ours, core = ends
    before = len(os.listdir("/proc/self/fd"))
    socket.send_fds(core._socket, [b"short"], [0])
    core.send(Message(5))
    received = ours.receive()
    assert received is not None
    assert received.message.type == 5
    assert len(os.listdir("/proc/self/fd")) == before


def test_extra_bytes_follow_in_the_same_datagram(ends: tuple[Channel, Channel]) -> None:
    ours, core = ends
    assert ours.send(Message(6, b=2), extra=b"\1\0\0\0\2\0\0\0")
    data = core._socket.recv(4096)
    assert data[48:] == b"\1\0\0\0\2\0\0\0"


def test_an_answer_that_finds_no_room_is_dropped_not_waited_for(ends: tuple[Channel, Channel]) -> None:
    ours, _ = ends
    while ours.send(Message(7), extra=bytes(4096)):
        pass


def test_the_page_is_what_the_header_says() -> None:
    page = GlobalPage()
    page.fields.fd_base = 1008
    data = os.pread(page.fd, 32, 0)
    assert int.from_bytes(data[0:4], "little") == abi.GLOBAL_MAGIC
    assert int.from_bytes(data[16:20], "little") == 1008
    page.wake_output()
    page.close()


def test_a_ring_is_shared_memory_not_a_copy() -> None:
    ring, fd = Ring.create()
    ring.control.event_count = 77
    ring.events(9, 2, 3)[:] = bytes(abi.Event(task=5))
    ring.payload(9, 8, 12)[:] = b"abcd"
    other = Ring(fd)
    assert other.control.event_count == 77
    assert abi.Event.from_buffer_copy(other.events(1, 2, 3)).task == 5
    assert bytes(other.payload(1, 8, 12)) == b"abcd"
    for each in (ring, other):
        each.close()
    os.close(fd)


def test_a_file_too_small_for_a_ring_is_refused() -> None:
    fd = os.memfd_create("small")
    os.ftruncate(fd, 4096)
    with pytest.raises(InterposerError, match="4096"):
        Ring(fd)
    os.close(fd)


def test_freeing_the_baton_wakes_who_waits_for_it() -> None:
    import ctypes

    ring, fd = Ring.create()
    ring.control.baton = 0x80000001
    address = ctypes.addressof(ring.control) + abi.Ring.baton.offset
    libc = ctypes.CDLL(None)
    woken = threading.Event()

    def wait() -> None:
        while ring.control.baton:
            libc.syscall(202, ctypes.c_void_p(address), 0, ctypes.c_uint32(0x80000001), None)
        woken.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    ring.free_baton()
    assert woken.wait(60)
    waiter.join()
    ring.close()
    os.close(fd)
