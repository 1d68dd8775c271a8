"""docs/trace-format.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from interfaces.abi import EVENT_DTYPE, REGION_HEADER
from tracefile import DomainEnd, DomainStart, FileEntry, Report, records
from tracefile.fields import DEPTH_MAX, ELEMENTS_MAX, load_json
from tracefile.layout import (
    CHUNK_HEADER,
    CHUNK_MAGIC,
    FILE_HEADER,
    FILE_MAGIC,
    FORMAT_VERSION,
    HEADER_FIELDS,
    INDEX_ROWS_PER_CHUNK,
    ROW_DTYPE,
    SECTION_MAX,
    TRAILER,
    TRAILER_MAGIC,
    ChunkHeader,
    ChunkType,
    Codec,
    pack_file_header,
    pack_trailer,
    unpack_header,
    unpack_trailer,
)

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "trace-format.md").read_text()


def table(heading: str, number: int = 0) -> list[list[str]]:
    """The cells of a table of the document, its head left out: the `number`th under a heading."""
    section = re.split(r"\n#+ ", DOCUMENT.split(f"# {heading}\n", 1)[1])[0]
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in tables[number].splitlines()[2:]]


def places(heading: str, number: int = 0) -> list[tuple[int, int]]:
    """(offset, bytes) of each row."""
    return [(int(row[0]), int(row[1])) for row in table(heading, number)]


def dtype_places(dtype: np.dtype[np.void], names: list[str]) -> list[tuple[int, int]]:
    assert dtype.fields is not None
    return [(dtype.fields[name][1], dtype.fields[name][0].itemsize) for name in names]


def struct_places(format_: str) -> list[tuple[int, int]]:
    sizes = [
        int(digits or 1) if letter == "s" else {"B": 1, "H": 2, "I": 4, "Q": 8}[letter]
        for digits, letter in re.findall(r"(\d*)([sBHIQ])", format_)
        for _ in range(1 if letter == "s" else int(digits or 1))
    ]
    return [(sum(sizes[:i]), size) for i, size in enumerate(sizes)]


def test_file_header() -> None:
    assert places("File header") == struct_places(FILE_HEADER.format)
    assert FILE_MAGIC.hex(" ") in DOCUMENT and f"Version {FORMAT_VERSION}." in DOCUMENT
    assert pack_file_header().hex() == FILE_MAGIC.hex() + "01000000" + "60000000" + "00000000" + "9c2b5eed"


def test_chunk_header() -> None:
    names = [name for name, _ in HEADER_FIELDS]
    assert places("Chunk") == struct_places(CHUNK_HEADER.format) == dtype_places(ROW_DTYPE, names)
    assert [row[2] for row in table("Chunk")] == names
    assert CHUNK_MAGIC.decode() in DOCUMENT and f"16 MiB ({SECTION_MAX:,})".replace(",", " ") in DOCUMENT


def test_header_bytes() -> None:
    """The bytes of one header, spelled out."""
    header = ChunkHeader(
        type=2, sequence=3, domain=4, count=1, first=6, time_first=7, time_last=8, raw_a=96, stored_a=9,
        raw_b=11, stored_b=11, crc_a=13, crc_b=14, codec_a=2, codec_b=0, flags=0,
    )  # fmt: skip
    assert header.pack()[:76].hex() == (
        "5252434b" "02" "01" "0000" "0300000000000000" "04000000" "01000000" "0600000000000000"
        "0700000000000000" "0800000000000000" "60000000" "09000000"
        "0b000000" "0b000000" "0d000000" "0e000000" "02" "00" "0000"
    )  # fmt: skip
    assert unpack_header(header.pack()) == header
    assert header.size == 80 + 9 + 11


def test_types_and_codecs() -> None:
    rows = table("Chunk", 2)
    assert [(int(row[0]), row[1]) for row in rows] == [(kind.value, kind.name) for kind in ChunkType]
    assert [int(row[0]) for row in table("Chunk", 1)] == [codec.value for codec in Codec]


def test_events_and_regions() -> None:
    assert EVENT_DTYPE.names is not None
    names = list(EVENT_DTYPE.names)
    assert places("EVENTS") == dtype_places(EVENT_DTYPE, names)
    assert [row[2] for row in table("EVENTS")] == names
    assert places("EVENTS", 1) == struct_places(REGION_HEADER.format)


def test_trailer() -> None:
    assert places("Trailer") == struct_places(TRAILER.format)
    assert repr(TRAILER_MAGIC)[2:-1] in DOCUMENT
    packed = pack_trailer(5, 6, 7)
    assert packed[:-4].hex() == TRAILER_MAGIC.hex() + "0500000000000000" + "0600000000000000" + "07000000"
    assert unpack_trailer(packed) == (5, 6, 7)


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("DOMAIN_START", DomainStart(domain=1, kind="exec", pid=1).encode()[0]),
        ("FILE", FileEntry(number=1, path="/x").encode()),
    ],
)
def test_documented_fields_of_tables(heading: str, section: bytes) -> None:
    names = [name for row in table(heading) for name in row[0].split(", ")]
    assert sorted(names) == sorted(load_json(section))


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("DOMAIN_END", DomainEnd(domain=1, pid=1, status="exited").encode()),
        ("REPORT", Report(time=0, domain=1, pid=1, code=0, text="").encode()),
    ],
)
def test_documented_fields_of_sentences(heading: str, section: bytes) -> None:
    text = DOCUMENT.split(f"# {heading}\n", 1)[1].split("\n#", 1)[0]
    assert re.findall(r"`([a-z]+)`", text) == list(load_json(section))


def test_limits() -> None:
    assert f"nested at most {DEPTH_MAX} deep" in DOCUMENT
    assert f"{ELEMENTS_MAX:,} elements".replace(",", " ") in DOCUMENT
    assert f"{INDEX_ROWS_PER_CHUNK:,} rows".replace(",", " ") in DOCUMENT
    assert f"at most {records.PATH_MAX} characters" in DOCUMENT
    assert f"Rows of {ROW_DTYPE.itemsize} bytes" in DOCUMENT
    for words in (records.DOMAIN_KINDS, records.END_STATUSES, records.FILE_KINDS):
        assert all(f'"{word}"' in DOCUMENT for word in words)
