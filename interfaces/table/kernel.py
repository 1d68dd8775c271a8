"""The machine and the kernel: identity, randomness, mounts, keys, modules, security, tracing; and calls long gone."""

from __future__ import annotations

from interfaces.declare import (
    ALWAYS, MAY, NEWFD, REFUSE, RESULT, SUCCESS, WAIT, Call, Pending, Selector, array, call, case, dirfd, enum, fd, flags,
    hexadecimal, in_buf, in_string, in_struct, inout_buf, inout_struct, iovec_in, num, out_array, out_buf, out_string, out_struct, path,
    pid, ptr, size, unsigned, value,
)  # fmt: skip
from interfaces.model import Arg, Op, Spec

FAMILY = "kernel"

_ARGS = (value("arg3", "hex64"), value("arg4", "hex64"), value("arg5", "hex64"))
_SERIAL = num("key")

KEYCTL = [
    case(0, "KEYCTL_GET_KEYRING_ID", _SERIAL, num("create")),
    case(1, "KEYCTL_JOIN_SESSION_KEYRING", in_string("name")),
    case(2, "KEYCTL_UPDATE", _SERIAL, in_buf("payload", size="plen"), size("plen")),
    case(3, "KEYCTL_REVOKE", _SERIAL),
    case(4, "KEYCTL_CHOWN", _SERIAL, value("uid", "uid"), value("gid", "uid")),
    case(5, "KEYCTL_SETPERM", _SERIAL, hexadecimal("perm")),
    case(6, "KEYCTL_DESCRIBE", _SERIAL, out_buf("buf", size="buflen"), size("buflen")),
    case(7, "KEYCTL_CLEAR", _SERIAL),
    case(8, "KEYCTL_LINK", _SERIAL, num("keyring")),
    case(9, "KEYCTL_UNLINK", _SERIAL, num("keyring")),
    case(10, "KEYCTL_SEARCH", _SERIAL, in_string("type"), in_string("description"), num("dest")),
    case(11, "KEYCTL_READ", _SERIAL, out_buf("buf", size="buflen"), size("buflen")),
    case(12, "KEYCTL_INSTANTIATE", _SERIAL, in_buf("payload", size="plen"), size("plen"), num("keyring")),
    case(13, "KEYCTL_NEGATE", _SERIAL, unsigned("timeout"), num("keyring")),
    case(14, "KEYCTL_SET_REQKEY_KEYRING", num("reqkey")),
    case(15, "KEYCTL_SET_TIMEOUT", _SERIAL, unsigned("timeout")),
    case(16, "KEYCTL_ASSUME_AUTHORITY", _SERIAL),
    case(17, "KEYCTL_GET_SECURITY", _SERIAL, out_buf("buf", size="buflen"), size("buflen")),
    case(18, "KEYCTL_SESSION_TO_PARENT"),
    case(19, "KEYCTL_REJECT", _SERIAL, unsigned("timeout"), unsigned("error"), num("keyring")),
    case(20, "KEYCTL_INSTANTIATE_IOV", _SERIAL, iovec_in("iov", count="ioc"), size("ioc"), num("keyring")),
    case(21, "KEYCTL_INVALIDATE", _SERIAL),
    case(22, "KEYCTL_GET_PERSISTENT", value("uid", "uid"), num("keyring")),
    case(23, "KEYCTL_DH_COMPUTE", ptr("params"), out_buf("buf", size="buflen"), size("buflen"), ptr("kdf")),
    case(24, "KEYCTL_PKEY_QUERY", _SERIAL, num("reserved"), in_string("info"), out_struct("result", "pkey_info")),
    case(25, "KEYCTL_PKEY_ENCRYPT", in_struct("params", "x64"), in_string("info"), ptr("in"),
         Arg("out", "buffer", count=RESULT, specs=(Spec(Op.RESULT, True, size=1),))),
    case(26, "KEYCTL_PKEY_DECRYPT", in_struct("params", "x64"), in_string("info"), ptr("in"),
         Arg("out", "buffer", count=RESULT, specs=(Spec(Op.RESULT, True, size=1),))),
    case(27, "KEYCTL_PKEY_SIGN", in_struct("params", "x64"), in_string("info"), ptr("in"),
         Arg("out", "buffer", count=RESULT, specs=(Spec(Op.RESULT, True, size=1),))),
    case(28, "KEYCTL_PKEY_VERIFY", in_struct("params", "x64"), in_string("info"), ptr("in1"), ptr("in2")),
    case(29, "KEYCTL_RESTRICT_KEYRING", _SERIAL, in_string("type"), in_string("restriction")),
    case(30, "KEYCTL_MOVE", _SERIAL, num("from"), num("to"), unsigned("flags")),
    case(31, "KEYCTL_CAPABILITIES", out_buf("buf", size="buflen"), size("buflen")),
    case(32, "KEYCTL_WATCH_KEY", _SERIAL, fd("queue"), num("watch_id")),
]  # fmt: skip

