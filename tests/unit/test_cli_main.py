"""The funnel: every way a command can end becomes one message and the right status."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from interfaces.errors import ExitStatus, RrPyError
from rr_py import main as funnel
from rr_py.cli import VERBS, cli

ROOT = Path(__file__).resolve().parents[2]


def end_with(monkeypatch: pytest.MonkeyPatch, action: Callable[[], int | None]) -> None:
    """Make the verb `info` do `action`."""

    @click.command()
    def command() -> int | None:
        return action()

    monkeypatch.setattr(type(cli), "get_command", lambda self, ctx, name: command)


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


def test_every_verb_has_a_module_with_a_command_and_help() -> None:
    context = click.Context(cli, info_name="rr-py")
    for verb in VERBS:
        command = cli.get_command(context, verb)
        assert command is not None
        text = command.get_help(click.Context(command, parent=context, info_name=verb))
        assert verb == "completion" or "Examples:" in text
        assert f"rr-py {verb}" in text


def test_an_error_is_a_message_with_its_remedy_and_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    end_with(
        monkeypatch, raising(RrPyError("found 3, needed 4", "count again\nslowly", ExitStatus.CANNOT_RUN))
    )
    assert funnel.main(["info"]) == 126
    assert capsys.readouterr() == ("", "rr-py: found 3, needed 4\n  count again\n  slowly\n")


def test_the_status_of_a_verb_is_the_status_of_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    end_with(monkeypatch, lambda: 42)
    assert funnel.main(["info"]) == 42
    end_with(monkeypatch, lambda: None)
    assert funnel.main(["info"]) == 0


def test_an_unexpected_error_is_one_line_and_a_report_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("RR_PY_DEBUG", raising=False)
    end_with(monkeypatch, raising(ValueError("odd\nvalue")))
    assert funnel.main(["info"]) == 125
    (report,) = (tmp_path / "rr-py" / "reports").iterdir()
    text = capsys.readouterr().err
    assert text.startswith("rr-py: internal error: ValueError: odd\n")
    assert str(report) in text
    assert "Traceback" not in text
    assert "Traceback" in report.read_text()
    assert "command: rr-py info" in report.read_text()
    assert report.stat().st_mode & 0o777 == 0o600


def test_a_report_that_cannot_be_saved_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(why: Exception, arguments: list[str]) -> Path:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(funnel, "_save_report", refuse)
    monkeypatch.delenv("RR_PY_DEBUG", raising=False)
    end_with(monkeypatch, raising(ValueError("odd")))
    assert funnel.main(["info"]) == 125
    assert "could not be saved (Read-only file system)" in capsys.readouterr().err


def test_debugging_shows_the_exception_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RR_PY_DEBUG", "1")
    end_with(monkeypatch, raising(ValueError("odd")))
    with pytest.raises(ValueError, match="odd"):
        funnel.main(["info"])


def test_an_os_error_names_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RR_PY_DEBUG", raising=False)
    end_with(monkeypatch, raising(PermissionError(errno.EACCES, "Permission denied", "/some/trace.bin")))
    assert funnel.main(["info"]) == 125
    assert capsys.readouterr().err.startswith("rr-py: /some/trace.bin: Permission denied\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["recrod", "ls"], "no command 'recrod'; did you mean record?"),
        (["sh"], "no command 'sh'; to record that program: rr-py record sh"),
        (["no-such-verb-or-program"], "no command 'no-such-verb-or-program'"),
        (["info", "--jsn"], "No such option '--jsn'. Did you mean --json?"),
        (["record"], "Missing argument 'PROGRAM [ARGS]...'"),
        (["record", "--checksun", "ls"], "No such option '--checksun'. Did you mean --checksum?"),
        (["record", "--env", "novalue", "ls"], "Invalid value for '--env': 'novalue' is not NAME=VALUE"),
        (["record", "--checksum=0", "ls"], "Invalid value for '--checksum': 0 is not in the range x>=1"),
    ],
)
def test_wrong_use_is_a_message_and_125(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert funnel.main(words) == 125
    err = capsys.readouterr().err
    assert err.replace("'", "").startswith(f"rr-py: {message}".replace("'", ""))
    assert err.splitlines()[1].strip().startswith("See rr-py")


def test_no_words_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert funnel.main([]) == 125
    assert "Commands:" in capsys.readouterr().out


def shell(script: str, **kwargs: object) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env.pop("RR_PY_DEBUG", None)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


PATCHED = """
import click, sys
from rr_py import cli, main
@click.command()
def command():
    {body}
cli.Verbs.get_command = lambda self, ctx, name: command
sys.exit(main.main(["info"]))
"""


def test_a_reader_that_goes_away_ends_the_tool_quietly_by_sigpipe() -> None:
    process = shell(PATCHED.format(body="[print(i) for i in range(10**6)]"))
    assert process.stdout is not None
    assert process.stdout.readline() == b"0\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait() == -signal.SIGPIPE
    process.stderr.close()


def test_an_interrupt_ends_the_tool_quietly_by_sigint() -> None:
    process = shell(PATCHED.format(body="import os, signal; os.kill(os.getpid(), signal.SIGINT)"))
    assert process.communicate() == (b"", b"")
    assert process.returncode == -signal.SIGINT


def test_a_full_disk_behind_stdout_is_said() -> None:
    with open("/dev/full", "wb") as full:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        run = subprocess.run(
            [sys.executable, "-m", "rr_py", "--help"], stdout=full, stderr=subprocess.PIPE, env=env
        )
    assert run.returncode == 125
    assert run.stderr.startswith(b"rr-py: cannot write the output: No space left on device\n")


def test_version() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", "rr_py", "--version"], capture_output=True, env=env, check=True
    )
    assert run.stdout.startswith(b"rr-py ")
    assert run.stderr == b""


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGSEGV, -signal.SIGSEGV),
        (signal.SIGKILL, -signal.SIGKILL),
        (signal.SIGCHLD, 128 + signal.SIGCHLD),
    ],
)
def test_dying_of_a_signal(number: int, status: int) -> None:
    process = shell(
        f"import signal; signal.signal(15, signal.SIG_IGN)\nfrom rr_py.ending import end_like\n"
        f"print('before')\nend_like(None, {int(number)})"
    )
    assert process.communicate()[0] == b"before\n"
    assert process.returncode == status


def test_starting_imports_no_heavy_module() -> None:
    script = (
        "import sys; from rr_py.main import main; main(['record', '--help']); "
        "print(sorted({'numpy', 'capstone', 'elftools', 'textual', 'ptrace', 'zstandard', 'psutil'} "
        "& set(sys.modules)), file=sys.stderr)"
    )
    process = shell(script)
    assert process.communicate()[1] == b"[]\n"
