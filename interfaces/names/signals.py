"""Names of signals, their codes, and errno values."""

from __future__ import annotations

import errno
import os

from interfaces.names.sets import enumeration, flag_set

SIGNALS = (
    "SIGHUP=1 SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE "
    "SIGALRM "
    "SIGTERM SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ SIGVTALRM "
    "SIGPROF "
    "SIGWINCH SIGIO SIGPWR SIGSYS"
)
enumeration("signal", SIGNALS)
_BY_NUMBER = {number: word.partition("=")[0] for number, word in enumerate(SIGNALS.split(), 1)}
FIRST_REAL_TIME, LAST_SIGNAL = 32, 64

enumeration("sigprocmask", "SIG_BLOCK SIG_UNBLOCK SIG_SETMASK")
flag_set(
    "sa",
    "SA_NOCLDSTOP=1 SA_NOCLDWAIT=2 SA_SIGINFO=4 SA_UNSUPPORTED=0x400 SA_EXPOSE_TAGBITS=0x800 "
    "SA_RESTORER=0x4000000 "
    "SA_ONSTACK=0x8000000 SA_RESTART=0x10000000 SA_NODEFER=0x40000000 SA_RESETHAND=0x80000000",
)
flag_set("sigaltstack", "SS_ONSTACK=1 SS_DISABLE=2 SS_AUTODISARM=0x80000000")
enumeration("sigev", "SIGEV_SIGNAL SIGEV_NONE SIGEV_THREAD SIGEV_THREAD_ID=4")
enumeration("cld", "CLD_EXITED=1 CLD_KILLED CLD_DUMPED CLD_TRAPPED CLD_STOPPED CLD_CONTINUED")
enumeration("si_code", "SI_USER=0 SI_KERNEL=0x80 SI_QUEUE=-1 SI_TIMER=-2 SI_MESGQ=-3 SI_ASYNCIO=-4 "
            "SI_SIGIO=-5 SI_TKILL=-6 "
            "SI_DETHREAD=-7 SI_ASYNCNL=-60")  # fmt: skip
enumeration("ill", "ILL_ILLOPC=1 ILL_ILLOPN ILL_ILLADR ILL_ILLTRP ILL_PRVOPC ILL_PRVREG ILL_COPROC "
            "ILL_BADSTK")
enumeration("fpe", "FPE_INTDIV=1 FPE_INTOVF FPE_FLTDIV FPE_FLTOVF FPE_FLTUND FPE_FLTRES FPE_FLTINV "
            "FPE_FLTSUB")
enumeration("segv", "SEGV_MAPERR=1 SEGV_ACCERR SEGV_BNDERR SEGV_PKUERR")
enumeration("bus", "BUS_ADRALN=1 BUS_ADRERR BUS_OBJERR BUS_MCEERR_AR BUS_MCEERR_AO")
enumeration("trap", "TRAP_BRKPT=1 TRAP_TRACE TRAP_BRANCH TRAP_HWBKPT TRAP_UNK TRAP_PERF")
enumeration("pollcode", "POLL_IN=1 POLL_OUT POLL_MSG POLL_ERR POLL_PRI POLL_HUP")
enumeration("syscode", "SYS_SECCOMP=1 SYS_USER_DISPATCH")

CODES_OF_SIGNAL = {
    4: "ill", 5: "trap", 7: "bus", 8: "fpe", 11: "segv", 17: "cld", 29: "pollcode", 31: "syscode",
}  # fmt: skip
"""The enumeration that names a signal's positive codes."""

RESTARTS = {
    512: ("ERESTARTSYS", "To be restarted if SA_RESTART is set"),
    513: ("ERESTARTNOINTR", "To be restarted"),
    514: ("ERESTARTNOHAND", "To be restarted if no handler"),
    516: ("ERESTART_RESTARTBLOCK", "Interrupted by signal"),
}
"""Errors that stay inside the kernel: a call that a signal interrupted."""


def signal_name(number: int) -> str:
    """`SIGINT`; `SIGRT_3` for a real-time signal; the number where there is no such signal."""
    if number in _BY_NUMBER:
        return _BY_NUMBER[number]
    if FIRST_REAL_TIME <= number <= LAST_SIGNAL:
        return f"SIGRT_{number - FIRST_REAL_TIME}"
    return str(number)


def errno_name(number: int) -> str:
    """`ENOENT`; the number where there is no such error."""
    if number in RESTARTS:
        return RESTARTS[number][0]
    return "EAGAIN" if number == errno.EAGAIN else errno.errorcode.get(number, str(number))


def errno_text(number: int) -> str:
    """`No such file or directory`."""
    return RESTARTS[number][1] if number in RESTARTS else os.strerror(number)
