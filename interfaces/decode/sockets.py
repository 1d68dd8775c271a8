"""Socket addresses, messages with their control data, socket options."""

from __future__ import annotations

import socket

from interfaces.abi import RegionKind
from interfaces.decode import scalars
from interfaces.decode.field import Field, Memory, Style
from interfaces.decode.structures import braces, integer, listing, structure
from interfaces.names import ENUMS, enum_text, flags_text
from interfaces.names.network import OPTIONS_OF_LEVEL

MSGHDR_SIZE, MMSGHDR_SIZE, IOVEC_SIZE, CMSG_HEADER = 56, 64, 16, 16
SOL_SOCKET, SO_LINGER, SO_PEERCRED, SO_ERROR = 1, 13, 17, 4
SO_TIMEOUTS = (20, 21)


def address(name: str, data: bytes, style: Style) -> Field:
    """A socket address, as its family says."""
    if len(data) < 2:
        return Field(name, "sockaddr", scalars.quoted(data, style))
    family = integer(data, 0, 2)
    children = [Field("sa_family", "u16", enum_text("af", family))]
    if family == socket.AF_UNIX and len(data) > 2:
        children.append(Field("sun_path", "path", _unix_path(data[2:], style)))
    elif family == socket.AF_INET and len(data) >= 8:
        port = int.from_bytes(data[2:4], "big")
        children.append(Field("sin_port", "be16", f"htons({port})"))
        children.append(Field("sin_addr", "in_addr", f'inet_addr("{socket.inet_ntoa(data[4:8])}")'))
    elif family == socket.AF_INET6 and len(data) >= 24:
        children.append(Field("sin6_port", "be16", f"htons({int.from_bytes(data[2:4], 'big')})"))
        children.append(Field("sin6_flowinfo", "be32", f"htonl({int.from_bytes(data[4:8], 'big')})"))
        text = socket.inet_ntop(socket.AF_INET6, data[8:24])
        children.append(Field("sin6_addr", "in6_addr", f'inet_pton(AF_INET6, "{text}")'))
        if len(data) >= 28:
            children.append(Field("sin6_scope_id", "u32", str(integer(data, 24, 4))))
    elif family == 16 and len(data) >= 12:
        children.append(Field("nl_pid", "pid", scalars.process(integer(data, 4, 4), style)))
        children.append(Field("nl_groups", "x32", f"{integer(data, 8, 4):08x}"))
    elif family == 17 and len(data) >= 12:
        children.append(Field("sll_protocol", "be16", f"htons({int.from_bytes(data[2:4], 'big'):#x})"))
        children.append(Field("sll_ifindex", "s32", str(integer(data, 4, 4))))
    elif len(data) > 2:
        children.append(Field("sa_data", "bytes", scalars.quoted(data[2:], style)))
    return Field(name, "sockaddr", braces("sockaddr", tuple(children)), tuple(children))


def _unix_path(data: bytes, style: Style) -> str:
    whole = Style(style.deterministic, 108, style.elements)
    if data[:1] == b"\0" and len(data) > 1:
        return "@" + scalars.quoted(data[1:], whole)
    return scalars.quoted(data.partition(b"\0")[0], whole)


def iovec(
    name: str, memory: Memory, at: int, count: int, style: Style, kind: RegionKind, transferred: int | None
) -> Field:
    """An iovec array with what its buffers hold; `transferred` bytes of them were written or read."""
    header = memory.read(at, IOVEC_SIZE * min(count, style.elements))
    present = len(header) // IOVEC_SIZE
    if not present:
        return Field(name, "iovec[]", scalars.address(at, style) if count else "[]")
    left = transferred
    shown: list[Field] = []
    for i in range(present):
        base, length = integer(header, 16 * i, 8), integer(header, 16 * i + 8, 8)
        here = length if left is None else min(length, left)
        data = memory.read(base, min(here, style.strings + 1), kind) if here else b""
        text = scalars.quoted(data, style, here) if data or not here else scalars.address(base, style)
        children = (Field("iov_base", "buffer", text), Field("iov_len", "size", str(length)))
        shown.append(Field(f"[{i}]", "iovec", braces("iovec", children), children))
        left = None if left is None else left - here
    elements = tuple(shown)
    return Field(name, "iovec[]", listing(elements, count > present), elements)


