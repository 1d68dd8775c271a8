"""What the wheel holds, and that it records and replays on a machine that has no compiler."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

pytestmark = pytest.mark.packaging


def test_the_tag_fits_every_x86_64_linux_and_every_python(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-manylinux_2_17_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        text = archive.read(metadata).decode()
    assert "Root-Is-Purelib: false" in text
    assert "Tag: py3-none-manylinux_2_17_x86_64" in text


def test_the_wheel_holds_the_packages_the_core_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert {"rr_py", "interfaces", "interposer", "recorder", "tracefile", "replayer"} <= tops
    assert "tests" not in tops
    assert "interposer/_core/rr_core" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    compiled_by_frida = "interposer/library/"
    ours = [name for name in names if not name.startswith(compiled_by_frida)]
    codec = "tracefile/_native/planes.so"
    assert codec in names
    assert not [name for name in ours if name.endswith((".so", ".c", ".h", ".S", ".pyc")) and name != codec]


def test_the_codec_needs_no_library(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        elf = ELFFile(io.BytesIO(archive.read("tracefile/_native/planes.so")))
        symbols = elf.get_section_by_name(".dynsym")
        dynamic = elf.get_section_by_name(".dynamic")
        assert isinstance(symbols, SymbolTableSection) and isinstance(dynamic, DynamicSection)
        undefined = [symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"]
        assert undefined == [""]
        assert not [tag for tag in dynamic.iter_tags() if tag.entry.d_tag in ("DT_NEEDED", "DT_TEXTREL")]


def test_the_core_is_one_static_program_that_needs_no_library(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        elf = ELFFile(io.BytesIO(archive.read("interposer/_core/rr_core")))
        assert elf.header.e_type == "ET_EXEC"
        assert elf.header.e_machine == "EM_X86_64"
        segments = {segment.header.p_type for segment in elf.iter_segments()}
        assert not {"PT_INTERP", "PT_DYNAMIC"} & segments
        symbols = elf.get_section_by_name(".symtab")
        assert isinstance(symbols, SymbolTableSection)
        undefined = [symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"]
        assert undefined == [""]


def run(clean: dict[str, str], folder: Path, *words: str, status: int = 0) -> str:
    done = subprocess.run(words, env=clean, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_a_machine_without_a_compiler_records_and_replays(
    clean_environment: dict[str, str], tmp_path: Path
) -> None:
    run(clean_environment, tmp_path, "rr-py", "record", "-q", "true")
    run(clean_environment, tmp_path, "rr-py", "replay")
    recorded = run(
        clean_environment,
        tmp_path,
        "rr-py",
        "record",
        "-q",
        "sh",
        "-c",
        "ls /proc/self/fd; cat /proc/sys/kernel/random/uuid; exit 3",
        status=3,
    )
    replayed = run(clean_environment, tmp_path, "rr-py", "replay", "trace-2.bin", status=3)
    assert replayed == recorded
    facts = json.loads(run(clean_environment, tmp_path, "rr-py", "info", "--json", "trace-2.bin"))
    assert facts["complete"] is True


def test_the_doctor_is_content_there(clean_environment: dict[str, str], tmp_path: Path) -> None:
    report = json.loads(run(clean_environment, tmp_path, "rr-py", "doctor", "--json"))
    assert [check for check in report["checks"] if check["state"] == "fail"] == []
    assert report["works"] is True
    assert report["checks"][-1]["name"] == "trial"