_ID = num("id")


def _quota(*before: Arg) -> list[Pending]:
    """The commands of quotactl; `before` is what comes before the id."""

    def row(key: int, name: str, *after: Arg) -> Pending:
        return case(key, name, *before, _ID, *after)

    return [
        row(0x800001, "Q_SYNC"),
        row(0x800002, "Q_QUOTAON", in_string("addr")),
        row(0x800003, "Q_QUOTAOFF"),
        row(0x800004, "Q_GETFMT", out_struct("addr", "u32")),
        row(0x800005, "Q_GETINFO", out_struct("addr", "dqinfo")),
        row(0x800006, "Q_SETINFO", in_struct("addr", "dqinfo")),
        row(0x800007, "Q_GETQUOTA", out_struct("addr", "dqblk")),
        row(0x800008, "Q_SETQUOTA", in_struct("addr", "dqblk")),
        row(0x800009, "Q_GETNEXTQUOTA", out_struct("addr", "nextdqblk")),
        row(0x5801, "Q_XQUOTAON", in_struct("addr", "u32")),
        row(0x5802, "Q_XQUOTAOFF", in_struct("addr", "u32")),
        row(0x5803, "Q_XGETQUOTA", out_struct("addr", "fs_disk_quota")),
        row(0x5804, "Q_XSETQLIM", in_struct("addr", "fs_disk_quota")),
        row(0x5805, "Q_XGETQSTAT", out_struct("addr", "fs_quota_stat")),
        row(0x5806, "Q_XQUOTARM", in_struct("addr", "u32")),
        row(0x5807, "Q_XQUOTASYNC"),
        row(0x5808, "Q_XGETQSTATV", inout_struct("addr", "fs_quota_statv")),
        row(0x5809, "Q_XGETNEXTQUOTA", out_struct("addr", "fs_disk_quota")),
    ]


_LOG = size("len")

SYSLOG = [
    case(0, "SYSLOG_ACTION_CLOSE"),
    case(1, "SYSLOG_ACTION_OPEN"),
    case(2, "SYSLOG_ACTION_READ", out_buf("bufp", size="len"), _LOG, block=WAIT),
    case(3, "SYSLOG_ACTION_READ_ALL", out_buf("bufp", size="len"), _LOG),
    case(4, "SYSLOG_ACTION_READ_CLEAR", out_buf("bufp", size="len"), _LOG),
    case(5, "SYSLOG_ACTION_CLEAR"),
    case(6, "SYSLOG_ACTION_CONSOLE_OFF"),
    case(7, "SYSLOG_ACTION_CONSOLE_ON"),
    case(8, "SYSLOG_ACTION_CONSOLE_LEVEL", ptr("bufp"), num("level")),
    case(9, "SYSLOG_ACTION_SIZE_UNREAD"),
    case(10, "SYSLOG_ACTION_SIZE_BUFFER"),
]

_ATTR = (inout_buf("attr", size="size"), unsigned("size"))

