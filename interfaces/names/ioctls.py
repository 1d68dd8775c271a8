"""Names of ioctl requests: those of the call table, some well-encoded ones, the encoding for the rest."""

from __future__ import annotations

from interfaces.calls import BY_NAME
from interfaces.names.sets import parse

REQUESTS: dict[int, str] = {case.key: case.name for case in BY_NAME["ioctl"].cases}
REQUESTS.update(
    parse(
        "EVIOCGVERSION=0x80044501 EVIOCGID=0x80084502 EVIOCGREP=0x80084503 EVIOCSREP=0x40084503 "
        "EVIOCSCLOCKID=0x400445a0 UI_DEV_SETUP=0x405c5503 RNDGETENTCNT=0x80045200 RNDADDENTROPY=0x40085203 "
        "RNDADDTOENTCNT=0x40045201 "
        "TUNGETFEATURES=0x800454cf TUNGETSNDBUF=0x800454d3 TUNSETSNDBUF=0x400454d4 "
        "TUNGETVNETHDRSZ=0x800454d7 "
        "TUNSETVNETHDRSZ=0x400454d8 FAT_IOCTL_GET_ATTRIBUTES=0x80047210 VFAT_IOCTL_READDIR_BOTH=0x82307201 "
        "NS_GET_MNTNS_ID=0x8008b705 NS_GET_ID=0x8008b70d BTRFS_IOC_CLONE_RANGE=0x4020940d "
        "DRM_IOCTL_GEM_CLOSE=0x40086409 DRM_IOCTL_GET_CAP=0xc010640c DRM_IOCTL_SET_CLIENT_CAP=0x4010640d "
        "DRM_IOCTL_GET_MAGIC=0x80046402 DRM_IOCTL_AUTH_MAGIC=0x40046411 "
        "DRM_IOCTL_PRIME_HANDLE_TO_FD=0xc00c642d "
        "DRM_IOCTL_PRIME_FD_TO_HANDLE=0xc00c642e RTC_SET_TIME=0x4024700a RTC_ALM_READ=0x80247008 "
        "RTC_ALM_SET=0x40247007 VIDIOC_QUERYCAP=0x80685600 VIDIOC_G_FMT=0xc0d05604 "
        "SNDRV_PCM_IOCTL_PVERSION=0x80044100 SNDRV_PCM_IOCTL_INFO=0x81204101 "
        "SNDRV_CTL_IOCTL_CARD_INFO=0x81785501"
    )
)

_DIRECTIONS = ("_IO", "_IOW", "_IOR", "_IOWR")


def request_name(request: int) -> str:
    """`TCGETS`, or `_IOWR(0x64, 0xa0, 0x40)` for one that has no name here."""
    request &= 0xFFFFFFFF
    if request in REQUESTS:
        return REQUESTS[request]
    direction, size = request >> 30, request >> 16 & 0x3FFF
    kind, number = request >> 8 & 0xFF, request & 0xFF
    if not direction:
        return f"_IO({kind:#x}, {number:#x})" if not size else f"{request:#x}"
    return f"{_DIRECTIONS[direction]}({kind:#x}, {number:#x}, {size:#x})"
