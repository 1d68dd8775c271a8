"""ioctl, by request.

Only requests whose number does not tell the truth are needed here: those without an _IOC encoding, those
with a wrong one, those that point to more memory. For the others the encoding in the number says what is
read and written, and they may wait. Some well-encoded ones are listed for their names or because they do not.
"""

from __future__ import annotations

from interfaces.declare import (
    MAY,
    NEVER,
    REFUSE,
    RESTART,
    WAIT,
    Call,
    Pending,
    Selector,
    Special,
    call,
    case,
    counted,
    fd,
    hexadecimal,
    in_string,
    in_struct,
    inout_struct,
    num,
    out_struct,
    ptr,
    special,
    value,
    via,
)  # fmt: skip
from interfaces.model import Arg

FAMILY = "ioctl"


def get(request: int, name: str, layout: str) -> Pending:
    """The kernel writes a structure."""
    return case(request, name, out_struct("argp", layout), block=NEVER)


def put(request: int, name: str, layout: str) -> Pending:
    """The kernel reads a structure."""
    return case(request, name, in_struct("argp", layout), block=NEVER)


def both(request: int, name: str, layout: str) -> Pending:
    """The kernel reads and writes a structure."""
    return case(request, name, inout_struct("argp", layout), block=NEVER)


def plain(request: int, name: str, arg: Arg | None = None) -> Pending:
    """The argument is a value, or not used."""
    return case(request, name, arg or num("arg"), block=NEVER)


def deep(request: int, name: str, layout: str, *parts: tuple[int, int, int, int]) -> Pending:
    """A structure, read and written, with pointers: (offset, its count's offset and width, bytes each)."""
    arg = inout_struct("argp", layout)
    for pointer, at, width, each in parts:
        arg = via(arg, pointer=pointer, at=at, width=width, each=each)
    return case(request, name, arg, block=NEVER)


