"""The remote protocol by packets: what gdb 12 to 17, lldb and broken clients send, and what is answered."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest

from tests.debug.conftest import Record
from tests.debug.mi import ROOT

_OFFERS = (
    "multiprocess+;swbreak+;hwbreak+;qRelocInsn+;fork-events+;vfork-events+;exec-events+;vContSupported+;"
    "QThreadEvents+;no-resumed+;memory-tagging+;xmlRegisters=i386"
)
_LATER = _OFFERS.replace("no-resumed", "QThreadOptions+;no-resumed")
CLIENTS = {
    "gdb 12": _OFFERS,
    "gdb 13": _OFFERS,
    "gdb 14": _OFFERS,
    "gdb 15": _LATER,
    "gdb 16": f"{_LATER};error-message+",
    "gdb 17": f"{_LATER};error-message+",
    "lldb": "xmlRegisters=i386,arm,mips,arc;multiprocess+;fork-events+;vfork-events+",
    "one that offers all": f"{_LATER};error-message+;binary-upload+;multi-wp-addr+;single-inf-arg+",
}


class Client:
    """A connection that speaks packets."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def _byte(self) -> bytes:
        while not self._buffer:
            self._buffer = self.socket.recv(1 << 16)
            assert self._buffer, "the connection was closed"
        first, self._buffer = self._buffer[:1], self._buffer[1:]
        return first

    def raw(self, data: bytes) -> bytes:
        """Send bytes; what comes first as an answer."""
        self.socket.sendall(data)
        return self._byte()

    def ask(self, packet: str) -> str:
        """Send a packet, and the content of the answer; console output before it is left out."""
        data = packet.encode("latin-1")
        assert self.raw(b"$%s#%02x" % (data, sum(data) & 0xFF)) == b"+"
        while True:
            answer = self._packet()
            if not re.fullmatch("O[0-9a-f]+", answer):
                return answer

    def _packet(self) -> str:
        assert self._byte() == b"$"
        content = b""
        while (one := self._byte()) != b"#":
            content += bytes([self._byte()[0] ^ 0x20]) if one == b"}" else one
        self._byte(), self._byte()
        self.socket.sendall(b"+")
        return content.decode("latin-1")


