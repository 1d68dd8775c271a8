"""Files by name: opening, looking up, creating, removing, attributes, extended attributes."""

from __future__ import annotations

from interfaces.declare import (
    ALWAYS, FEED, MAY, NEWFD, RESTART, SUCCESS, Call, array, call, counted, dirfd, enum, fd, flags, hexadecimal, in_buf,
    in_string, in_struct, long, mode, num, out_buf, out_struct, path, size, unsigned, value, via,
)  # fmt: skip
from interfaces.model import Arg, Op, Spec

FAMILY = "paths"


def _uid(name: str) -> Arg:
    return value(name, "uid")


def _handle(*, out: bool) -> Arg:
    """struct file_handle: 8 bytes, then as many as its first word says."""
    return counted("handle", "file_handle", header=8, each=1, at=0, width=4, out=out)


def _times(name: str, layout: str) -> Arg:
    return array(name, layout, "2", Spec(Op.FIXED, False, size=32))


CALLS: list[Call] = [
    call(2, "open", path(), flags("flags", "open"), mode(), family=FAMILY, flags=NEWFD | RESTART, returns="fd"),
    call(4, "stat", path(), out_struct("statbuf", "stat"), family=FAMILY),
    call(6, "lstat", path(), out_struct("statbuf", "stat"), family=FAMILY),
    call(21, "access", path(), flags("mode", "access"), family=FAMILY),
    call(76, "truncate", path(), long("length"), family=FAMILY),
    call(79, "getcwd", out_buf("buf", size="size"), size("size"), family=FAMILY, returns="size"),
    call(80, "chdir", path(), family=FAMILY),
    call(82, "rename", path("oldpath"), path("newpath"), family=FAMILY),
    call(83, "mkdir", path(), mode(), family=FAMILY),
    call(84, "rmdir", path(), family=FAMILY),
    call(85, "creat", path(), mode(), family=FAMILY, flags=NEWFD | RESTART, returns="fd"),
    call(86, "link", path("oldpath"), path("newpath"), family=FAMILY),
    call(87, "unlink", path(), family=FAMILY),
    call(88, "symlink", path("target"), path("linkpath"), family=FAMILY),
    call(89, "readlink", path(), out_buf("buf", size="bufsiz"), num("bufsiz"), family=FAMILY),
    call(90, "chmod", path(), mode(), family=FAMILY),
    call(91, "fchmod", fd(), mode(), family=FAMILY, block=MAY, waits_on="fd"),
    call(92, "chown", path(), _uid("owner"), _uid("group"), family=FAMILY),
    call(93, "fchown", fd(), _uid("owner"), _uid("group"), family=FAMILY, block=MAY, waits_on="fd"),
    call(94, "lchown", path(), _uid("owner"), _uid("group"), family=FAMILY),
    call(95, "umask", mode("mask"), family=FAMILY, returns="mode"),
    call(132, "utime", path("filename"), in_struct("times", "utimbuf"), family=FAMILY),
    call(133, "mknod", path(), mode(), value("dev", "dev"), family=FAMILY),
    call(136, "ustat", value("dev", "dev"), out_struct("ubuf", "ustat"), family=FAMILY, block=MAY, waits_on="path"),
    call(137, "statfs", path(), out_struct("buf", "statfs"), family=FAMILY),
    call(138, "fstatfs", fd(), out_struct("buf", "statfs"), family=FAMILY, block=MAY, waits_on="fd"),
    call(161, "chroot", path(), family=FAMILY),
    call(188, "setxattr", path(), in_string("name"), in_buf("value", size="size"), size("size"),
         flags("flags", "xattr"), family=FAMILY),
    call(189, "lsetxattr", path(), in_string("name"), in_buf("value", size="size"), size("size"),
         flags("flags", "xattr"), family=FAMILY),
    call(190, "fsetxattr", fd(), in_string("name"), in_buf("value", size="size"), size("size"),
         flags("flags", "xattr"), family=FAMILY, block=MAY, waits_on="fd"),
    call(191, "getxattr", path(), in_string("name"), out_buf("value", size="size"), size("size"), family=FAMILY),
    call(192, "lgetxattr", path(), in_string("name"), out_buf("value", size="size"), size("size"), family=FAMILY),
    call(193, "fgetxattr", fd(), in_string("name"), out_buf("value", size="size"), size("size"), family=FAMILY,
         block=MAY, waits_on="fd"),
    call(194, "listxattr", path(), out_buf("list", size="size"), size("size"), family=FAMILY),
    call(195, "llistxattr", path(), out_buf("list", size="size"), size("size"), family=FAMILY),
    call(196, "flistxattr", fd(), out_buf("list", size="size"), size("size"), family=FAMILY, block=MAY, waits_on="fd"),
    call(197, "removexattr", path(), in_string("name"), family=FAMILY),
    call(198, "lremovexattr", path(), in_string("name"), family=FAMILY),
    call(199, "fremovexattr", fd(), in_string("name"), family=FAMILY, block=MAY, waits_on="fd"),
    call(235, "utimes", path("filename"), _times("times", "timeval"), family=FAMILY),
    call(257, "openat", dirfd(), path(), flags("flags", "open"), mode(), family=FAMILY, flags=NEWFD | RESTART,
         returns="fd"),
    call(258, "mkdirat", dirfd(), path(), mode(), family=FAMILY),
    call(259, "mknodat", dirfd(), path(), mode(), value("dev", "dev"), family=FAMILY),
    call(260, "fchownat", dirfd(), path(), _uid("owner"), _uid("group"), flags("flags", "at"), family=FAMILY),
    call(261, "futimesat", dirfd(), path(), _times("times", "timeval"), family=FAMILY),
    call(262, "newfstatat", dirfd(), path(), out_struct("statbuf", "stat"), flags("flags", "at"), family=FAMILY),
    call(263, "unlinkat", dirfd(), path(), flags("flags", "unlinkat"), family=FAMILY),
    call(264, "renameat", dirfd("olddirfd"), path("oldpath"), dirfd("newdirfd"), path("newpath"), family=FAMILY),
    call(265, "linkat", dirfd("olddirfd"), path("oldpath"), dirfd("newdirfd"), path("newpath"), flags("flags", "at"),
         family=FAMILY),
    call(266, "symlinkat", path("target"), dirfd("newdirfd"), path("linkpath"), family=FAMILY),
    call(267, "readlinkat", dirfd(), path(), out_buf("buf", size="bufsiz"), num("bufsiz"), family=FAMILY),
    call(268, "fchmodat", dirfd(), path(), mode(), family=FAMILY),
    call(269, "faccessat", dirfd(), path(), flags("mode", "access"), family=FAMILY),
    call(280, "utimensat", dirfd(), path(), _times("times", "timespec"), flags("flags", "at"), family=FAMILY),
    call(303, "name_to_handle_at", dirfd(), path(), _handle(out=True), out_struct("mount_id", "u64", ALWAYS),
         flags("flags", "at"), family=FAMILY),
    call(304, "open_by_handle_at", fd("mount_fd"), _handle(out=False), flags("flags", "open"), family=FAMILY, block=MAY,
         waits_on="path", flags=NEWFD | RESTART, returns="fd"),
    call(316, "renameat2", dirfd("olddirfd"), path("oldpath"), dirfd("newdirfd"), path("newpath"),
         flags("flags", "rename"), family=FAMILY),
    call(332, "statx", dirfd(), path(), flags("flags", "statxat"), flags("mask", "statx"),
         out_struct("statxbuf", "statx"), family=FAMILY),
    call(437, "openat2", dirfd(), path(), in_struct("how", "open_how"), size("size"), family=FAMILY,
         flags=NEWFD | RESTART, returns="fd"),
    call(439, "faccessat2", dirfd(), path(), flags("mode", "access"), flags("flags", "faccessat"), family=FAMILY),
    call(452, "fchmodat2", dirfd(), path(), mode(), flags("flags", "at"), family=FAMILY),
    call(463, "setxattrat", dirfd(), path(), flags("at_flags", "at"), in_string("name"),
         via(in_struct("uargs", "xattr_args"), pointer=0, at=8, width=4, out=False), size("usize"), family=FAMILY),
    call(464, "getxattrat", dirfd(), path(), flags("at_flags", "at"), in_string("name"),
         via(in_struct("uargs", "xattr_args"), pointer=0, at=8, width=4, out=True, when=SUCCESS), size("usize"),
         family=FAMILY),
    call(465, "listxattrat", dirfd(), path(), flags("at_flags", "at"), out_buf("list", size="size"), size("size"),
         family=FAMILY),
    call(466, "removexattrat", dirfd(), path(), flags("at_flags", "at"), in_string("name"), family=FAMILY),
    call(468, "file_getattr", dirfd(), path(), out_buf("ufattr", size="usize", written="", when=SUCCESS), size("usize"),
         flags("at_flags", "at"), family=FAMILY),
    call(469, "file_setattr", dirfd(), path(), in_buf("ufattr", size="usize"), size("usize"), flags("at_flags", "at"),
         family=FAMILY),
    call(253, "inotify_init", family=FAMILY, flags=NEWFD, returns="fd"),
    call(254, "inotify_add_watch", fd(), path(), flags("mask", "inotify"), family=FAMILY),
    call(255, "inotify_rm_watch", fd(), num("wd"), family=FAMILY),
    call(294, "inotify_init1", flags("flags", "open"), family=FAMILY, flags=NEWFD, returns="fd"),
    call(300, "fanotify_init", flags("flags", "fanotify_init"), flags("event_f_flags", "open"), family=FAMILY,
         flags=NEWFD, returns="fd"),
    call(301, "fanotify_mark", fd("fanotify_fd"), flags("flags", "fanotify_mark"), hexadecimal("mask"), dirfd(), path(),
         family=FAMILY),
    call(319, "memfd_create", in_string("name"), flags("flags", "memfd"), family=FAMILY, flags=NEWFD, returns="fd"),
    call(447, "memfd_secret", flags("flags", "open"), family=FAMILY, flags=NEWFD, returns="fd"),
    call(212, "lookup_dcookie", value("cookie", "hex64"), out_buf("buffer", size="len"), size("len"), family=FAMILY),
]  # fmt: skip