TERMINAL = [
    get(0x5401, "TCGETS", "termios"),
    put(0x5402, "TCSETS", "termios"),
    case(0x5403, "TCSETSW", in_struct("argp", "termios"), block=MAY),
    case(0x5404, "TCSETSF", in_struct("argp", "termios"), block=MAY),
    get(0x5405, "TCGETA", "termio"),
    put(0x5406, "TCSETA", "termio"),
    case(0x5407, "TCSETAW", in_struct("argp", "termio"), block=MAY),
    case(0x5408, "TCSETAF", in_struct("argp", "termio"), block=MAY),
    case(0x5409, "TCSBRK", num("arg"), block=WAIT),
    plain(0x540A, "TCXONC"),
    plain(0x540B, "TCFLSH"),
    plain(0x540C, "TIOCEXCL"),
    plain(0x540D, "TIOCNXCL"),
    plain(0x540E, "TIOCSCTTY"),
    get(0x540F, "TIOCGPGRP", "pid"),
    put(0x5410, "TIOCSPGRP", "pid"),
    get(0x5411, "TIOCOUTQ", "s32"),
    put(0x5412, "TIOCSTI", "char"),
    get(0x5413, "TIOCGWINSZ", "winsize"),
    put(0x5414, "TIOCSWINSZ", "winsize"),
    get(0x5415, "TIOCMGET", "x32"),
    put(0x5416, "TIOCMBIS", "x32"),
    put(0x5417, "TIOCMBIC", "x32"),
    put(0x5418, "TIOCMSET", "x32"),
    get(0x5419, "TIOCGSOFTCAR", "s32"),
    put(0x541A, "TIOCSSOFTCAR", "s32"),
    get(0x541B, "FIONREAD", "s32"),
    both(0x541C, "TIOCLINUX", "u8"),
    plain(0x541D, "TIOCCONS"),
    get(0x541E, "TIOCGSERIAL", "serial_struct"),
    put(0x541F, "TIOCSSERIAL", "serial_struct"),
    put(0x5420, "TIOCPKT", "s32"),
    put(0x5421, "FIONBIO", "s32"),
    plain(0x5422, "TIOCNOTTY"),
    put(0x5423, "TIOCSETD", "s32"),
    get(0x5424, "TIOCGETD", "s32"),
    case(0x5425, "TCSBRKP", num("arg"), block=WAIT),
    plain(0x5427, "TIOCSBRK"),
    plain(0x5428, "TIOCCBRK"),
    get(0x5429, "TIOCGSID", "pid"),
    get(0x802C542A, "TCGETS2", "termios2"),
    put(0x402C542B, "TCSETS2", "termios2"),
    case(0x402C542C, "TCSETSW2", in_struct("argp", "termios2"), block=MAY),
    case(0x402C542D, "TCSETSF2", in_struct("argp", "termios2"), block=MAY),
    get(0x542E, "TIOCGRS485", "serial_rs485"),
    both(0x542F, "TIOCSRS485", "serial_rs485"),
    get(0x80045430, "TIOCGPTN", "u32"),
    put(0x40045431, "TIOCSPTLCK", "s32"),
    get(0x80045432, "TIOCGDEV", "x32"),
    plain(0x40045436, "TIOCSIG"),
    plain(0x5437, "TIOCVHANGUP"),
    get(0x80045438, "TIOCGPKT", "s32"),
    get(0x80045439, "TIOCGPTLCK", "s32"),
    get(0x80045440, "TIOCGEXCL", "s32"),
    plain(0x5441, "TIOCGPTPEER", hexadecimal("flags")),
    plain(0x5450, "FIONCLEX"),
    plain(0x5451, "FIOCLEX"),
    put(0x5452, "FIOASYNC", "s32"),
    get(0x5459, "TIOCSERGETLSR", "s32"),
    case(0x545C, "TIOCMIWAIT", hexadecimal("arg"), block=WAIT),
    get(0x5460, "FIOQSIZE", "s64"),
    plain(0x4B2F, "KIOCSOUND"),
    plain(0x4B30, "KDMKTONE"),
    get(0x4B31, "KDGETLED", "u8"),
    plain(0x4B32, "KDSETLED"),
    get(0x4B33, "KDGKBTYPE", "u8"),
    plain(0x4B3A, "KDSETMODE"),
    get(0x4B3B, "KDGETMODE", "s32"),
    get(0x4B44, "KDGKBMODE", "s32"),
    plain(0x4B45, "KDSKBMODE"),
    both(0x4B46, "KDGKBENT", "kbentry"),
    put(0x4B47, "KDSKBENT", "kbentry"),
    both(0x4B48, "KDGKBSENT", "kbsentry"),
    put(0x4B49, "KDSKBSENT", "kbsentry"),
    get(0x4B4A, "KDGKBDIACR", "kbdiacrs"),
    put(0x4B4B, "KDSKBDIACR", "kbdiacrs"),
    both(0x4B4C, "KDGETKEYCODE", "kbkeycode"),
    put(0x4B4D, "KDSETKEYCODE", "kbkeycode"),
    plain(0x4B4E, "KDSIGACCEPT"),
    plain(0x4B51, "KDSKBMUTE"),
    both(0x4B52, "KDKBDREP", "kbd_repeat"),
    get(0x4B62, "KDGKBMETA", "s32"),
    plain(0x4B63, "KDSKBMETA"),
    get(0x4B64, "KDGKBLED", "u8"),
    plain(0x4B65, "KDSKBLED"),
    deep(0x4B66, "GIO_UNIMAP", "unimapdesc", (8, 0, 2, 4)),
    deep(0x4B67, "PIO_UNIMAP", "unimapdesc", (8, 0, 2, 4)),
    put(0x4B68, "PIO_UNIMAPCLR", "unimapinit"),
    get(0x4B69, "GIO_UNISCRNMAP", "uniscrnmap"),
    put(0x4B6A, "PIO_UNISCRNMAP", "uniscrnmap"),
    get(0x4BFA, "KDGKBDIACRUC", "kbdiacrsuc"),
    put(0x4BFB, "KDSKBDIACRUC", "kbdiacrsuc"),
    get(0x4B70, "GIO_CMAP", "console_cmap"),
    put(0x4B71, "PIO_CMAP", "console_cmap"),
    get(0x5600, "VT_OPENQRY", "s32"),
    get(0x5601, "VT_GETMODE", "vt_mode"),
    put(0x5602, "VT_SETMODE", "vt_mode"),
    get(0x5603, "VT_GETSTATE", "vt_stat"),
    plain(0x5605, "VT_RELDISP"),
    plain(0x5606, "VT_ACTIVATE"),
    case(0x5607, "VT_WAITACTIVE", num("arg"), block=WAIT),
    plain(0x5608, "VT_DISALLOCATE"),
    put(0x5609, "VT_RESIZE", "vt_sizes"),
    plain(0x560B, "VT_LOCKSWITCH"),
    plain(0x560C, "VT_UNLOCKSWITCH"),
    get(0x560D, "VT_GETHIFONTMASK", "u16"),
]

