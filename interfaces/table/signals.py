"""Signals."""

from __future__ import annotations

from interfaces.declare import (
    MASK,
    NEWFD,
    POSITIVE,
    REDO,
    WAIT,
    Call,
    call,
    enum,
    fd,
    flags,
    in_struct,
    num,
    out_buf,
    out_struct,
    pid,
    size,
)  # fmt: skip

FAMILY = "signals"

CALLS: list[Call] = [
    call(13, "rt_sigaction", enum("signum", "signal"), in_struct("act", "sigaction"),
         out_struct("oldact", "sigaction"), size("sigsetsize"), family=FAMILY, treat=REDO),
    call(14, "rt_sigprocmask", enum("how", "sigprocmask"), in_struct("set", "sigset"),
         out_struct("oldset", "sigset"),
         size("sigsetsize"), family=FAMILY, treat=REDO),
    call(15, "rt_sigreturn", family=FAMILY, treat=REDO),
    call(34, "pause", family=FAMILY, block=WAIT, waits_on="signal"),
    call(62, "kill", pid(), enum("sig", "signal"), family=FAMILY),
    call(127, "rt_sigpending", out_buf("set", size="sigsetsize", written=""), size("sigsetsize"),
         family=FAMILY),
    call(128, "rt_sigtimedwait", in_struct("set", "sigset"), out_struct("info", "siginfo", POSITIVE),
         in_struct("timeout", "timespec"), size("sigsetsize"), family=FAMILY, block=WAIT, waits_on="signal",
         flags=MASK, returns="signal"),
    call(129, "rt_sigqueueinfo", pid("tgid"), enum("sig", "signal"), in_struct("info", "siginfo"),
         family=FAMILY),
    call(130, "rt_sigsuspend", in_struct("mask", "sigset"), size("sigsetsize"), family=FAMILY, block=WAIT,
         waits_on="signal", flags=MASK),
    call(131, "sigaltstack", in_struct("ss", "stack_t"), out_struct("old_ss", "stack_t"), family=FAMILY,
         treat=REDO),
    call(200, "tkill", pid("tid"), enum("sig", "signal"), family=FAMILY),
    call(219, "restart_syscall", family=FAMILY),
    call(234, "tgkill", pid("tgid"), pid("tid"), enum("sig", "signal"), family=FAMILY),
    call(282, "signalfd", fd(), in_struct("mask", "sigset"), size("sizemask"), family=FAMILY,
         flags=MASK | NEWFD,
         returns="fd"),
    call(289, "signalfd4", fd(), in_struct("mask", "sigset"), size("sizemask"), flags("flags", "newfd"),
         family=FAMILY,
         flags=MASK | NEWFD, returns="fd"),
    call(297, "rt_tgsigqueueinfo", pid("tgid"), pid("tid"), enum("sig", "signal"),
         in_struct("info", "siginfo"),
         family=FAMILY),
    call(424, "pidfd_send_signal", fd("pidfd"), enum("sig", "signal"), in_struct("info", "siginfo"),
         num("flags"),
         family=FAMILY),
]  # fmt: skip

