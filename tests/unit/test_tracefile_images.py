"""Images in a trace: what many of them show alike is written and read once, and what is wrong is refused."""

from __future__ import annotations

import json

import pytest

from tracefile import BootImage, BootMapping, DomainStart
from tracefile.fields import FieldError, load_json


def _image(stack: bytes, data: bytes, path: str = "/bin/x") -> BootImage:
    mapping = BootMapping(start=4096, end=8192, prot=3, path=path, file=1, data=((5000, data),))
    heap = BootMapping(start=8192, end=12288, prot=3)
    return BootImage([mapping, heap], 1 << 30, stack, {"rip": 1, "rsp": 2}, [(6, 4096)], 7, [4100], 9)


@pytest.mark.parametrize(
    "path", ["/bin/x", '/a,"stack_start":1', '/\\","stack_start":', '{"boot":{"mappings":']
)
def test_images_of_the_same_files_differ_in_what_is_their_own(path: str) -> None:
    """GIVEN images that show the same files WHEN written and read THEN each has its own stack and the content
    of its own mappings, whatever the files are called."""
    starts = [
        DomainStart(
            domain=number, kind="exec", pid=1, argv=["a"] * number, envp=[path],
            boot=_image(b"s" * number, data, path),
        )
        for number, data in enumerate((b"abc", b"abd", b"abc"), 1)
    ]  # fmt: skip
    for start in starts:
        read = DomainStart.decode(*start.encode())
        assert read.boot is not None and start.boot is not None
        assert read.boot._replace(mappings=list(read.boot.mappings)) == start.boot
        assert (read.argv, read.envp) == (start.argv, start.envp)


def test_an_image_that_other_tools_wrote_is_read_as_well() -> None:
    """GIVEN the fields of a document in another order, or with spaces WHEN read THEN the same image."""
    start = DomainStart(domain=1, kind="exec", pid=1, argv=["a"], boot=_image(b"stack", b"abc"))
    section_a, section_b = start.encode()
    size = int.from_bytes(section_b[:8], "little")
    document = load_json(section_b[8 : 8 + size])
    boot = document["boot"]
    assert isinstance(boot, dict)
    for order in (sorted(boot), sorted(boot, reverse=True), ["mappings", *boot]):
        again = json.dumps({**document, "boot": {key: boot[key] for key in order}}).encode()
        section = len(again).to_bytes(8, "little") + again + section_b[8 + size :]
        assert DomainStart.decode(section_a, section) == DomainStart.decode(section_a, section_b)


@pytest.mark.parametrize(
    "change",
    [
        (b'"mappings":[', b'"mappings":[{},'),
        (b'"mappings":[', b'"mappings":7,"x":['),
        (b'"patches":[', b'"patches":[-1,'),
        (b'"start":4096', b'"start":9096'),
        (b"[5000,", b"[8190,"),
        (b',"stack_start":', b',"stack_start":{},"y":'),
        (b',"stack_start":', b']},"stack_start":'),
    ],
)
def test_a_wrong_image_is_refused_each_time(change: tuple[bytes, bytes]) -> None:
    """GIVEN a document that says wrong things of the files WHEN read twice THEN FieldError both times, also
    behind a good one."""
    section_a, section_b = DomainStart(domain=1, kind="exec", pid=1, boot=_image(b"stack", b"abc")).encode()
    DomainStart.decode(section_a, section_b)
    size = int.from_bytes(section_b[:8], "little")
    document = section_b[8 : 8 + size].replace(*change, 1)
    section = len(document).to_bytes(8, "little") + document + section_b[8 + size :]
    for _ in range(2):
        with pytest.raises(FieldError):
            DomainStart.decode(section_a, section)