_INTERFACE = {
    0x8910: "SIOCGIFNAME", 0x8911: "SIOCSIFLINK", 0x8913: "SIOCGIFFLAGS", 0x8914: "SIOCSIFFLAGS",
    0x8915: "SIOCGIFADDR",
    0x8916: "SIOCSIFADDR", 0x8917: "SIOCGIFDSTADDR", 0x8918: "SIOCSIFDSTADDR", 0x8919: "SIOCGIFBRDADDR",
    0x891A: "SIOCSIFBRDADDR", 0x891B: "SIOCGIFNETMASK", 0x891C: "SIOCSIFNETMASK", 0x891D: "SIOCGIFMETRIC",
    0x891E: "SIOCSIFMETRIC", 0x891F: "SIOCGIFMEM", 0x8920: "SIOCSIFMEM", 0x8921: "SIOCGIFMTU",
    0x8922: "SIOCSIFMTU",
    0x8923: "SIOCSIFNAME", 0x8924: "SIOCSIFHWADDR", 0x8925: "SIOCGIFENCAP", 0x8926: "SIOCSIFENCAP",
    0x8927: "SIOCGIFHWADDR", 0x8929: "SIOCGIFSLAVE", 0x8930: "SIOCSIFSLAVE", 0x8931: "SIOCADDMULTI",
    0x8932: "SIOCDELMULTI", 0x8933: "SIOCGIFINDEX", 0x8934: "SIOCSIFPFLAGS", 0x8935: "SIOCGIFPFLAGS",
    0x8936: "SIOCDIFADDR", 0x8937: "SIOCSIFHWBROADCAST", 0x8942: "SIOCGIFTXQLEN", 0x8943: "SIOCSIFTXQLEN",
    0x8947: "SIOCGMIIPHY", 0x8948: "SIOCGMIIREG", 0x8949: "SIOCSMIIREG", 0x8970: "SIOCGIFMAP",
    0x8971: "SIOCSIFMAP",
}  # fmt: skip

