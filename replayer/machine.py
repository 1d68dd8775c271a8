"""Whether this CPU can run what was recorded on another one.

CPUID is answered from the log, so the program believes to be on the recorded CPU and may use any
instruction that one had. What the tool masks anyway (RDRAND, RDSEED, RDPID, TSX) and what user code cannot
use does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from replayer.errors import MachineError

_USER_FEATURES = """
sse sse2 pni ssse3 sse4_1 sse4_2 sse4a popcnt abm lzcnt aes pclmulqdq fma fma4 xop avx avx2 f16c bmi1 bmi2
adx movbe sha_ni sha512 sm3 sm4 gfni vaes vpclmulqdq avx_vnni avx_vnni_int8 avx_vnni_int16 avx_ifma
avx_ne_convert avx512f avx512dq avx512ifma avx512pf avx512er avx512cd avx512bw avx512vl avx512vbmi
avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq avx512_bf16 avx512_fp16 avx512_vp2intersect
avx512_4vnniw avx512_4fmaps amx_tile amx_int8 amx_bf16 amx_fp16 cx16 lahf_lm fsgsbase xsave xsaveopt xsavec
xgetbv1 cldemote clflushopt clwb clzero movdiri movdir64b enqcmd waitpkg serialize tbm 3dnow 3dnowext
3dnowprefetch mmxext pku ospke cmpxchg16b cmpccxadd raoint
"""


def cpu_flags() -> set[str]:
    """The feature flags /proc/cpuinfo names for this CPU; empty when it cannot be read."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("flags"):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def missing_features(recorded: Iterable[str], here: Iterable[str]) -> list[str]:
    """Features user code could use there and cannot use here, sorted."""
    return sorted((set(recorded) & set(_USER_FEATURES.split())) - set(here))


def check(meta: dict[str, Any]) -> None:
    """MachineError when the trace's machine has features that this one lacks; unknown is not missing."""
    machine = meta.get("machine")
    if not isinstance(machine, dict):
        return
    flags = machine.get("cpu_flags")
    here = cpu_flags()
    if isinstance(flags, str):
        flags = flags.split()
    if not isinstance(flags, list) or not here:
        return
    missing = missing_features((flag for flag in flags if isinstance(flag, str)), here)
    if missing:
        name = machine.get("cpu_model")
        recorded_on = f" ({name})" if isinstance(name, str) and name else ""
        raise MachineError(
            f"the trace was recorded on another CPU{recorded_on}; this one lacks {', '.join(missing)}",
            "Replay on a CPU that has them, or record again here; --ignore-cpu tries anyway.",
        )
