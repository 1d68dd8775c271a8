"""Sockets."""

from __future__ import annotations

from interfaces.declare import (
    ECHO,
    MAY,
    NEWFD,
    REFUSE,
    RESTART,
    SUCCESS,
    WAIT,
    Call,
    Selector,
    array,
    call,
    case,
    enum,
    fd,
    flags,
    in_buf,
    inout_struct,
    lenptr,
    msghdr_in,
    msghdr_out,
    num,
    out_buf,
    ptr,
    size,
    sockaddr_in,
    sockaddr_out,
    unsigned,
    value,
)  # fmt: skip
from interfaces.model import Arg, Op, Spec

FAMILY = "network"

SOL_SOCKET, IPPROTO_TCP = 1, 6


def _option(units: int) -> Arg:
    """An option's value: `units` bytes for each unit of the length behind `optlen`."""
    return Arg("optval", "sockopt", count="optlen", specs=(Spec(Op.LENPTR, True, "optlen", SUCCESS,
    size=units),))


GETSOCKOPT = [
    case(SOL_SOCKET << 16 | 26, "SO_GET_FILTER", _option(8), lenptr("optlen")),
    case(IPPROTO_TCP << 16 | 35, "TCP_ZEROCOPY_RECEIVE", _option(1), lenptr("optlen"), treat=REFUSE),
]

SOL_PACKET, SOL_XDP = 263, 283

SETSOCKOPT = [
    case(level << 16 | option, name, ptr("optval"), unsigned("optlen"), treat=REFUSE)
    for level, option, name in (
        (SOL_PACKET, 5, "PACKET_RX_RING"), (SOL_PACKET, 13, "PACKET_TX_RING"), (SOL_XDP, 2, "XDP_RX_RING"),
        (SOL_XDP, 3, "XDP_TX_RING"), (SOL_XDP, 4, "XDP_UMEM_REG"), (SOL_XDP, 5, "XDP_UMEM_FILL_RING"),
        (SOL_XDP, 6, "XDP_UMEM_COMPLETION_RING"),
    )
]  # fmt: skip
"""Options that make the kernel write memory whenever it likes."""

CALLS: list[Call] = [
    call(41, "socket", enum("domain", "af"), value("type", "socktype"), value("protocol", "protocol"),
         family=FAMILY,
         flags=NEWFD, returns="fd"),
    call(42, "connect", fd("sockfd"), sockaddr_in("addr", length="addrlen"), unsigned("addrlen"),
         family=FAMILY,
         block=WAIT, waits_on="peer", flags=RESTART),
    call(43, "accept", fd("sockfd"), sockaddr_out("addr", length="addrlen"), lenptr("addrlen", SUCCESS),
         family=FAMILY,
         block=WAIT, waits_on="peer", flags=NEWFD | RESTART, returns="fd"),
    call(44, "sendto", fd("sockfd"), in_buf("buf", size="len"), size("len"), flags("flags", "msg"),
         sockaddr_in("dest_addr", length="addrlen"), unsigned("addrlen"), family=FAMILY, block=MAY,
         waits_on="fd",
         flags=ECHO | RESTART),
    call(45, "recvfrom", fd("sockfd"), out_buf("buf", size="len"), size("len"), flags("flags", "msg"),
         sockaddr_out("src_addr", length="addrlen"), lenptr("addrlen", SUCCESS), family=FAMILY, block=MAY,
         waits_on="fd", flags=RESTART),
    call(46, "sendmsg", fd("sockfd"), msghdr_in("msg"), flags("flags", "msg"), family=FAMILY, block=MAY,
         waits_on="fd",
         flags=ECHO | RESTART),
    call(47, "recvmsg", fd("sockfd"), msghdr_out("msg"), flags("flags", "msg"), family=FAMILY, block=MAY,
         waits_on="fd",
         flags=RESTART),
    call(48, "shutdown", fd("sockfd"), enum("how", "shutdown"), family=FAMILY),
    call(49, "bind", fd("sockfd"), sockaddr_in("addr", length="addrlen"), unsigned("addrlen"), family=FAMILY),
    call(50, "listen", fd("sockfd"), num("backlog"), family=FAMILY),
    call(51, "getsockname", fd("sockfd"), sockaddr_out("addr", length="addrlen"), lenptr("addrlen", SUCCESS),
         family=FAMILY),
    call(52, "getpeername", fd("sockfd"), sockaddr_out("addr", length="addrlen"), lenptr("addrlen", SUCCESS),
         family=FAMILY),
    call(53, "socketpair", enum("domain", "af"), value("type", "socktype"), value("protocol", "protocol"),
         array("sv", "fd", "2", Spec(Op.FIXED, True, when=SUCCESS, size=8)), family=FAMILY, flags=NEWFD),
    call(54, "setsockopt", fd("sockfd"), enum("level", "sol"), value("optname", "optname"),
         Arg("optval", "sockopt", count="optlen", specs=(Spec(Op.ARG, False, "optlen", size=1),)),
         unsigned("optlen"),
         family=FAMILY,
         selector=Selector(1, pair=True), case_from=3, cases=SETSOCKOPT),
    call(55, "getsockopt", fd("sockfd"), enum("level", "sol"), value("optname", "optname"), _option(1),
         lenptr("optlen"), family=FAMILY, selector=Selector(1, pair=True), case_from=3, cases=GETSOCKOPT),
    call(288, "accept4", fd("sockfd"), sockaddr_out("addr", length="addrlen"), lenptr("addrlen", SUCCESS),
         flags("flags", "sockflags"), family=FAMILY, block=WAIT, waits_on="peer", flags=NEWFD | RESTART,
         returns="fd"),
    call(299, "recvmmsg", fd("sockfd"),
         Arg("msgvec", "mmsghdr", count="vlen", specs=(Spec(Op.MMSGHDR, True, "vlen", SUCCESS),)),
         unsigned("vlen"),
         flags("flags", "msg"), inout_struct("timeout", "timespec"), family=FAMILY, block=MAY, waits_on="fd",
         flags=RESTART),
    call(307, "sendmmsg", fd("sockfd"),
         Arg("msgvec", "mmsghdr", count="vlen",
             specs=(Spec(Op.MMSGHDR, False, "vlen"), Spec(Op.RESULT, True, "vlen", size=64, unit=64))),
         unsigned("vlen"), flags("flags", "msg"), family=FAMILY, block=MAY, waits_on="fd", flags=RESTART),
]  # fmt: skip

