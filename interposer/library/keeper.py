"""The keeper: the process between the tool and the programs it runs at a library interface.

Frida reaps what it works in, and with it a program's exit status; it also waits for children of its own
process, whichever they are. So the keeper is the parent of the programs. It also traces a process for the
moment in which that becomes another program (`Knock`), until the new one waits at its entry point.

Both sides speak lines of JSON. Requests: `spawn`, `go`. Answers: `started` or `failed` to a spawn; `image`
(a process has become another program, which waits), `unrecorded` (one that cannot be entered), `ended`.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from interfaces.errors import ExitStatus, RrPyError
from interposer import kernel, launch, ptrace
from interposer.errors import Gone, LaunchError
from interposer.library.control import Control, Knock
from interposer.library.spawn import Arriving, Waiting, is_dynamic, spawn

Message = dict[str, Any]
_HIGH = 400
_TICK = 0.01
_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


class Keeper:
    """The tool's end of a keeper process."""

    def __init__(self, control: Control) -> None:
        """Fork the keeper, with the output this process has now. `control` lies in shared memory."""
        commands_read, self._commands = os.pipe()
        self._answers, answers_write = os.pipe()
        self._rest = b""
        self._news: list[Message] = []
        self._process = os.fork()
        if self._process == 0:
            try:
                os.close(self._commands)
                os.close(self._answers)
                _Keeping(control, commands_read, answers_write).run()
            finally:
                os._exit(ExitStatus.TOOL_FAILED)
        os.close(commands_read)
        os.close(answers_write)

    def spawn(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        path: str = "",
        outputs: Mapping[int, int] | None = None,
    ) -> Message:
        """Start a program, which waits at its entry point: `pid`, `spare`. Raises LaunchError.

        `outputs`: its descriptors that lead to the output of the first one (1 or 2); without it they are this
        process's own.
        """
        given = None if outputs is None else {str(fd): which for fd, which in outputs.items()}
        self._ask(do="spawn", argv=[*argv], env={**env}, cwd=cwd, path=path, outputs=given)
        found: Message = {}
        while not found:
            for message in self._read(wait=True):
                if message["is"] in ("started", "failed"):
                    found = message
                else:
                    self._news.append(message)
        if found["is"] == "failed":
            raise LaunchError(found["error"], found["remedy"], ExitStatus(found["status"]))
        return found

    def go(self, pid: int) -> None:
        """Let a program run that waits at its entry point."""
        self._ask(do="go", pid=pid)

    def news(self) -> list[Message]:
        """What the keeper has told since the last time."""
        found = [*self._news, *self._read(wait=False)]
        self._news.clear()
        return found

    def close(self) -> None:
        """End the keeper. Programs that still wait go on without this process."""
        os.close(self._commands)
        os.close(self._answers)
        with suppress(ChildProcessError):
            os.waitpid(self._process, 0)

    def _ask(self, **words: object) -> None:
        data = json.dumps(words).encode() + b"\n"
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._commands, data) :]

    def _read(self, *, wait: bool) -> list[Message]:
        if not wait and not select.select([self._answers], [], [], 0)[0]:
            return []
        data = os.read(self._answers, 1 << 16)
        if not data and wait:
            return [{"is": "failed", "error": "the keeper process was killed", "remedy": "", "status": 125}]
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


