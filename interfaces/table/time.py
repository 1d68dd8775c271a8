"""Clocks, sleeping and timers."""

from __future__ import annotations

from interfaces.declare import (
    ALWAYS,
    NEWFD,
    WAIT,
    Call,
    call,
    enum,
    fd,
    flags,
    in_struct,
    inout_struct,
    num,
    out_struct,
    unsigned,
    value,
)  # fmt: skip
from interfaces.model import Arg

FAMILY = "time"


def _clock() -> Arg:
    return value("clockid", "clockid")


CALLS: list[Call] = [
    call(35, "nanosleep", in_struct("req", "timespec"), out_struct("rem", "timespec", ALWAYS), family=FAMILY,
         block=WAIT, waits_on="time"),
    call(36, "getitimer", enum("which", "itimer"), out_struct("curr_value", "itimerval"), family=FAMILY),
    call(37, "alarm", unsigned("seconds"), family=FAMILY),
    call(38, "setitimer", enum("which", "itimer"), in_struct("new_value", "itimerval"),
         out_struct("old_value", "itimerval"), family=FAMILY),
    call(96, "gettimeofday", out_struct("tv", "timeval"), out_struct("tz", "timezone"), family=FAMILY),
    call(159, "adjtimex", inout_struct("buf", "timex"), family=FAMILY),
    call(164, "settimeofday", in_struct("tv", "timeval"), in_struct("tz", "timezone"), family=FAMILY),
    call(201, "time", out_struct("tloc", "sec", ALWAYS), family=FAMILY, returns="sec"),
    call(222, "timer_create", _clock(), in_struct("sevp", "sigevent"), inout_struct("timerid", "s32"),
         family=FAMILY),
    call(223, "timer_settime", num("timerid"), flags("flags", "timer"), in_struct("new_value", "itimerspec"),
         out_struct("old_value", "itimerspec"), family=FAMILY),
    call(224, "timer_gettime", num("timerid"), out_struct("curr_value", "itimerspec"), family=FAMILY),
    call(225, "timer_getoverrun", num("timerid"), family=FAMILY),
    call(226, "timer_delete", num("timerid"), family=FAMILY),
    call(227, "clock_settime", _clock(), in_struct("tp", "timespec"), family=FAMILY),
    call(228, "clock_gettime", _clock(), out_struct("tp", "timespec"), family=FAMILY),
    call(229, "clock_getres", _clock(), out_struct("res", "timespec"), family=FAMILY),
    call(230, "clock_nanosleep", _clock(), flags("flags", "timer"), in_struct("request", "timespec"),
         out_struct("remain", "timespec", ALWAYS), family=FAMILY, block=WAIT, waits_on="time"),
    call(283, "timerfd_create", _clock(), flags("flags", "newfd"), family=FAMILY, flags=NEWFD, returns="fd"),
    call(286, "timerfd_settime", fd(), flags("flags", "timerfd"), in_struct("new_value", "itimerspec"),
         out_struct("old_value", "itimerspec"), family=FAMILY),
    call(287, "timerfd_gettime", fd(), out_struct("curr_value", "itimerspec"), family=FAMILY),
    call(305, "clock_adjtime", _clock(), inout_struct("buf", "timex"), family=FAMILY),
]  # fmt: skip