SOCKET = [both(request, name, "ifreq") for request, name in _INTERFACE.items()] + [
    put(0x8901, "FIOSETOWN", "pid"),
    put(0x8902, "SIOCSPGRP", "pid"),
    get(0x8903, "FIOGETOWN", "pid"),
    get(0x8904, "SIOCGPGRP", "pid"),
    get(0x8905, "SIOCATMARK", "s32"),
    get(0x8906, "SIOCGSTAMP", "timeval"),
    get(0x8907, "SIOCGSTAMPNS", "timespec"),
    put(0x890B, "SIOCADDRT", "rtentry"),
    put(0x890C, "SIOCDELRT", "rtentry"),
    deep(0x8912, "SIOCGIFCONF", "ifconf", (8, 0, 4, 1)),
    case(0x8946, "SIOCETHTOOL", special("argp", Special.ETHTOOL, out=True), block=NEVER),
    get(0x894B, "SIOCOUTQNSD", "s32"),
    plain(0x894C, "SIOCGSKNS"),
    put(0x8953, "SIOCDARP", "arpreq"),
    both(0x8954, "SIOCGARP", "arpreq"),
    put(0x8955, "SIOCSARP", "arpreq"),
    both(0x8B01, "SIOCGIWNAME", "iwreq"),
    *(deep(request, name, "iwreq", (16, 24, 2, 1))
      for request, name in ((0x8B0B, "SIOCGIWRANGE"), (0x8B0F, "SIOCGIWSTATS"), (0x8B19, "SIOCGIWSCAN"),
                            (0x8B1B, "SIOCGIWESSID"), (0x8B1D, "SIOCGIWNICKN"), (0x8B2B, "SIOCGIWENCODE"))),
    both(0x8B05, "SIOCGIWFREQ", "iwreq"),
    both(0x8B07, "SIOCGIWMODE", "iwreq"),
    both(0x8B15, "SIOCGIWAP", "iwreq"),
    both(0x8B21, "SIOCGIWRATE", "iwreq"),
    get(0x07B9, "IOCTL_VM_SOCKETS_GET_LOCAL_CID", "u32"),
    both(0x400454CA, "TUNSETIFF", "ifreq"),
    plain(0x400454C8, "TUNSETNOCSUM"),
    plain(0x400454C9, "TUNSETDEBUG"),
    plain(0x400454CB, "TUNSETPERSIST"),
    plain(0x400454CC, "TUNSETOWNER"),
    plain(0x400454CD, "TUNSETLINK"),
    plain(0x400454CE, "TUNSETGROUP"),
    plain(0x400454D0, "TUNSETOFFLOAD", hexadecimal("arg")),
    both(0x800454D2, "TUNGETIFF", "ifreq"),
]

BLOCK = [
    put(0x125D, "BLKROSET", "s32"),
    get(0x125E, "BLKROGET", "s32"),
    plain(0x125F, "BLKRRPART"),
    get(0x1260, "BLKGETSIZE", "u64"),
    case(0x1261, "BLKFLSBUF", num("arg"), block=WAIT),
    plain(0x1262, "BLKRASET"),
    get(0x1263, "BLKRAGET", "u64"),
    plain(0x1264, "BLKFRASET"),
    get(0x1265, "BLKFRAGET", "u64"),
    plain(0x1266, "BLKSECTSET"),
    get(0x1267, "BLKSECTGET", "u16"),
    get(0x1268, "BLKSSZGET", "s32"),
    get(0x80081270, "BLKBSZGET", "s32"),
    put(0x40081271, "BLKBSZSET", "s32"),
    get(0x80081272, "BLKGETSIZE64", "u64"),
    case(0x1277, "BLKDISCARD", in_struct("argp", "iovec"), block=MAY),
    get(0x1278, "BLKIOMIN", "u32"),
    get(0x1279, "BLKIOOPT", "u32"),
    get(0x127A, "BLKALIGNOFF", "s32"),
    get(0x127B, "BLKPBSZGET", "u32"),
    get(0x127C, "BLKDISCARDZEROES", "u32"),
    case(0x127D, "BLKSECDISCARD", in_struct("argp", "iovec"), block=MAY),
    get(0x127E, "BLKROTATIONAL", "u16"),
    case(0x127F, "BLKZEROOUT", in_struct("argp", "iovec"), block=MAY),
    get(0x0301, "HDIO_GETGEO", "hd_geometry"),
    get(0x030D, "HDIO_GET_IDENTITY", "hd_driveid"),
    plain(0x5309, "CDROMEJECT"),
    plain(0x5326, "CDROM_DRIVE_STATUS"),
    plain(0x5331, "CDROM_GET_CAPABILITY"),
    plain(0x4C00, "LOOP_SET_FD", fd("arg")),
    plain(0x4C01, "LOOP_CLR_FD"),
    put(0x4C02, "LOOP_SET_STATUS", "loop_info"),
    get(0x4C03, "LOOP_GET_STATUS", "loop_info"),
    put(0x4C04, "LOOP_SET_STATUS64", "loop_info64"),
    get(0x4C05, "LOOP_GET_STATUS64", "loop_info64"),
    plain(0x4C06, "LOOP_CHANGE_FD", fd("arg")),
    plain(0x4C07, "LOOP_SET_CAPACITY"),
    plain(0x4C08, "LOOP_SET_DIRECT_IO"),
    plain(0x4C09, "LOOP_SET_BLOCK_SIZE"),
    put(0x4C0A, "LOOP_CONFIGURE", "loop_config"),
    plain(0x4C80, "LOOP_CTL_ADD"),
    plain(0x4C81, "LOOP_CTL_REMOVE"),
    plain(0x4C82, "LOOP_CTL_GET_FREE"),
    case(0x2285, "SG_IO", via(via(inout_struct("argp", "sg_io_hdr"), pointer=16, at=12, width=4),
                              pointer=32, at=9, width=1), block=MAY),
    get(0x2282, "SG_GET_VERSION_NUM", "s32"),
    get(0x5382, "SCSI_IOCTL_GET_IDLUN", "u64"),
    get(0x5386, "SCSI_IOCTL_GET_BUS_NUMBER", "s32"),
]

