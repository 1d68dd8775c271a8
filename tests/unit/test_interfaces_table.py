"""The call table: complete, consistent, and what the generated header says of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interfaces import generate
from interfaces.calls import BY_NAME, CALLS, FAMILIES, name_of
from interfaces.declare import call, case, fd, num, out_buf, out_struct, path, size
from interfaces.layouts import LAYOUTS, SCALARS
from interfaces.model import NO_ARG, Arg, Block, Effect, Flag, Op, Selector, Treat, When

ROOT = Path(__file__).parents[2]
NUMBERS_6_18 = set(range(337)) | set(range(424, 470))
KERNEL_HEADERS = [
    Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    Path("/usr/include/asm/unistd_64.h"),
]
LENGTH_OPS = {Op.ARG, Op.BITS, Op.LENPTR, Op.IOVEC, Op.MMSGHDR, Op.PAGES}
MOST_EFFECTS = 15
"""The core saves lengths for so many effects of one call."""


def variants() -> list[tuple[str, tuple[Arg, ...], tuple[Effect, ...]]]:
    """Every call, and every case of a call, with its arguments and effects."""
    found = []
    for one in CALLS.values():
        found.append((one.name, one.args, one.effects))
        found += [(f"{one.name} {each.name}", each.args, each.effects) for each in one.cases]
    return found


VARIANTS = variants()


def frozen() -> dict[int, str]:
    lines = (ROOT / "tests" / "unit" / "syscalls_6_18.txt").read_text().splitlines()
    return {int(number): name for number, name in (line.split() for line in lines if line[:1] != "#")}


def test_every_number_through_6_18_is_there() -> None:
    assert set(frozen()) == NUMBERS_6_18
    assert NUMBERS_6_18 - set(CALLS) == set()


def test_names_are_the_kernels() -> None:
    assert {number: CALLS[number].name for number in frozen()} == frozen()


def test_the_installed_header_has_no_call_that_the_table_has_not() -> None:
    present = [header for header in KERNEL_HEADERS if header.exists()]
    if not present:
        pytest.skip("no kernel headers here")
    lines = re.findall(r"#define __NR_(\w+) (\d+)", present[0].read_text())
    defined = {int(number): name for name, number in lines}
    assert len(defined) > 300
    assert {number: name_of(number) for number in defined} == defined


def test_names_are_unique_and_families_are_modules() -> None:
    assert len(BY_NAME) == len(CALLS)
    assert {one.family for one in CALLS.values()} == {module.FAMILY for module in FAMILIES}


def test_every_call_has_a_treatment() -> None:
    assert [one.name for one in CALLS.values() if one.treat == Treat.UNKNOWN] == []


def each_effect() -> list[tuple[str, tuple[Arg, ...], Effect]]:
    return [(name, args, effect) for name, args, effects in VARIANTS for effect in effects]


def test_calls_have_six_arguments_and_as_many_effects_as_the_core_can_keep() -> None:
    for name, args, effects in VARIANTS:
        assert len(args) <= 6, name
        assert len(effects) <= MOST_EFFECTS, name


def test_effects_refer_to_arguments_that_exist() -> None:
    for name, args, effect in each_effect():
        assert effect.arg < len(args), name
        assert effect.len_arg == NO_ARG or effect.len_arg < len(args), name
        assert effect.len_arg != effect.arg, name
        if effect.op in LENGTH_OPS:
            assert effect.len_arg != NO_ARG, name


def test_effects_fit_the_headers_structure() -> None:
    for name, _, effect in each_effect():
        assert 0 <= effect.size < 1 << 32, name
        assert all(0 <= value < 256 for value in (effect.unit, effect.off, effect.off2)), name
        if effect.op in (Op.FIXED, Op.ARG, Op.RESULT, Op.LENPTR, Op.VIA):
            assert effect.size > 0, name
        if effect.op in (Op.COUNTED, Op.VIA):
            assert effect.unit in (1, 2, 4, 8), name
        if effect.op == Op.RESULT:
            assert effect.out, name
        if not effect.out:
            assert effect.when == When.ALWAYS, name


def test_lengths_are_numbers_and_memory_is_behind_pointers() -> None:
    pointers = {"struct", "array", "buffer", "records", "path", "string", "strings", "comm", "iovec",
    "msghdr",
                "mmsghdr", "sockaddr", "sockopt", "fdset", "bitmask", "ptr"}  # fmt: skip
    for name, args, effect in each_effect():
        assert args[effect.arg].type in pointers, name
        if effect.len_arg != NO_ARG:
            expected = {"struct"} if effect.op == Op.LENPTR else {"size", "int", "uint"}
            assert args[effect.len_arg].type in expected, name


def test_arguments_name_layouts_and_arguments_that_exist() -> None:
    for name, args, _ in VARIANTS:
        for arg in args:
            if arg.type in ("struct", "array"):
                assert arg.of in LAYOUTS or arg.of in SCALARS, name
            if arg.count and arg.count != "result" and not arg.count.isdigit():
                assert arg.count in {other.name for other in args}, name


def test_the_end_of_an_output_is_bounded_by_the_buffer() -> None:
    """A result may exceed the buffer (MSG_TRUNC, a name cut short): every result-sized output has a bound."""
    unbounded = {
        name for name, _, effect in each_effect() if effect.op == Op.RESULT and effect.len_arg == NO_ARG
    }
    assert unbounded == {
        "keyctl KEYCTL_PKEY_ENCRYPT", "keyctl KEYCTL_PKEY_DECRYPT", "keyctl KEYCTL_PKEY_SIGN",
        "ptrace PTRACE_PEEKSIGINFO", "ptrace PTRACE_SECCOMP_GET_FILTER",
    }  # fmt: skip


def test_calls_that_read_paths_say_so() -> None:
    for one in CALLS.values():
        if any(arg.type == "path" for arg in one.args):
            assert one.flags & Flag.PATH
            assert one.block != Block.NEVER
            assert one.waits_on is not None


def test_waiting_calls_say_on_what() -> None:
    for one in CALLS.values():
        blocks = [one.block, *(each.block for each in one.cases)]
        if any(block != Block.NEVER for block in blocks):
            assert one.waits_on is not None, one.name


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("getpid", Block.NEVER), ("clock_gettime", Block.NEVER), ("mmap", Block.NEVER), ("read", Block.MAY),
        ("openat", Block.MAY), ("futex", Block.WAIT), ("epoll_wait", Block.WAIT), ("wait4", Block.WAIT),
        ("nanosleep", Block.WAIT), ("accept4", Block.WAIT), ("connect", Block.WAIT), ("fsync", Block.WAIT),
        ("flock", Block.WAIT), ("rt_sigsuspend", Block.WAIT), ("pause", Block.WAIT), ("semop", Block.WAIT),
        ("write", Block.MAY), ("recvmsg", Block.MAY), ("splice", Block.MAY),
    ],
)  # fmt: skip
def test_blocking_classes(name: str, block: Block) -> None:
    assert BY_NAME[name].block == block


def test_flags_of_descriptors() -> None:
    assert BY_NAME["read"].flags & Flag.FD
    assert not BY_NAME["openat"].flags & Flag.FD
    assert BY_NAME["openat"].fd_mask == 0b1
    assert BY_NAME["dup2"].fd_mask == 0b11
    assert BY_NAME["splice"].fd_mask == 0b101
    echoing = {one.name for one in CALLS.values() if one.flags & Flag.ECHO}
    assert echoing == {"write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg"}
    moving = {one.name for one in CALLS.values() if one.flags & Flag.XFER}
    assert moving == {"sendfile", "splice", "tee", "copy_file_range", "vmsplice"}


def test_cases_are_sorted_and_unique() -> None:
    for one in CALLS.values():
        keys = [each.key for each in one.cases]
        assert keys == sorted(set(keys)), one.name
        if one.selector is not None and not one.selector.pair:
            assert all(key & ~one.selector.mask == 0 for key in keys)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
def test_a_case_is_found_by_its_key_alone(args: list[int]) -> None:
    for one in CALLS.values():
        found = one.case(args)
        if found is not None and one.selector is not None:
            assert found.key == one.selector.key(args)


def test_a_request_is_found_whatever_its_upper_half() -> None:
    found = BY_NAME["ioctl"].case([0, 0xFFFFFFFF00005401, 0, 0, 0, 0])
    assert found is not None
    assert found.name == "TCGETS"


def test_an_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KeyError):
        call(0, "x", fd(), out_buf("buf", size="length"), size("count"), family="test")


def test_two_arguments_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="names must differ"):
        call(0, "x", fd(), num("fd"), family="test")


def test_path_calls_get_their_class_from_the_path() -> None:
    one = call(0, "x", path(), family="test")
    assert (one.block, one.waits_on, one.flags) == (Block.MAY, "path", Flag.PATH)


def test_a_case_inherits_what_comes_before_it() -> None:
    one = call(
        0, "x", fd(), num("command"), num("argument"), family="test", block=Block.MAY, waits_on="fd",
        selector=Selector(1), case_from=2, cases=[case(7, "SEVEN", out_struct("out", "timespec"))],
    )  # fmt: skip
    found = one.case((0, 7, 0))
    assert found is not None
    assert [arg.name for arg in found.args] == ["fd", "command", "out"]
    assert found.effects == (Effect(Op.FIXED, True, 2, when=When.SUCCESS, size=16),)
    assert found.block == Block.MAY
    assert one.case((0, 8, 0)) is None


@pytest.fixture(scope="module")
def effects_header(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """effects.h, written by a Python that has nothing but its standard library."""
    out = tmp_path_factory.mktemp("effects") / "effects.h"
    subprocess.run([sys.executable, "-S", "-m", "interfaces.generate", out], cwd=ROOT, check=True)
    return out


def test_the_header_compiles_and_says_what_the_table_says(effects_header: Path) -> None:
    source = effects_header.with_name("ask.c")
    source.write_text(
        '#include "abi.h"\n#include "effects.h"\n#include <stdio.h>\n'
        "static void effects(unsigned first, unsigned count) {\n"
        "  for (unsigned i = first; i < first + count; i++) {\n"
        "    const struct rr_effect *e = &rr_effects[i];\n"
        '    printf(" %u.%u.%u.%u.%u.%u.%u.%u.%u", e->op, e->out, e->arg, e->len_arg, e->when, '
        "e->unit, e->off, e->off2, e->size);\n  }\n"
        '  printf("\\n");\n}\n'
        "int main(void) {\n"
        "  for (unsigned nr = 0; nr < RR_NCALLS; nr++) {\n"
        "    const struct rr_call *c = &rr_calls[nr];\n"
        "    if (!c->treat) continue;\n"
        '    printf("%u %u %u %u %u", nr, c->treat, c->block, c->nargs, c->flags);\n'
        "    effects(c->first_effect, c->neffects);\n"
        "    if (!c->sub) continue;\n"
        "    const struct rr_sub *s = &rr_subs[c->sub - 1];\n"
        "    for (unsigned k = s->first_row; k < s->first_row + (unsigned)s->nrows; k++) {\n"
        '      printf("%u:%u %u %u", nr, rr_sub_rows[k].key, rr_sub_rows[k].treat, rr_sub_rows[k].block);\n'
        "      effects(rr_sub_rows[k].first_effect, rr_sub_rows[k].neffects);\n"
        "    }\n  }\n  return RR_NR_read;\n}\n"
    )
    program = source.with_suffix("")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "interposer" / "core")]
    subprocess.run(["gcc", *flags, "-o", program, source], check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert said == list(expected_lines())


def expected_lines() -> list[str]:
    def text(effects: tuple[Effect, ...]) -> str:
        return "".join(
            f" {e.op.value}.{int(e.out)}.{e.arg}.{e.len_arg}.{e.when.value}"
            f".{e.unit}.{e.off}.{e.off2}.{e.size}"
            for e in effects
        )

    lines = []
    for number, one in CALLS.items():
        flags = int(one.flags) | one.fd_mask << 16 | one.int_mask << 24
        lines.append(
            f"{number} {one.treat.value} {one.block.value} {len(one.args)} {flags}{text(one.effects)}"
        )
        lines += [
            f"{number}:{each.key} {each.treat.value} {each.block.value}{text(each.effects)}"
            for each in one.cases
        ]
    return lines


def test_the_header_is_left_alone_when_it_is_up_to_date(effects_header: Path) -> None:
    before = effects_header.stat().st_mtime_ns
    assert generate.main([str(effects_header)]) == 0
    assert effects_header.stat().st_mtime_ns == before


def test_generate_wants_one_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main([]) == 2
    assert "usage" in capsys.readouterr().err