BPF = [
    case(0, "BPF_MAP_CREATE", *_ATTR),
    case(2, "BPF_MAP_UPDATE_ELEM", *_ATTR),
    case(3, "BPF_MAP_DELETE_ELEM", *_ATTR),
    case(6, "BPF_OBJ_PIN", *_ATTR),
    case(7, "BPF_OBJ_GET", *_ATTR),
    case(8, "BPF_PROG_ATTACH", *_ATTR),
    case(9, "BPF_PROG_DETACH", *_ATTR),
    case(11, "BPF_PROG_GET_NEXT_ID", *_ATTR),
    case(12, "BPF_MAP_GET_NEXT_ID", *_ATTR),
    case(13, "BPF_PROG_GET_FD_BY_ID", *_ATTR),
    case(14, "BPF_MAP_GET_FD_BY_ID", *_ATTR),
    case(17, "BPF_RAW_TRACEPOINT_OPEN", *_ATTR),
    case(19, "BPF_BTF_GET_FD_BY_ID", *_ATTR),
    case(22, "BPF_MAP_FREEZE", *_ATTR),
    case(23, "BPF_BTF_GET_NEXT_ID", *_ATTR),
    case(28, "BPF_LINK_CREATE", *_ATTR),
    case(29, "BPF_LINK_UPDATE", *_ATTR),
    case(30, "BPF_LINK_GET_FD_BY_ID", *_ATTR),
    case(31, "BPF_LINK_GET_NEXT_ID", *_ATTR),
    case(34, "BPF_LINK_DETACH", *_ATTR),
    case(35, "BPF_PROG_BIND_MAP", *_ATTR),
    case(36, "BPF_TOKEN_CREATE", *_ATTR),
]

SYSFS = [
    case(1, "fs_index", in_string("fsname")),
    case(2, "fs_name", unsigned("fs_index"), out_string("buf")),
    case(3, "fs_count"),
]


def _lsm_attr(out: bool) -> Arg:
    spec = Spec(Op.LENPTR, True, "size", SUCCESS, size=1) if out else Spec(Op.ARG, False, "size", size=1)
    return Arg("ctx", "buffer", count="size", specs=(spec,))


def _length() -> Arg:
    return Arg("size", "struct", "u32", specs=(Spec(Op.FIXED, False, size=4), Spec(Op.FIXED, True, size=4)))