FILESYSTEM = [
    both(0x1, "FIBMAP", "s32"),
    get(0x2, "FIGETBSZ", "s32"),
    case(0xC0045877, "FIFREEZE", num("arg"), block=MAY),
    case(0xC0045878, "FITHAW", num("arg"), block=MAY),
    case(0xC0185879, "FITRIM", inout_struct("argp", "fstrim_range"), block=MAY),
    case(0x40049409, "FICLONE", fd("src_fd"), block=MAY),
    case(0x4020940D, "FICLONERANGE", in_struct("argp", "file_clone_range"), block=MAY),
    case(0xC0189436, "FIDEDUPERANGE", counted("argp", "file_dedupe_range", header=24, each=32, at=16,
         width=2),
         block=MAY),
    case(0xC020660B, "FS_IOC_FIEMAP", counted("argp", "fiemap", header=32, each=56, at=24, width=4),
         block=NEVER),
    deep(0xC0606610, "PAGEMAP_SCAN", "bytes_96", (40, 48, 8, 24)),
    get(0x80086601, "FS_IOC_GETFLAGS", "x32"),
    put(0x40086602, "FS_IOC_SETFLAGS", "x32"),
    get(0x80087601, "FS_IOC_GETVERSION", "s32"),
    put(0x40087602, "FS_IOC_SETVERSION", "s32"),
    get(0x801C581F, "FS_IOC_FSGETXATTR", "fsxattr"),
    put(0x401C5820, "FS_IOC_FSSETXATTR", "fsxattr"),
    get(0x81009431, "FS_IOC_GETFSLABEL", "name_256"),
    put(0x41009432, "FS_IOC_SETFSLABEL", "name_256"),
    case(0xC0046686, "FS_IOC_MEASURE_VERITY", counted("argp", "verity_digest", header=4, each=1, at=2,
         width=2)),
    get(0x400C6615, "FS_IOC_GET_ENCRYPTION_POLICY", "fscrypt_policy"),
    get(0x40106614, "FS_IOC_GET_ENCRYPTION_PWSALT", "fscrypt_salt"),
    case(0xC0096616, "FS_IOC_GET_ENCRYPTION_POLICY_EX",
         counted("argp", "fscrypt_policy_ex", header=8, each=1, at=0, width=8), block=NEVER),
    plain(0xB701, "NS_GET_USERNS"),
    plain(0xB702, "NS_GET_PARENT"),
    plain(0xB703, "NS_GET_NSTYPE"),
    get(0xB704, "NS_GET_OWNER_UID", "uid"),
    *(plain(0xFF00 + n, f"PIDFD_GET_{name}_NAMESPACE")
      for n, name in enumerate(("CGROUP", "IPC", "MNT", "NET", "PID", "PID_FOR_CHILDREN", "TIME",
      "TIME_FOR_CHILDREN",
                                "USER", "UTS"), 1)),
]  # fmt: skip

