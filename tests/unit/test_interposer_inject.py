"""Launch and injection with an image of our own in the core's place, so that only this side is tested."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from interfaces import abi
from interfaces.errors import ExitStatus
from interposer import bootimage, image, inject, launch, ptrace
from interposer.errors import Gone, ImageError, LaunchError

# Writes its five arguments and the current stack pointer to descriptor fd_base, then starts the program as
# execve would have: all registers zero.
_SOURCE = """
.globl rr_entry_record
.text
rr_entry_record:
  mov %rdi, seen(%rip)
  mov %rsi, seen+8(%rip)
  mov %rdx, seen+16(%rip)
  mov %rcx, seen+24(%rip)
  mov %r8, seen+32(%rip)
  mov %rsp, seen+40(%rip)
  mov %rdx, %rdi
  lea seen(%rip), %rsi
  mov $48, %edx
  mov $1, %eax
  syscall
  xor %eax, %eax
  xor %ecx, %ecx
  xor %edx, %edx
  xor %esi, %esi
  xor %edi, %edi
  xor %r8d, %r8d
  xor %r11d, %r11d
  jmp *seen(%rip)
.data
seen: .fill 4096, 1, 0
"""
_SCRIPT = f"""
ENTRY(rr_entry_record)
PHDRS {{ text PT_LOAD FILEHDR PHDRS FLAGS(5); data PT_LOAD FLAGS(6); }}
SECTIONS {{
  . = {abi.TEXT:#x} + SIZEOF_HEADERS;
  .text : {{ *(.text) }} :text
  . = {abi.DATA:#x};
  .data : {{ *(.data) }} :data
  /DISCARD/ : {{ *(.note*) *(.comment) }}
}}
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core")
    (folder / "core.S").write_text(_SOURCE)
    (folder / "core.ld").write_text(_SCRIPT)
    target = folder / "rr_core"
    subprocess.run(
        ["gcc", "-nostdlib", "-static", "-no-pie", "-Wl,-Tcore.ld", "-o", str(target), "core.S"],
        cwd=folder,
        check=True,
    )
    return target


def run_injected(
    core: Path, argv: list[str], output: int, *, env: dict[str, str] | None = None, watched: bool = True
) -> tuple[bootimage.ImageState, tuple[int, ...], int]:
    """Start `argv` with the image inside, stdout on `output`: its state, what the image saw, how it ended."""
    part = image.load(core)
    core_fd = os.open(core, os.O_RDONLY)
    read, write = os.pipe()
    kept = os.dup(1)
    os.dup2(output, 1)
    try:
        child = launch.fork(launch.Command(tuple(argv), env or dict(os.environ)), [write, core_fd])
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    os.close(write)
    registers = child.start()
    memory = ptrace.Memory(child.pid)
    state = bootimage.capture(child.pid, registers.rip, registers.rsp, memory)
    put_in = inject.inject
    if not watched:
        place = inject.place_in(state.mappings, part, memory)
        assert place
        put_in = functools.partial(inject.inject_unwatched, place=place)
    put_in(
        child.pid,
        registers,
        part,
        child.fd_base + 1,
        fd_base=child.fd_base,
        domain=7,
        traps=True,
        memory=memory,
    )
    ptrace.detach(child.pid)
    os.close(memory.fd)
    seen = struct.unpack("<6Q", os.read(read, 48))
    _, status = os.waitpid(child.pid, 0)
    assert seen[2] == child.fd_base
    os.close(read)
    os.close(core_fd)
    return state, seen, status


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
@pytest.mark.parametrize("argv", [["/bin/echo", "hello", "world"], ["echo", "hello", "world"]])
def test_program_runs_after_the_image_with_its_stack_untouched(
    core: Path, tmp_path: Path, argv: list[str], watched: bool
) -> None:
    env = {"PATH": "/usr/bin:/bin", "A": "b"}
    with open(tmp_path / "out", "w+b") as out:
        state, seen, status = run_injected(core, argv, out.fileno(), env=env, watched=watched)
        out.seek(0)
        assert out.read() == b"hello world\n"
    assert status == 0
    entry, stack, _, domain, traps, stack_pointer = seen
    assert (entry, stack, domain, traps) == (state.entry, state.stack_pointer, 7, 1)
    assert stack_pointer == stack
    assert state.argv == argv
    assert state.envp == ["PATH=/usr/bin:/bin", "A=b"]
    auxiliary = dict(state.auxv)
    assert auxiliary[6] == 4096
    assert state.exe.endswith("echo")
    assert state.brk > 0
    assert state.stack_mapping.path == "[stack]"
    assert len(state.stack) == state.stack_mapping.end - state.stack_pointer


def test_static_and_fixed_address_programs_carry_it(core: Path, tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text('#include <stdio.h>\nint main(void) { puts("static"); return 3; }\n')
    for flags in (["-static", "-no-pie"], ["-static-pie"], ["-no-pie"]):
        program = tmp_path / "p"
        subprocess.run(["gcc", *flags, "-o", str(program), str(tmp_path / "p.c")], check=True)
        with open(tmp_path / "out", "w+b") as out:
            _, _, status = run_injected(core, [str(program)], out.fileno())
            out.seek(0)
            assert out.read() == b"static\n"
        assert os.waitstatus_to_exitcode(status) == 3


def test_script_without_interpreter_line_goes_to_the_shell(core: Path, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo from the shell $1\n")
    script.chmod(0o755)
    with open(tmp_path / "out", "w+b") as out:
        state, _, _ = run_injected(core, [str(script), "x"], out.fileno())
        out.seek(0)
        assert out.read() == b"from the shell x\n"
    assert state.argv == ["/bin/sh", str(script), "x"]


def test_program_runs_without_a_core_that_cannot_be_mapped(core: Path) -> None:
    """GIVEN no file where the core's should be WHEN injected unwatched THEN the program runs as ever."""
    child = launch.fork(launch.Command(("/bin/sh", "-c", "exit 3"), dict(os.environ)), [])
    registers = child.start()
    with ptrace.Memory(child.pid) as memory:
        state = bootimage.capture(child.pid, registers.rip, registers.rsp, memory)
        part = image.load(core)
        place = inject.place_in(state.mappings, part, memory)
        inject.inject_unwatched(
            child.pid,
            registers,
            part,
            999,
            fd_base=child.fd_base,
            domain=1,
            traps=False,
            memory=memory,
            place=place,
        )
        ptrace.detach(child.pid)
    _, status = os.waitpid(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 3


def test_core_is_watched_where_it_may_not_fit(core: Path) -> None:
    """GIVEN limited memory, or a mapping in the core's place WHEN asked THEN nothing is sure."""
    child = launch.fork(launch.Command(("/bin/sleep", "1000"), dict(os.environ)), [])
    registers = child.start()
    with ptrace.Memory(child.pid) as memory:
        state = bootimage.capture(child.pid, registers.rip, registers.rsp, memory)
        part = image.load(core)
        taken = state.mappings[0]._replace(start=abi.TEXT, end=abi.TEXT + 4096)
        assert inject.place_in(state.mappings, part, memory)
        assert not inject.place_in([*state.mappings, taken], part, memory)
        assert not inject.is_limited(child.pid)
        resource.prlimit(child.pid, resource.RLIMIT_AS, (1 << 40, 1 << 40))
        assert inject.is_limited(child.pid)
    child.kill()


def test_a_signal_sent_during_injection_is_delivered_afterwards(core: Path, tmp_path: Path) -> None:
    part = image.load(core)
    core_fd = os.open(core, os.O_RDONLY)
    read, write = os.pipe()
    child = launch.fork(launch.Command(("/bin/sleep", "1000"), dict(os.environ)), [write, core_fd])
    registers = child.start()
    os.kill(child.pid, signal.SIGTERM)
    with ptrace.Memory(child.pid) as memory:
        inject.inject(
            child.pid,
            registers,
            part,
            child.fd_base + 1,
            fd_base=child.fd_base,
            domain=1,
            traps=False,
            memory=memory,
        )
        ptrace.detach(child.pid)
    _, status = os.waitpid(child.pid, 0)
    assert os.WTERMSIG(status) == signal.SIGTERM
    for fd in (read, write, core_fd):
        os.close(fd)


def test_killed_at_its_exec_stop_is_gone(core: Path) -> None:
    child = launch.fork(launch.Command(("/bin/sleep", "1000"), dict(os.environ)), [])
    registers = child.start()
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(Gone), ptrace.Memory(child.pid) as memory:
        inject.inject(
            child.pid, registers, image.load(core), 0,
            fd_base=child.fd_base, domain=1, traps=False, memory=memory,
        )
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child.pid, 0)


def start(argv: list[str], path: str = "/usr/bin:/bin", cwd: str | None = None) -> LaunchError:
    with pytest.raises(LaunchError) as caught:
        launch.fork(launch.Command(tuple(argv), {"PATH": path}, cwd), []).start()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    return caught.value


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    for name in ("no-such-program", str(tmp_path / "none"), "", "/etc/passwd/x"):
        error = start([name])
        assert error.status is ExitStatus.NOT_FOUND
        assert name in error.message


def test_what_cannot_be_executed_says_why(tmp_path: Path) -> None:
    def make(name: str, content: bytes, mode: int = 0o755) -> str:
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(mode)
        return str(path)

    other_machine = struct.pack("<16sHHI", b"\x7fELF\2\1\1", 2, 183, 1) + bytes(44)
    for argv0, words in (
        (make("plain", b"echo hi\n", 0o644), "not executable"),
        (make("script", b"#!/no/such/interpreter -x\necho\n"), "/no/such/interpreter"),
        (make("arm", other_machine), "x86-64"),
        (str(tmp_path), "folder"),
    ):
        error = start([argv0])
        assert error.status is ExitStatus.CANNOT_RUN, argv0
        assert words in error.message
        assert error.remedy


def test_a_program_whose_dynamic_linker_is_missing_names_it(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-Wl,--dynamic-linker=/no/such/ld.so", "-o", "p", "p.c"], cwd=tmp_path, check=True)
    error = start(["./p"], cwd=str(tmp_path))
    assert error.status is ExitStatus.CANNOT_RUN
    assert "/no/such/ld.so" in error.message


def test_an_unexecutable_file_in_path_hides_no_later_program(tmp_path: Path) -> None:
    (tmp_path / "only-here").write_text("x")
    error = start(["only-here"], path=f"/nowhere:{tmp_path}")
    assert error.status is ExitStatus.CANNOT_RUN
    assert "not executable" in error.message


def test_a_missing_folder_is_the_tools_failure(tmp_path: Path) -> None:
    error = start(["true"], cwd=str(tmp_path / "none"))
    assert error.status is ExitStatus.TOOL_FAILED
    assert "none" in error.message


def test_an_image_of_another_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError):
        image.load(Path("/bin/true"))
    (tmp_path / "garbage").write_bytes(b"\x7fELF" + b"\1" * 100)
    with pytest.raises(ImageError):
        image.load(tmp_path / "garbage")
