"""interfaces.abi against interposer/core/abi.h: the header is compiled and asked."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from collections.abc import Iterator
from enum import IntEnum, IntFlag
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces import abi

HEADER = Path(__file__).parents[2] / "interposer" / "core" / "abi.h"

STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "rr_event": abi.Event,
    "rr_slot": abi.Slot,
    "rr_ring": abi.Ring,
    "rr_global": abi.Global,
    "rr_known_file": abi.KnownFile,
    "rr_known_files": abi.KnownFiles,
    "rr_offer": abi.Offer,
    "rr_offers": abi.Offers,
    "rr_msg": abi.MsgStruct,
    "rr_boot": abi.Boot,
    "rr_file_write": abi.FileWrite,
}

ENUMS: dict[str, tuple[str, type[IntEnum] | type[IntFlag]]] = {
    "rr_kind": ("RR_K_", abi.Kind),
    "rr_event_flag": ("RR_EF_", abi.EventFlag),
    "rr_sig_place": ("RR_SIG_", abi.SignalPlace),
    "rr_region_kind": ("RR_R_", abi.RegionKind),
    "rr_slot_state": ("RR_SLOT_", abi.SlotState),
    "rr_ring_state": ("RR_", abi.RingState),
    "rr_divergence": ("RR_DIV_", abi.Divergence),
    "rr_stop": ("RR_STOP_", abi.Stop),
    "rr_global_flag": ("RR_GF_", abi.GlobalFlag),
    "rr_known_flag": ("RR_KF_", abi.KnownFlag),
    "rr_msg_type": ("RR_M_", abi.Msg),
    "rr_share": ("RR_SHARE_", abi.Share),
    "rr_report": ("RR_REP_", abi.Report),
    "rr_boot_op": ("RR_B_", abi.BootOp),
}

CONSTANTS = [
    "ABI_VERSION", "BASE", "TEXT", "DATA", "GLOBAL", "RING", "BOOT", "THREADS", "THREAD_STRIDE",
    "MAX_THREADS",
    "SCRATCH", "END", "FD_HELLO", "FD_IMAGE", "FD_GLOBAL", "FD_CONTROL", "FD_OUT", "FD_ERR",
    "FD_SPARE", "FD_DIRTY",
    "FD_COUNT",
    "RESTART", "SLOTS", "SLOT_SIZE", "SLOT_EVENTS", "SLOT_EVENTS_OFF", "SLOT_PAYLOAD_OFF",
    "SLOT_PAYLOAD_MAX", "FILL_MIN", "FILL_MAX", "FILLS_MAX",
    "FILES", "FILES_MAX", "FILE_SITES_MAX", "OFFERS_MAX", "GLOBAL_SIZE",
    "RING_CTL", "RING_SIZE", "TURN_WORDS", "RING_MAGIC", "GLOBAL_MAGIC",
]  # fmt: skip


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def fields_of(name: str) -> list[str]:
    """The field names of a structure, in order, as the header declares them."""
    body = re.search(rf"struct {name} {{(.*?)\n}};", without_comments(HEADER.read_text()), re.DOTALL)
    assert body is not None
    names: list[str] = []
    for declaration in body[1].split(";"):
        words = re.sub(r"^\s*(struct \w+|\w+)\s", "", declaration.strip())
        names += [re.sub(r"\[.*", "", word).strip() for word in words.split(",") if word.strip()]
    return names


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Every size, offset and constant of the header, as the C compiler sees it."""
    folder = tmp_path_factory.mktemp("abi")
    asks = [f'ask("sizeof {name}", sizeof(struct {name}));' for name in STRUCTURES]
    asks.append('ask("sizeof rr_region", sizeof(struct rr_region));')
    asks.append('ask("sizeof rr_mapped", sizeof(struct rr_mapped));')
    for name in STRUCTURES:
        asks += [f'ask("{name}.{field}", offsetof(struct {name}, {field}));' for field in fields_of(name)]
    asks += [f'ask("{name}", (long)RR_{name});' for name in CONSTANTS]
    for body in re.findall(r"enum \w+ {(.*?)}", without_comments(HEADER.read_text()), re.DOTALL):
        asks += [f'ask("{name}", {name});' for name in re.findall(r"(RR_\w+)\s*=", body)]
    source = folder / "ask.c"
    source.write_text(
        '#include <stddef.h>\n#include <stdio.h>\n#include "abi.h"\n'
        'static void ask(const char *what, long value) { printf("%s %ld\\n", what, value); }\n'
        "int main(void) {\n" + "\n".join(asks) + "\nreturn 0; }\n"
    )
    program = folder / "ask"
    subprocess.run(["gcc", "-std=c11", "-I", str(HEADER.parent), "-o", program, source], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_have_the_same_fields_and_sizes(name: str, answers: dict[str, int]) -> None:
    mirror = STRUCTURES[name]
    assert [field[0] for field in mirror._fields_] == fields_of(name)
    for field in mirror._fields_:
        assert getattr(mirror, field[0]).offset == answers[f"{name}.{field[0]}"], field[0]
    assert ctypes.sizeof(mirror) == answers[f"sizeof {name}"]


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_equal(name: str, answers: dict[str, int]) -> None:
    assert getattr(abi, name) == answers[name]


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_have_the_same_members(name: str, answers: dict[str, int]) -> None:
    prefix, mirror = ENUMS[name]
    body = re.search(rf"enum {name} {{(.*?)}}", without_comments(HEADER.read_text()), re.DOTALL)
    assert body is not None
    found = {member.removeprefix(prefix): answers[member] for member in re.findall(r"(RR_\w+)\s*=", body[1])}
    assert {member.name: member.value for member in mirror} == found


def test_every_enumeration_of_the_header_is_mirrored() -> None:
    assert set(re.findall(r"enum (\w+) {", without_comments(HEADER.read_text()))) == set(ENUMS)


def test_event_dtype_is_the_structure() -> None:
    assert abi.EVENT_DTYPE.itemsize == abi.EVENT_SIZE == ctypes.sizeof(abi.Event)
    fields = abi.EVENT_DTYPE.fields
    assert fields is not None
    assert {name: place[1] for name, place in fields.items()} == {
        field[0]: getattr(abi.Event, field[0]).offset for field in abi.Event._fields_
    }


def test_region_header_has_the_structures_size(answers: dict[str, int]) -> None:
    assert abi.REGION_HEADER.size == answers["sizeof rr_region"]
    assert abi.MAPPED.size == answers["sizeof rr_mapped"]


def packed(regions: list[abi.Region]) -> bytes:
    out = bytearray()
    for region in regions:
        out += abi.REGION_HEADER.pack(region.addr, len(region.data), region.kind, region.arg, region.full_hi)
        out += region.data + bytes(-len(region.data) % 8)
    return bytes(out)


REGIONS = st.lists(
    st.builds(
        abi.Region,
        st.integers(0, 2**64 - 1),
        st.sampled_from([kind for kind in abi.RegionKind if kind != abi.RegionKind.FILL]),
        st.integers(0, 255),
        st.binary(max_size=40),
        st.integers(0, 2**16 - 1),
    ),
    max_size=6,
)


@given(REGIONS)
def test_regions_come_back_as_they_were_written(regions: list[abi.Region]) -> None:
    assert abi.parse_regions(packed(regions)) == regions


@given(REGIONS, st.data())
def test_a_cut_payload_is_refused_or_ends_at_a_region(regions: list[abi.Region], data: st.DataObject) -> None:
    payload = packed(regions)
    cut = data.draw(st.integers(0, len(payload)))
    try:
        got = abi.parse_regions(payload[:cut])
    except ValueError as error:
        assert "offset" in str(error)
    else:
        assert got == regions[: len(got)]


@given(st.binary(max_size=200))
def test_any_bytes_give_regions_or_a_value_error(payload: bytes) -> None:
    try:
        got = abi.parse_regions(payload)
    except ValueError:
        return
    assert sum(len(region.data) for region in got) <= len(payload) // 32 * abi.FILL_MAX + len(payload)


def filled(length: int, word: int) -> bytes:
    return struct.pack("<QIBBHQQ", 0x5000, 16, abi.RegionKind.FILL, 1, 0, length, word)


@given(st.integers(abi.FILL_MIN, abi.FILL_MAX), st.integers(0, 2**64 - 1))
def test_a_fill_is_the_memory_it_stands_for(length: int, word: int) -> None:
    [region] = abi.parse_regions(filled(length, word))
    assert (region.addr, region.kind, region.arg, len(region.data)) == (0x5000, abi.RegionKind.OUT, 1, length)
    assert (region.data + bytes(-length % 8))[: length // 8 * 8] == word.to_bytes(8, "little") * (length // 8)
    assert region.data[length // 8 * 8 :] == word.to_bytes(8, "little")[: length % 8]


@pytest.mark.parametrize("length", [0, abi.FILL_MIN - 1, abi.FILL_MAX + 1, 2**63])
def test_a_fill_of_a_wrong_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=r"offset 16: a fill of \d+ bytes"):
        abi.parse_regions(filled(length, 0))


def test_fills_unfold_to_bounded_memory() -> None:
    most = abi.FILLS_MAX // abi.FILL_MAX
    assert len(abi.parse_regions(filled(abi.FILL_MAX, 0) * most)) == most
    with pytest.raises(ValueError, match="filled memory"):
        abi.parse_regions(filled(abi.FILL_MAX, 0) * (most + 1))


def test_an_unknown_region_kind_is_named_with_its_offset() -> None:
    good = packed([abi.Region(1, abi.RegionKind.OUT, 0, b"abc")])
    bad = struct.pack("<QIBBH", 0, 0, 99, 0, 0)
    with pytest.raises(ValueError, match=r"offset 24: region kind 99"):
        abi.parse_regions(good + bad)


def test_iter_regions_is_lazy() -> None:
    first = packed([abi.Region(1, abi.RegionKind.IN, 0, b"x")])
    regions: Iterator[abi.Region] = abi.iter_regions(first + b"junk")
    assert next(regions).data == b"x"
    with pytest.raises(ValueError, match="4 bytes left"):
        next(regions)
