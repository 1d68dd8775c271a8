"""Makes the pictures of the terminal interface: `python docs/pictures/make.py`, in the project's folder.

Each is an SVG of a screen, drawn from a generated trace without a terminal; the hangs are those of the tests.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
os.environ.pop("NO_COLOR", None)
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.tui_trace import make_trace  # noqa: E402
from tests.tui.conftest import press, settle, type_text  # noqa: E402
from tests.tui.hangs import fake_hangs  # noqa: E402
from tracefile import TraceReader  # noqa: E402
from tui.app import RrPyTui  # noqa: E402
from tui.diff import DiffTui  # noqa: E402
from tui.model.address import Address  # noqa: E402
from tui.model.trace import TraceModel  # noqa: E402

SIZE = (110, 32)
PICTURES: dict[str, tuple[Address, Sequence[str]]] = {
    "events": (Address(place="4711:40"), ()),
    "filter": (Address(), ("f", 'call == read and duration > 10us and path ~ "*.db"')),
    "timeline": (Address(screen="timeline", place="+400ms"), ("plus",)),
    "processes": (Address(screen="processes"), ()),
    "hangs": (Address(screen="hangs"), ()),
}


async def draw(trace: Path, name: str, address: Address, keys: Sequence[str], target: Path) -> None:
    """One picture: press the keys; a word of several characters is typed."""
    with TraceModel.open(trace) as model:
        app = RrPyTui(model, Address(trace, address.screen, address.place))
        async with app.run_test(size=SIZE) as pilot:
            await settle(pilot)
            for key in keys:
                if " " in key:
                    await type_text(pilot, key)
                else:
                    await press(pilot, key)
            save(app, target / f"tui-{name}.svg", name)


async def draw_comparison(a: Path, b: Path, target: Path) -> None:
    """The picture of two traces side by side."""
    with TraceModel.open(a) as model, TraceReader.open(b) as other:
        app = DiffTui(model, other)
        async with app.run_test(size=SIZE) as pilot:
            await settle(pilot)
            save(app, target / "tui-diff.svg", "diff")


def save(app: RrPyTui, path: Path, name: str) -> None:
    """Write the screen; without fonts from elsewhere, so that the reader's own are used."""
    svg = app.export_screenshot(title=f"rr-py tui: {name}")
    path.write_text(re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL), "utf-8")
    print(path)


async def main() -> None:
    """All pictures, into the folder of this script."""
    target = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = folder
        os.chdir(folder)
        trace = make_trace(Path("server.bin"), 20_000)
        longer = make_trace(Path("other.bin"), 20_060)
        with patch("tui.looking.scan_trace", lambda path: fake_hangs(str(path))):
            for name, (address, keys) in PICTURES.items():
                await draw(trace, name, address, keys, target)
        await draw_comparison(trace, longer, target)


if __name__ == "__main__":
    asyncio.run(main())