def message(
    name: str, memory: Memory, at: int, style: Style, kind: RegionKind, transferred: int | None
) -> Field:
    """struct msghdr with all that it points to."""
    header = memory.read(at, MSGHDR_SIZE, kind)
    if len(header) < MSGHDR_SIZE:
        return Field(name, "msghdr", scalars.address(at, style))
    sender, sender_size = integer(header, 0, 8), integer(header, 8, 4)
    vector, vectors = integer(header, 16, 8), integer(header, 24, 8)
    control, control_size = integer(header, 32, 8), integer(header, 40, 8)
    name_data = memory.read(sender, min(sender_size, 128), kind)
    children = [
        address("msg_name", name_data, style)
        if name_data
        else Field("msg_name", "sockaddr", scalars.address(sender, style)),
        Field("msg_namelen", "u32", str(sender_size)),
        iovec("msg_iov", memory, vector, vectors, style, kind, transferred),
        Field("msg_iovlen", "size", str(vectors)),
    ]
    if control and control_size:
        data = memory.read(control, min(control_size, 4096), kind)
        children.append(controls("msg_control", data, style))
    children.append(Field("msg_controllen", "size", str(control_size)))
    children.append(Field("msg_flags", "flags", flags_text("msg", integer(header, 48, 4))))
    done = tuple(children)
    return Field(name, "msghdr", braces("msghdr", done), done)


def messages(
    name: str, memory: Memory, at: int, count: int, style: Style, kind: RegionKind, sent: int
) -> Field:
    """An array of struct mmsghdr."""
    shown: list[Field] = []
    present = min(count, style.elements, sent if sent >= 0 else count)
    for i in range(present):
        place = at + MMSGHDR_SIZE * i
        length = memory.read(place + MSGHDR_SIZE, 4)
        bytes_moved = integer(length, 0, 4) if length else None
        header = message("msg_hdr", memory, place, style, kind, bytes_moved)
        children = (header, Field("msg_len", "u32", str(bytes_moved or 0)))
        shown.append(Field(f"[{i}]", "mmsghdr", braces("mmsghdr", children), children))
    elements = tuple(shown)
    if not elements and count:
        return Field(name, "mmsghdr[]", scalars.address(at, style))
    return Field(name, "mmsghdr[]", listing(elements, count > present), elements)


def controls(name: str, data: bytes, style: Style) -> Field:
    """Control messages: descriptors, credentials, and others as bytes."""
    shown: list[Field] = []
    at = 0
    while at + CMSG_HEADER <= len(data) and len(shown) < style.elements:
        length, level, type = integer(data, at, 8), integer(data, at + 8, 4), integer(data, at + 12, 4)
        if length < CMSG_HEADER:
            break
        body = data[at + CMSG_HEADER : at + length]
        children = (
            Field("cmsg_len", "size", str(length)),
            Field("cmsg_level", "enum", enum_text("sol", level)),
            Field("cmsg_type", "enum", enum_text("scm", type) if level == SOL_SOCKET else str(type)),
            _control_data(level, type, body, style),
        )
        shown.append(Field(f"[{len(shown)}]", "cmsghdr", braces("cmsghdr", children), children))
        at += (length + 7) & ~7
    elements = tuple(shown)
    return Field(name, "cmsghdr[]", listing(elements, 0 < at < len(data)), elements)


def _control_data(level: int, type: int, body: bytes, style: Style) -> Field:
    if level == SOL_SOCKET and type == 1:
        fds = tuple(
            Field(f"[{i}]", "fd", str(integer(body, 4 * i, 4, True))) for i in range(min(len(body) // 4, 253))
        )
        return Field("cmsg_data", "fd[]", listing(fds), fds)
    if level == SOL_SOCKET and type == 2 and len(body) >= 12:
        return structure("cmsg_data", "ucred", body[:12], style)
    return Field("cmsg_data", "bytes", scalars.quoted(body, style))


def option_name(level: int, option: int) -> str:
    """`SO_REUSEADDR`; the number where the level or the option has no name."""
    return enum_text(OPTIONS_OF_LEVEL.get(level & 0xFFFFFFFF, ""), scalars.signed(option))


def option_value(name: str, level: int, option: int, data: bytes, style: Style) -> Field:
    """A socket option's value: numbers as such, known structures, other bytes as a string."""
    if level == SOL_SOCKET:
        layout = {SO_LINGER: "linger", SO_PEERCRED: "ucred"}.get(option)
        if option in SO_TIMEOUTS and len(data) == 16:
            layout = "timeval"
        if layout and data:
            return structure(name, layout, data, style)
        if option == SO_ERROR and len(data) == 4:
            number = integer(data, 0, 4, True)
            return Field(name, "errno", f"[{scalars_errno(number)}]")
    if len(data) in (1, 2, 4):
        return Field(name, "int", f"[{integer(data, 0, len(data), True)}]")
    return Field(name, "bytes", scalars.quoted(data, style))


def scalars_errno(number: int) -> str:
    """An errno value by name, 0 as such."""
    from interfaces.names.signals import errno_name

    return errno_name(number) if number else "0"


def protocol_name(domain: int, protocol: int) -> str:
    """The third argument of socket."""
    of = {2: "ipproto", 10: "ipproto", 16: "netlink"}.get(domain & 0xFFFFFFFF, "")
    number = scalars.signed(protocol)
    return enum_text(of, number) if of in ENUMS else str(number)