CALLS: list[Call] = [
    call(63, "uname", out_struct("buf", "utsname"), family=FAMILY),
    call(99, "sysinfo", out_struct("info", "sysinfo"), family=FAMILY),
    call(103, "syslog", enum("type", "syslog"), ptr("bufp"), num("len"), family=FAMILY, waits_on="peer",
         selector=Selector(0), case_from=1, cases=SYSLOG),
    call(134, "uselib", path("library"), family=FAMILY, treat=REFUSE),
    call(139, "sysfs", num("option"), value("arg1", "hex"), value("arg2", "hex"), family=FAMILY, selector=Selector(0),
         case_from=1, cases=SYSFS),
    call(153, "vhangup", family=FAMILY),
    call(155, "pivot_root", path("new_root"), path("put_old"), family=FAMILY),
    call(156, "_sysctl", ptr("args"), family=FAMILY, treat=REFUSE),
    call(163, "acct", path("filename"), family=FAMILY),
    call(165, "mount", in_string("source"), path("target"), in_string("filesystemtype"), flags("mountflags", "mount"),
         ptr("data"), family=FAMILY, block=WAIT, waits_on="disk"),
    call(166, "umount2", path("target"), flags("flags", "umount"), family=FAMILY, block=WAIT, waits_on="disk"),
    call(167, "swapon", path("path"), hexadecimal("swapflags"), family=FAMILY),
    call(168, "swapoff", path("path"), family=FAMILY, block=WAIT, waits_on="disk"),
    call(169, "reboot", hexadecimal("magic"), hexadecimal("magic2"), hexadecimal("cmd"), in_string("arg"),
         family=FAMILY),
    call(170, "sethostname", in_buf("name", size="len"), size("len"), family=FAMILY),
    call(171, "setdomainname", in_buf("name", size="len"), size("len"), family=FAMILY),
    call(174, "create_module", in_string("name"), size("size"), family=FAMILY, treat=REFUSE),
    call(175, "init_module", in_buf("module_image", size="len"), size("len"), in_string("param_values"), family=FAMILY,
         block=MAY, waits_on="disk"),
    call(176, "delete_module", in_string("name"), hexadecimal("flags"), family=FAMILY, block=MAY, waits_on="lock"),
    call(177, "get_kernel_syms", ptr("table"), family=FAMILY, treat=REFUSE),
    call(178, "query_module", in_string("name"), num("which"), ptr("buf"), size("bufsize"), ptr("ret"), family=FAMILY,
         treat=REFUSE),
    call(179, "quotactl", hexadecimal("cmd"), in_string("special"), num("id"), ptr("addr"), family=FAMILY, block=MAY,
         waits_on="disk", selector=Selector(0, mask=0xFFFFFF, shift=8), case_from=1, cases=_quota(in_string("special"))),
    call(180, "nfsservctl", num("cmd"), ptr("argp"), ptr("resp"), family=FAMILY, treat=REFUSE),
    call(181, "getpmsg", family=FAMILY, treat=REFUSE),
    call(182, "putpmsg", family=FAMILY, treat=REFUSE),
    call(183, "afs_syscall", family=FAMILY, treat=REFUSE),
    call(184, "tuxcall", family=FAMILY, treat=REFUSE),
    call(185, "security", family=FAMILY, treat=REFUSE),
    call(206, "io_setup", unsigned("nr_events"), ptr("ctx_idp"), family=FAMILY, treat=REFUSE),
    call(207, "io_destroy", value("ctx_id", "hex64"), family=FAMILY, treat=REFUSE),
    call(208, "io_getevents", value("ctx_id", "hex64"), num("min_nr"), num("nr"), ptr("events"), ptr("timeout"),
         family=FAMILY, treat=REFUSE),
    call(209, "io_submit", value("ctx_id", "hex64"), num("nr"), ptr("iocbpp"), family=FAMILY, treat=REFUSE),
    call(210, "io_cancel", value("ctx_id", "hex64"), ptr("iocb"), ptr("result"), family=FAMILY, treat=REFUSE),
    call(214, "epoll_ctl_old", family=FAMILY, treat=REFUSE),
    call(215, "epoll_wait_old", family=FAMILY, treat=REFUSE),
    call(236, "vserver", family=FAMILY, treat=REFUSE),
    call(246, "kexec_load", ptr("entry"), size("nr_segments"), ptr("segments"), hexadecimal("flags"), family=FAMILY),
    call(248, "add_key", in_string("type"), in_string("description"), in_buf("payload", size="plen"), size("plen"),
         num("keyring"), family=FAMILY),
    call(249, "request_key", in_string("type"), in_string("description"), in_string("callout_info"),
         num("dest_keyring"), family=FAMILY, block=MAY, waits_on="child"),
    call(250, "keyctl", enum("operation", "keyctl"), value("arg2", "hex64"), *_ARGS, family=FAMILY,
         selector=Selector(0), case_from=1, cases=KEYCTL),
    call(298, "perf_event_open", in_struct("attr", "perf_event_attr"), pid(), num("cpu"), fd("group_fd"),
         hexadecimal("flags"), family=FAMILY, flags=NEWFD, returns="fd"),
    call(313, "finit_module", fd(), in_string("param_values"), hexadecimal("flags"), family=FAMILY, block=MAY,
         waits_on="disk"),
    call(318, "getrandom", out_buf("buf", size="buflen"), size("buflen"), flags("flags", "getrandom"), family=FAMILY),
    call(320, "kexec_file_load", fd("kernel_fd"), fd("initrd_fd"), size("cmdline_len"),
         in_buf("cmdline", size="cmdline_len"), hexadecimal("flags"), family=FAMILY),
    call(321, "bpf", enum("cmd", "bpf"), *_ATTR, family=FAMILY, treat=REFUSE, flags=NEWFD, selector=Selector(0),
         case_from=1, cases=BPF),
    call(333, "io_pgetevents", value("ctx_id", "hex64"), num("min_nr"), num("nr"), ptr("events"), ptr("timeout"),
         ptr("usig"), family=FAMILY, treat=REFUSE),
    call(335, "uretprobe", family=FAMILY, treat=REFUSE),
    call(336, "uprobe", family=FAMILY, treat=REFUSE),
    call(425, "io_uring_setup", unsigned("entries"), ptr("p"), family=FAMILY, treat=REFUSE),
    call(426, "io_uring_enter", fd(), unsigned("to_submit"), unsigned("min_complete"), hexadecimal("flags"),
         ptr("argp"), size("argsz"), family=FAMILY, treat=REFUSE),
    call(427, "io_uring_register", fd(), unsigned("opcode"), ptr("arg"), unsigned("nr_args"), family=FAMILY,
         treat=REFUSE),
    call(428, "open_tree", dirfd(), path(), flags("flags", "open_tree"), family=FAMILY, flags=NEWFD, returns="fd"),
    call(429, "move_mount", dirfd("from_dirfd"), path("from_pathname"), dirfd("to_dirfd"), path("to_pathname"),
         hexadecimal("flags"), family=FAMILY),
    call(430, "fsopen", in_string("fsname"), hexadecimal("flags"), family=FAMILY, flags=NEWFD, returns="fd"),
    call(431, "fsconfig", fd(), enum("cmd", "fsconfig"), in_string("key"), in_string("value"), num("aux"),
         family=FAMILY, block=MAY, waits_on="disk"),
    call(432, "fsmount", fd("fs_fd"), hexadecimal("flags"), hexadecimal("attr_flags"), family=FAMILY, flags=NEWFD,
         returns="fd"),
    call(433, "fspick", dirfd(), path(), hexadecimal("flags"), family=FAMILY, flags=NEWFD, returns="fd"),
    call(442, "mount_setattr", dirfd(), path(), flags("flags", "at"), in_struct("uattr", "mount_attr"), size("usize"),
         family=FAMILY),
    call(443, "quotactl_fd", fd(), hexadecimal("cmd"), num("id"), ptr("addr"), family=FAMILY, block=MAY,
         waits_on="disk", selector=Selector(1, mask=0xFFFFFF, shift=8), case_from=2,
         cases=_quota()),
    call(444, "landlock_create_ruleset", in_buf("attr", size="size"), size("size"), hexadecimal("flags"),
         family=FAMILY, flags=NEWFD, returns="fd"),
    call(445, "landlock_add_rule", fd("ruleset_fd"), num("rule_type"), in_struct("rule_attr", "u64"),
         hexadecimal("flags"), family=FAMILY),
    call(446, "landlock_restrict_self", fd("ruleset_fd"), hexadecimal("flags"), family=FAMILY),
    call(457, "statmount", in_struct("req", "mnt_id_req"), out_buf("buf", size="bufsize", written="", when=SUCCESS),
         size("bufsize"), hexadecimal("flags"), family=FAMILY),
    call(458, "listmount", in_struct("req", "mnt_id_req"),
         out_array("mnt_ids", "u64", count="nr_mnt_ids", written=RESULT), size("nr_mnt_ids"), hexadecimal("flags"),
         family=FAMILY),
    call(459, "lsm_get_self_attr", unsigned("attr"), _lsm_attr(True), _length(), hexadecimal("flags"), family=FAMILY),
    call(460, "lsm_set_self_attr", unsigned("attr"), _lsm_attr(False), unsigned("size"), hexadecimal("flags"),
         family=FAMILY),
    call(461, "lsm_list_modules",
         Arg("ids", "buffer", count="size", specs=(Spec(Op.LENPTR, True, "size", SUCCESS, size=1),)), _length(),
         hexadecimal("flags"), family=FAMILY),
    call(467, "open_tree_attr", dirfd(), path(), flags("flags", "open_tree"), in_struct("uattr", "mount_attr"),
         size("usize"), family=FAMILY, flags=NEWFD, returns="fd"),
]  # fmt: skip

