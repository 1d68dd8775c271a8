"""A client of a PulseAudio server that is not recorded: its sound replays without the server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not shutil.which("pulseaudio") or not shutil.which("pacat"), reason="no PulseAudio"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A server with a sound card that swallows all; the environment of its clients."""
    home, socket = tmp_path / "home", tmp_path / "socket"
    home.mkdir(mode=0o700)
    environ = {
        **os.environ,
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "PULSE_SERVER": f"unix:{socket}",
    }
    modules = ["module-null-sink", f"module-native-protocol-unix socket={socket} auth-anonymous=1"]
    words = ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]
    words += [word for module in modules for word in ("-L", module)]
    process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield environ
    finally:
        process.terminate()
        process.wait()


def test_sound_is_played_through_the_socket(server: dict[str, str], tmp_path: Path) -> None:
    # GIVEN a server, and a client that would share memory with it
    sound = tmp_path / "sound.raw"
    sound.write_bytes(os.urandom(20000))
    for _ in range(200):
        if subprocess.run(["pactl", "info"], env=server, capture_output=True, check=False).returncode == 0:
            break
    tool = [sys.executable, "-m", "rr_py"]
    # WHEN it is recorded, and replayed without the server's help
    words = ["record", "-q", "--checksum=100", "-o", f"{tmp_path}/t.bin", "--", "pacat", "--raw", str(sound)]
    recorded = subprocess.run(
        [*tool, *words], env=server, capture_output=True, text=True, timeout=60, check=False
    )
    replayed = subprocess.run(
        [*tool, "replay", "--verify", tmp_path / "t.bin"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # THEN the user is told, and the replay is exact
    assert recorded.returncode == 0, recorded.stderr
    assert "memory to share with PulseAudio was refused" in recorded.stderr
    assert "is not recorded" not in recorded.stderr
    assert replayed.returncode == 0, replayed.stderr