DEVICE = [
    plain(0x2400, "PERF_EVENT_IOC_ENABLE"),
    plain(0x2401, "PERF_EVENT_IOC_DISABLE"),
    plain(0x2402, "PERF_EVENT_IOC_REFRESH"),
    plain(0x2403, "PERF_EVENT_IOC_RESET"),
    put(0x40082404, "PERF_EVENT_IOC_PERIOD", "u64"),
    plain(0x2405, "PERF_EVENT_IOC_SET_OUTPUT"),
    case(0x40082406, "PERF_EVENT_IOC_SET_FILTER", in_string("filter"), block=NEVER),
    get(0x80082407, "PERF_EVENT_IOC_ID", "u64"),
    plain(0x40042408, "PERF_EVENT_IOC_SET_BPF", fd("arg")),
    plain(0x40042409, "PERF_EVENT_IOC_PAUSE_OUTPUT"),
    case(0xC008240A, "PERF_EVENT_IOC_QUERY_BPF", counted("argp", "iovec_header", header=8, each=4, at=0,
         width=4)),
    get(0x80247009, "RTC_RD_TIME", "rtc_time"),
    plain(0x7001, "RTC_AIE_ON"),
    plain(0x7002, "RTC_AIE_OFF"),
    plain(0x7003, "RTC_UIE_ON"),
    plain(0x7004, "RTC_UIE_OFF"),
    plain(0x7005, "RTC_PIE_ON"),
    plain(0x7006, "RTC_PIE_OFF"),
    plain(0x5204, "RNDZAPENTCNT"),
    plain(0x5206, "RNDCLEARPOOL"),
    plain(0x5207, "RNDRESEEDCRNG"),
    deep(0x80104592, "EVIOCGMASK", "bytes_16", (8, 4, 4, 1)),
    plain(0x40044590, "EVIOCGRAB"),
    plain(0x40044591, "EVIOCREVOKE"),
    plain(0x40044581, "EVIOCRMFF"),
    *(plain(0x40045500 + n, f"UI_SET_{name}")
      for n, name in zip(range(100, 111), ("EVBIT", "KEYBIT", "RELBIT", "ABSBIT", "MSCBIT", "LEDBIT",
      "SNDBIT", "FFBIT",
                                           "PHYS", "SWBIT", "PROPBIT"), strict=True)
      if name != "PHYS"),
    plain(0x5501, "UI_DEV_CREATE"),
    plain(0x5502, "UI_DEV_DESTROY"),
    plain(0x0703, "I2C_SLAVE"),
    get(0x0705, "I2C_FUNCS", "u64"),
    plain(0x0706, "I2C_SLAVE_FORCE"),
    plain(0x641E, "DRM_IOCTL_SET_MASTER"),
    plain(0x641F, "DRM_IOCTL_DROP_MASTER"),
    deep(0xC0505510, "SNDRV_CTL_IOCTL_ELEM_LIST", "bytes_80", (16, 4, 4, 64)),
    case(0xC008551A, "SNDRV_CTL_IOCTL_TLV_READ", counted("argp", "bytes_8", header=8, each=1, at=4, width=4),
         block=NEVER),
    case(0x40184150, "SNDRV_PCM_IOCTL_WRITEI_FRAMES", inout_struct("argp", "bytes_24")),
    case(0x40184152, "SNDRV_PCM_IOCTL_WRITEN_FRAMES", inout_struct("argp", "bytes_24")),
    case(0x80184151, "SNDRV_PCM_IOCTL_READI_FRAMES", ptr("argp"), treat=REFUSE),
    case(0x80184153, "SNDRV_PCM_IOCTL_READN_FRAMES", ptr("argp"), treat=REFUSE),
    plain(0x4140, "SNDRV_PCM_IOCTL_PREPARE"),
    plain(0x4141, "SNDRV_PCM_IOCTL_RESET"),
    plain(0x4142, "SNDRV_PCM_IOCTL_START"),
    plain(0x4143, "SNDRV_PCM_IOCTL_DROP"),
    case(0x4144, "SNDRV_PCM_IOCTL_DRAIN", num("arg"), block=WAIT),
    plain(0x4112, "SNDRV_PCM_IOCTL_HW_FREE"),
    plain(0x4122, "SNDRV_PCM_IOCTL_HWSYNC"),
    plain(0x4147, "SNDRV_PCM_IOCTL_RESUME"),
    plain(0x4148, "SNDRV_PCM_IOCTL_XRUN"),
]  # fmt: skip