@pytest.fixture(scope="module")
def client(recorded: Record) -> Iterator[Client]:
    """A connection to a recording at the first call of `inner`."""
    recording = recorded("count.c")
    tool = subprocess.Popen(
        [sys.executable, "-m", "rr_py", "replay", "--port", "0", recording.trace],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert tool.stderr is not None
    match = re.search(r"port (\d+)", tool.stderr.readline())
    assert match is not None
    made = Client(int(match[1]))
    yield made
    assert made.ask("D") == "OK"
    made.socket.close()
    assert tool.wait(30) == 0
    tool.stderr.close()


@pytest.fixture
def inner(client: Client, recorded: Record) -> int:
    """The address of `inner`; the client stands at its first call, with no breakpoints."""
    entry = _auxiliary(client)[9]
    symbols = subprocess.run(["nm", recorded("count.c").program], capture_output=True, text=True, check=True)
    rows = [line.split() for line in symbols.stdout.splitlines() if line[0] == "0"]
    offsets = {name: int(value, 16) for value, _kind, name in rows}
    address = entry - offsets["_start"] + offsets["inner"]
    assert client.ask("vRun;").startswith("T05")
    assert client.ask(f"Z0,{address:x},1") == "OK"
    assert "swbreak:;" in client.ask("vCont;c")
    assert client.ask(f"z0,{address:x},1") == "OK"
    return address


def _auxiliary(client: Client) -> dict[int, int]:
    answer = client.ask("qXfer:auxv:read::0,1000")
    assert answer[0] == "l"
    data = answer[1:].encode("latin-1")
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    return dict(zip(words[::2], words[1::2], strict=True))


def _transfer(client: Client, what: str, size: int) -> str:
    """All of an object, read in pieces."""
    text = ""
    while True:
        piece = client.ask(f"qXfer:{what}:{len(text):x},{size:x}")
        assert piece[0] in "ml" and len(piece) <= size + 1
        text += piece[1:]
        if piece[0] == "l":
            return text


@pytest.mark.parametrize("name", CLIENTS)
def test_features_are_agreed_on(client: Client, name: str) -> None:
    """GIVEN what a client offers WHEN it asks THEN only what is meant is promised, in the protocol's form."""
    answer = client.ask(f"qSupported:{CLIENTS[name]}")
    found = [re.fullmatch(r"([A-Za-z:-]+)(=.*|\+|-)", one) for one in answer.split(";")]
    features = {one[1]: one[2] for one in found if one is not None}
    assert len(features) == len(found)
    assert int(features["PacketSize"][1:], 16) >= 0x4000
    for one in ("ReverseStep", "ReverseContinue", "vContSupported", "swbreak", "hwbreak", "QPassSignals"):
        assert features[one] == "+"
    for one in ("multiprocess", "QNonStop", "no-resumed", "fork-events", "QThreadEvents", "binary-upload"):
        assert features.get(one, "-") == "-"


@pytest.mark.parametrize(
    "packet",
    [
        "vMustReplyEmpty", "QNonStop:1", "QThreadEvents:1", "QThreadOptions;3:1", "vCtrlC", "vStopped",
        "x0,0", "qTStatus", "qTfV", "qOffsets", "vFile:setfs:0", "qSearch:memory:0;10;ff", "qCRC:0,10",
        "QDisableRandomization:1", "qXfer:libraries-svr4:read::0,fff", "qXfer:memory-map:read::0,fff",
        "qXfer:threads:write::0:x",
        "jThreadsInfo", "QThreadSuffixSupported", "QListThreadsInStopReply", "qHostInfo",
        "vAttach;1", "QCatchSyscalls:1",
        "qMemTags:0,10:1", "_M10,rwx", "Qbtrace:off",
    ],
)  # fmt: skip
def test_what_is_not_supported(client: Client, packet: str) -> None:
    """GIVEN a packet of some version that is not for us WHEN it comes THEN the empty answer, as agreed."""
    assert client.ask(packet) == ""


@pytest.mark.parametrize(
    "packet",
    [
        "m",
        "mzz,4",
        "m1000",
        "p",
        "pfff",
        "Z0,xyz,1",
        "z2",
        "Hgzz",
        "Tzz",
        "qXfer:features:read:other.xml:0,fff",
        "G1",
    ],
)
def test_what_makes_no_sense(client: Client, packet: str) -> None:
    """GIVEN a packet that is malformed WHEN it comes THEN an error, and the next one is answered."""
    assert re.fullmatch(r"E[0-9a-f]{2}", client.ask(packet)) is not None
    assert client.ask("qC").startswith("QC")


def test_errors_in_words(client: Client, inner: int) -> None:
    """GIVEN a client that takes words, or does not WHEN something cannot be done THEN words, or a number."""
    for number in range(1025):
        assert client.ask(f"Z0,{0x10000 + number:x},1") == "OK"
    client.ask(f"qSupported:{CLIENTS['gdb 12']}")
    assert client.ask("vCont;c") == "E01"
    client.ask(f"qSupported:{CLIENTS['gdb 16']}")
    assert client.ask("vCont;c") == "E.1025 breakpoints, and 1024 are possible"
    for number in range(1025):
        assert client.ask(f"z0,{0x10000 + number:x},1") == "OK"
    assert client.ask("vCont;s").startswith("T05")


def test_registers_are_those_of_the_description(client: Client, inner: int) -> None:
    """GIVEN the target description WHEN registers are read at once or one by one THEN they agree."""
    root = ElementTree.fromstring(_transfer(client, "features:read:target.xml", 0x200).split(">", 2)[2])
    sizes = [(one.get("name"), int(one.get("bitsize", "0")) // 8) for one in root.iter("reg")]
    assert {feature.get("name") for feature in root.iter("feature")} >= {
        f"org.gnu.gdb.i386.{part}" for part in ("core", "sse", "linux", "segments", "avx")
    }
    data = client.ask("g")
    assert len(data) == 2 * sum(size for _name, size in sizes)
    at = 0
    for number, (name, size) in enumerate(sizes):
        assert client.ask(f"p{number:x}") == data[at : at + 2 * size], name
        if name == "rip":
            assert int.from_bytes(bytes.fromhex(data[at : at + 16]), "little") == inner
        at += 2 * size
    assert client.ask(f"p{len(sizes):x}") == "E16"


def test_threads(client: Client, inner: int) -> None:
    """GIVEN a stop WHEN threads are asked for in each way THEN the same one, alive."""
    thread = re.search("thread:([0-9a-f]+);", client.ask("?"))
    assert thread is not None
    assert client.ask("qfThreadInfo") == f"m{thread[1]}"
    assert client.ask("qsThreadInfo") == "l"
    assert client.ask("qC") == f"QC{thread[1]}"
    assert client.ask(f"T{thread[1]}") == "OK" and client.ask("T1") == "E03"
    for chosen in ("Hg0", "Hg-1", "Hc-1", f"Hg{thread[1]}", f"Hgp1.{thread[1]}"):
        assert client.ask(chosen) == "OK"
    assert client.ask("Hg1") == "E03"
    root = ElementTree.fromstring(_transfer(client, "threads:read:", 0x20))
    assert [one.get("id") for one in root] == [thread[1]]


@pytest.mark.parametrize(
    "action", ["vCont;s", "vCont;s:{0}", "vCont;s:{0};c", "vCont;S05:{0};c", "vCont;s:p1.{0};c:p1.-1", "s"]
)
def test_steps_in_every_form(client: Client, inner: int, action: str) -> None:
    """GIVEN a function's start WHEN stepped as some version does, and back THEN one instruction."""
    thread = client.ask("qC")[2:]
    before = client.ask("p10")
    assert client.ask(action.format(thread)).startswith("T05")
    assert client.ask("p10") != before
    assert client.ask("bs").startswith("T05")
    assert client.ask("p10") == before


@pytest.mark.parametrize("action", ["vCont;c", "vCont;c:-1", "vCont;C0e:{0};c", "vCont;c:p1.-1", "c"])
def test_going_on_in_every_form(client: Client, inner: int, action: str) -> None:
    """GIVEN a breakpoint WHEN gone on as some version does, and back THEN the next call, and this."""
    thread = client.ask("qC")[2:]
    assert client.ask(f"Z0,{inner:x},1") == "OK"
    assert "swbreak:;" in client.ask(action.format(thread))
    assert client.ask("p5") == "01" + "00" * 7
    assert "swbreak:;" in client.ask("bc")
    assert client.ask("p5") == "00" * 8
    assert client.ask(f"z0,{inner:x},1") == "OK"


def test_a_range_is_stepped_through(client: Client, inner: int) -> None:
    """GIVEN a range of addresses WHEN stepped THEN the stop is the first instruction outside."""
    thread = client.ask("qC")[2:]
    assert client.ask(f"vCont;r{inner:x},{inner + 8:x}:{thread};c").startswith("T05")
    pc = int.from_bytes(bytes.fromhex(client.ask("p10")), "little")
    assert not inner <= pc < inner + 8


def test_conditions_and_commands_of_breakpoints(client: Client, inner: int) -> None:
    """GIVEN Z packets with compiled conditions, and commands behind them WHEN run THEN conditions count."""
    code = "26000522" + "05" + "13" + "27"
    assert client.ask(f"Z0,{inner:x},1;X{len(code) // 2:x},{code}") == "OK"
    assert "swbreak:;" in client.ask("vCont;c")
    assert client.ask("p5") == "05" + "00" * 7
    assert client.ask(f"z0,{inner:x},1") == "OK"
    assert client.ask(f"Z1,{inner:x},1;X{len(code) // 2:x},{code};cmds:0,X1,27") == "OK"
    assert "swbreak:;" not in client.ask("bc")
    assert client.ask(f"z1,{inner:x},1") == "OK"


def test_watchpoints_up_to_what_the_processor_has(client: Client, inner: int) -> None:
    """GIVEN four places that are watched WHEN a fifth is to be THEN an error, and the four hold."""
    stack = int.from_bytes(bytes.fromhex(client.ask("p7")), "little") & ~7
    for number, kind in enumerate((2, 3, 4, 2)):
        assert client.ask(f"Z{kind},{stack - 4096 - 8 * number:x},8") == "OK"
    assert client.ask(f"Z2,{stack - 8192:x},8") == "E1c"
    for number, kind in enumerate((2, 3, 4, 2)):
        assert client.ask(f"z{kind},{stack - 4096 - 8 * number:x},8") == "OK"
    assert client.ask(f"Z2,{stack - 8192:x},8") == "OK" and client.ask(f"z2,{stack - 8192:x},8") == "OK"


def test_signals_that_pass(client: Client, inner: int) -> None:
    """GIVEN lists of signals, also unknown ones and none WHEN sent THEN they are taken."""
    for numbers in ("", "e;14;17", "0;97;4c;ff"):
        assert client.ask(f"QPassSignals:{numbers}") == "OK"


def test_changes_are_forgotten(client: Client, inner: int) -> None:
    """GIVEN registers and memory that were written in each form WHEN the program goes on THEN as recorded."""
    stack = int.from_bytes(bytes.fromhex(client.ask("p7")), "little")
    before = client.ask(f"m{stack - 256:x},2"), client.ask("g")
    assert client.ask(f"X{stack - 256:x},0:") == "OK"
    assert client.ask(f"X{stack - 256:x},2:ab") == "OK" and client.ask(f"m{stack - 256:x},2") == "6162"
    assert client.ask(f"M{stack - 256:x},2:4142") == "OK" and client.ask(f"m{stack - 256:x},2") == "4142"
    assert client.ask("P0=0100000000000000") == "OK" and client.ask("p0") == "0100000000000000"
    assert client.ask("bs").startswith("T05") and client.ask("vCont;s").startswith("T05")
    assert (client.ask(f"m{stack - 256:x},2"), client.ask("g")) == before


def test_a_damaged_packet_is_asked_for_again(client: Client) -> None:
    """GIVEN a packet with a wrong sum WHEN it comes THEN it is refused, and a good one is answered."""
    assert client.raw(b"$qC#00") == b"-"
    assert client.ask("qC").startswith("QC")