class _Keeping:
    """The keeper's life."""

    def __init__(self, control: Control, commands: int, answers: int) -> None:
        self.control = control
        self.commands = _lift(commands)
        self.answers = _lift(answers)
        self.output = {1: _lift(1, keep=True), 2: _lift(2, keep=True)}
        self.waiting: dict[int, Waiting] = {}
        self.arriving: dict[int, Arriving] = {}
        self.knocked: dict[int, Knock] = {}
        self.tasks: dict[int, int] = {}
        self.mine: set[int] = set()
        self.rest = b""
        self.actions = {number: signal.getsignal(number) for number in _TERMINAL}

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with suppress(OSError):
            kernel.set_subreaper(True)
        while True:
            seen = self.control.knock
            if not self._listen() and not self._gone():
                return
            while (wait := ptrace.poll()) is not None:
                with suppress(Gone):
                    self._stopped(wait)
            for knock in self.control.knocks:
                if knock.state in (Knock.ASKED, Knock.STAYS):
                    self._heard(knock)
            self.control.wait_for_knock(seen, _TICK)

    def _tell(self, **words: object) -> None:
        with suppress(OSError):
            os.write(self.answers, json.dumps(words).encode() + b"\n")
        self.control.rouse()

    def _gone(self) -> bool:
        """The tool is gone: what waits goes on by itself. True while something is on its way."""
        for pid in [*self.waiting]:
            if pid in self.mine:
                os.kill(pid, signal.SIGKILL)
            else:
                self._go(pid)
        return bool(self.arriving or self.knocked)

    def _listen(self) -> bool:
        """Carry out what was asked; False when nobody will ask any more."""
        while select.select([self.commands], [], [], 0)[0]:
            data = os.read(self.commands, 1 << 16)
            if not data:
                return False
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                words = json.loads(line)
                if words["do"] == "go":
                    self._go(words["pid"])
                else:
                    self._spawn(words)
        return True

    def _spawn(self, words: Message) -> None:
        command = launch.Command(tuple(words["argv"]), words["env"], words["cwd"], words["path"] or None)
        used = self._lay(words["outputs"]) if words["outputs"] is not None else []
        for number, action in self.actions.items():
            signal.signal(number, action)
        try:
            waiting = spawn(command)
        except RrPyError as why:
            self._tell(
                **{"is": "failed", "error": why.message, "remedy": why.remedy, "status": int(why.status)}
            )
            return
        finally:
            for fd in used:
                os.close(fd)
            for number in _TERMINAL:
                signal.signal(number, signal.SIG_IGN)
        self.mine.add(waiting.pid)
        self.waiting[waiting.pid] = waiting
        self._tell(**{"is": "started", "pid": waiting.pid, "spare": [*waiting.spare]})
        if words["outputs"] is None:
            for standard in (0, 1, 2):
                with suppress(OSError):
                    os.close(standard)

    def _lay(self, outputs: Mapping[str, int]) -> list[int]:
        """Descriptors for the next program: its outputs, and nothing at the other standard ones."""
        wanted = {int(fd): self.output[which] for fd, which in outputs.items()}
        nothing = _lift(os.open(os.devnull, os.O_RDWR))
        for fd in {0, 1, 2, *wanted}:
            os.dup2(wanted.get(fd, nothing), fd, inheritable=True)
        return [nothing, 0, 1, 2, *(fd for fd in wanted if fd > 2)]

    def _go(self, pid: int) -> None:
        waiting = self.waiting.pop(pid, None)
        if waiting is None:
            return
        with suppress(OSError):
            status = waiting.go()
            if status is not None and pid in self.mine:
                self._tell(**{"is": "ended", "pid": pid, "status": status})

    def _heard(self, knock: Knock) -> None:
        """A process wants to become another program, or has not become it."""
        tid = knock.tid
        if knock.state == Knock.STAYS:
            with suppress(Gone, OSError):
                ptrace.interrupt(tid)
                return
            knock.state = Knock.FREE
            self.knocked.pop(tid, None)
            return
        path = _text(knock.pid, knock.path)
        why = ""
        if os.geteuid() and _gives_rights(knock.pid, path):
            why = "it runs with the rights of its file's owner"
        else:
            try:
                ptrace.seize(tid)
            except (OSError, Gone):
                why = "it cannot be traced"
        if why:
            self._unrecorded(knock.pid, knock.task, path, why)
            knock.answer(Knock.REFUSED)
            return
        self.knocked[tid] = knock
        knock.answer(Knock.SEIZED)

    def _stopped(self, wait: ptrace.Wait) -> None:
        """A tracee has stopped, or a child ended."""
        tid = wait.tid
        if wait.ended:
            if (knock := self.knocked.pop(tid, None)) is not None:
                knock.state = Knock.FREE
            self.arriving.pop(tid, None)
            self.waiting.pop(tid, None)
            if tid in self.mine:
                self.mine.discard(tid)
                self._tell(**{"is": "ended", "pid": tid, "status": wait.status})
        elif wait.is_exec:
            knock = self.knocked.pop(tid, None) or self.knocked.pop(ptrace.former_tid(tid), None)
            if knock is None:
                ptrace.detach(tid)
                return
            task, pid = knock.task, knock.pid
            knock.state = Knock.FREE
            self._became(pid, task)
        elif (arriving := self.arriving.get(tid)) is not None:
            waiting = arriving.step(wait)
            if waiting is not None:
                del self.arriving[tid]
                self.waiting[tid] = waiting
                self._tell(**{"is": "image", "pid": tid, "task": self.tasks.pop(tid)})
        elif (knock := self.knocked.get(tid)) is not None and knock.state == Knock.STAYS:
            del self.knocked[tid]
            knock.state = Knock.FREE
            ptrace.detach(tid, wait.forward)
        elif wait.is_group_stop:
            ptrace.listen(tid)
        else:
            ptrace.resume(tid, wait.forward)

    def _became(self, pid: int, task: int) -> None:
        """At the exec stop of a process."""
        path = _link(f"/proc/{pid}/exe")
        why = ""
        try:
            with open(f"/proc/{pid}/exe", "rb") as file:
                wide = file.read(5)[4:] == b"\x02"
            if not wide:
                why = "it is a 32-bit program"
            elif not is_dynamic(pid):
                why = "it is linked statically"
            else:
                self.arriving[pid] = Arriving(pid)
                self.tasks[pid] = task
                return
        except OSError:
            why = "it may not be read"
        ptrace.detach(pid)
        self._unrecorded(pid, task, path, why)

    def _unrecorded(self, pid: int, task: int, path: str, why: str) -> None:
        self._tell(**{"is": "unrecorded", "pid": pid, "task": task, "path": path, "why": why})


def _lift(fd: int, *, keep: bool = False) -> int:
    """The same descriptor above those that programs use, closed by exec."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, min(_HIGH, _limit() // 2))
    if not keep:
        os.close(fd)
    return high


def _limit() -> int:
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _text(pid: int, address: int) -> str:
    """A string in a process's memory, "" where there is none."""
    if not address:
        return ""
    with suppress(OSError), open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        return os.fsdecode(os.pread(file.fileno(), 4096, address).split(b"\0")[0])
    return ""


def _gives_rights(pid: int, path: str) -> bool:
    """Whether a program runs set-user-ID or set-group-ID: a traced one does not get them."""
    try:
        return bool(Path(f"/proc/{pid}/cwd", path).stat().st_mode & 0o6000)
    except OSError:
        return False


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