GRAPHICS = [
    deep(0xC0406400, "DRM_IOCTL_VERSION", "drm_version", (24, 16, 8, 1), (40, 32, 8, 1), (56, 48, 8, 1)),
    deep(0xC0106401, "DRM_IOCTL_GET_UNIQUE", "drm_unique", (8, 0, 8, 1)),
    deep(0xC04064A0, "DRM_IOCTL_MODE_GETRESOURCES", "bytes_64", (0, 32, 4, 4), (8, 36, 4, 4), (16, 40, 4, 4),
         (24, 44, 4, 4)),
    deep(0xC05064A7, "DRM_IOCTL_MODE_GETCONNECTOR", "bytes_80", (0, 40, 4, 4), (8, 32, 4, 68), (16, 36, 4, 4),
         (24, 36, 4, 8)),
    deep(0xC04064AA, "DRM_IOCTL_MODE_GETPROPERTY", "bytes_64", (0, 56, 4, 8), (8, 60, 4, 40)),
    deep(0xC01064AC, "DRM_IOCTL_MODE_GETPROPBLOB", "bytes_16", (8, 4, 4, 1)),
    deep(0xC01064B5, "DRM_IOCTL_MODE_GETPLANERESOURCES", "bytes_16", (0, 8, 4, 4)),
    deep(0xC02064B6, "DRM_IOCTL_MODE_GETPLANE", "bytes_32", (24, 20, 4, 4)),
    deep(0xC02064B9, "DRM_IOCTL_MODE_OBJ_GETPROPERTIES", "bytes_32", (0, 16, 4, 4), (8, 16, 4, 8)),
]  # fmt: skip

USB = [
    case(0xC0185500, "USBDEVFS_CONTROL", via(inout_struct("argp", "bytes_24"), pointer=16, at=6, width=2)),
    case(0xC0185502, "USBDEVFS_BULK", via(inout_struct("argp", "bytes_24"), pointer=16, at=4, width=4)),
    both(0x41045508, "USBDEVFS_GETDRIVER", "bytes_260"),
    get(0x40085511, "USBDEVFS_CONNECTINFO", "u64"),
    case(0x8038550A, "USBDEVFS_SUBMITURB", ptr("argp"), treat=REFUSE),
    case(0x4008550C, "USBDEVFS_REAPURB", ptr("argp"), treat=REFUSE),
    case(0x4008550D, "USBDEVFS_REAPURBNDELAY", ptr("argp"), treat=REFUSE),
]

_DEVICE_MAPPER = (
    "VERSION REMOVE_ALL LIST_DEVICES DEV_CREATE DEV_REMOVE DEV_RENAME DEV_SUSPEND DEV_STATUS DEV_WAIT "
    "TABLE_LOAD TABLE_CLEAR TABLE_DEPS TABLE_STATUS LIST_VERSIONS TARGET_MSG DEV_SET_GEOMETRY DEV_ARM_POLL "
    "GET_TARGET_VERSION"
)

MAPPER = [
    case(0xC138FD00 + n, f"DM_{name}", counted("argp", "bytes_312", header=0, each=1, at=12, width=4))
    for n, name in enumerate(_DEVICE_MAPPER.split())
]

CALLS: list[Call] = [
    call(16, "ioctl", fd(), value("request", "ioctl"), ptr("argp"), family=FAMILY, block=MAY, waits_on="fd",
         flags=RESTART, selector=Selector(1, closed=True), case_from=2,
         cases=TERMINAL + SOCKET + BLOCK + FILESYSTEM + DEVICE + GRAPHICS + USB + MAPPER),
]  # fmt: skip
