"""Memory shared with a process outside of the recording is reported by name, if that can write it."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import Recorder


@contextmanager
def _server(path: Path, *, sealed: bool) -> Iterator[None]:
    """Gives a memfd to its client; writes to it once the client has mapped it, unless `sealed`."""
    memory = os.memfd_create("given", os.MFD_ALLOW_SEALING)
    os.write(memory, b"one".ljust(4096, b"\0"))
    if sealed:
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        with listener.accept()[0] as client:
            socket.send_fds(client, [b"f"], [memory])
            client.recv(1)
            if not sealed:
                with mmap.mmap(memory, 4096) as view:
                    view[:3] = b"two"
            client.send(b"y")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        listener.close()
        os.close(memory)


@pytest.mark.parametrize("sealed", [False, True])
def test_memory_from_outside(
    sealed: bool, programs: Callable[[str], Path], rr: Recorder, tmp_path: Path
) -> None:
    # GIVEN a process that is not recorded, and passes memory on
    path = tmp_path / "socket"
    with _server(path, sealed=sealed):
        # WHEN a recorded program maps it
        recorded = rr.record(programs("shares"), path)
    # THEN the recorder says with whom it shares what, if that can be written at all
    assert (recorded.status, recorded.out) == (0, b"first: one\nmapped\n")
    said = [line for line in recorded.said if "/memfd:given" in line]
    assert said == list(recorded.said)
    assert len(said) == (0 if sealed else 1)
    if not sealed:
        assert f"(process {os.getpid()}), which is not recorded" in said[0]
    rr.forget_inputs()
    assert rr.replay().out == recorded.out
