"""Address space: mappings, protection, locking, NUMA placement, other processes' memory."""

from __future__ import annotations

from interfaces.declare import (
    ALWAYS, MAY, NEWFD, POSITIVE, REDO, REFUSE, WAIT, Call, array, call, enum, fd, flags, hexadecimal, in_array, in_buf,
    iovec_in, iovec_out, long, num, out_array, out_struct, pid, ptr, size, unsigned, value,
)  # fmt: skip
from interfaces.model import Arg, Op, Spec, When

FAMILY = "memory"


def _nodes_in(name: str, bits: str) -> Arg:
    return Arg(name, "bitmask", count=bits, specs=(Spec(Op.BITS, False, bits),))


CALLS: list[Call] = [
    call(9, "mmap", ptr("addr"), size("length"), flags("prot", "prot"), flags("flags", "map"), fd(),
         hexadecimal("offset"), family=FAMILY, treat=REDO, returns="ptr"),
    call(10, "mprotect", ptr("addr"), size("len"), flags("prot", "prot"), family=FAMILY, treat=REDO),
    call(11, "munmap", ptr("addr"), size("length"), family=FAMILY, treat=REDO),
    call(12, "brk", ptr("addr"), family=FAMILY, treat=REDO, returns="ptr"),
    call(25, "mremap", ptr("old_address"), size("old_size"), size("new_size"), flags("flags", "mremap"),
         ptr("new_address"), family=FAMILY, treat=REDO, returns="ptr"),
    call(26, "msync", ptr("addr"), size("length"), flags("flags", "msync"), family=FAMILY, block=WAIT,
         waits_on="disk"),
    call(27, "mincore", ptr("addr"), size("length"),
         Arg("vec", "buffer", count="", specs=(Spec(Op.PAGES, True, "length", When.SUCCESS),)), family=FAMILY),
    call(28, "madvise", ptr("addr"), size("length"), enum("advice", "madvise"), family=FAMILY, treat=REDO),
    call(149, "mlock", ptr("addr"), size("len"), family=FAMILY),
    call(150, "munlock", ptr("addr"), size("len"), family=FAMILY),
    call(151, "mlockall", flags("flags", "mlockall"), family=FAMILY),
    call(152, "munlockall", family=FAMILY),
    call(216, "remap_file_pages", ptr("addr"), size("size"), flags("prot", "prot"), size("pgoff"),
         flags("flags", "map"), family=FAMILY, treat=REDO),
    call(237, "mbind", ptr("addr"), size("len"), enum("mode", "mempolicy"), _nodes_in("nodemask", "maxnode"),
         size("maxnode"), hexadecimal("flags"), family=FAMILY),
    call(238, "set_mempolicy", enum("mode", "mempolicy"), _nodes_in("nodemask", "maxnode"), size("maxnode"),
         family=FAMILY),
    call(239, "get_mempolicy", out_struct("mode", "s32"),
         Arg("nodemask", "bitmask", count="maxnode", specs=(Spec(Op.BITS, True, "maxnode", When.SUCCESS),)),
         size("maxnode"), ptr("addr"), hexadecimal("flags"), family=FAMILY),
    call(256, "migrate_pages", pid(), size("maxnode"), _nodes_in("old_nodes", "maxnode"),
         _nodes_in("new_nodes", "maxnode"), family=FAMILY),
    call(279, "move_pages", pid(), size("count"), in_array("pages", "ptr", count="count"),
         in_array("nodes", "s32", count="count"), out_array("status", "s32", count="count", when=ALWAYS),
         hexadecimal("flags"), family=FAMILY),
    call(310, "process_vm_readv", pid(), iovec_out("local_iov", count="liovcnt"), size("liovcnt"),
         in_array("remote_iov", "iovec", count="riovcnt"), size("riovcnt"), hexadecimal("flags"), family=FAMILY),
    call(311, "process_vm_writev", pid(), iovec_in("local_iov", count="liovcnt"), size("liovcnt"),
         array("remote_iov", "iovec", "riovcnt", Spec(Op.ARG, False, "riovcnt", size=16),
               Spec(Op.IOVEC, True, "riovcnt", POSITIVE)),
         size("riovcnt"), hexadecimal("flags"), family=FAMILY),
    call(323, "userfaultfd", flags("flags", "open"), family=FAMILY, treat=REFUSE, flags=NEWFD, returns="fd"),
    call(324, "membarrier", enum("cmd", "membarrier"), unsigned("flags"), num("cpu_id"), family=FAMILY),
    call(325, "mlock2", ptr("addr"), size("len"), unsigned("flags"), family=FAMILY),
    call(329, "pkey_mprotect", ptr("addr"), size("len"), flags("prot", "prot"), num("pkey"), family=FAMILY, treat=REDO),
    call(330, "pkey_alloc", unsigned("flags"), unsigned("access_rights"), family=FAMILY, treat=REDO),
    call(331, "pkey_free", num("pkey"), family=FAMILY, treat=REDO),
    call(440, "process_madvise", fd("pidfd"), in_array("iovec", "iovec", count="vlen"), size("vlen"),
         enum("advice", "madvise"), unsigned("flags"), family=FAMILY, returns="size"),
    call(448, "process_mrelease", fd("pidfd"), unsigned("flags"), family=FAMILY, block=MAY, waits_on="memory"),
    call(450, "set_mempolicy_home_node", ptr("start"), size("len"), size("home_node"), hexadecimal("flags"),
         family=FAMILY),
    call(453, "map_shadow_stack", ptr("addr"), size("size"), unsigned("flags"), family=FAMILY, treat=REDO,
         returns="ptr"),
    call(462, "mseal", ptr("addr"), size("len"), hexadecimal("flags"), family=FAMILY, treat=REDO),
]  # fmt: skip

