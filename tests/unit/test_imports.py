"""What stands in for modules while others are imported: only then, only for those, and unseen by others."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

CASES = {
    "pathlib imports the parser of addresses once it needs it": """
        from interfaces.imports import import_pathlib
        import_pathlib()
        assert "urllib.parse" not in sys.modules
        from pathlib import Path
        assert Path("/a b").as_uri() == "file:///a%20b"
        import urllib.parse
        assert urllib.parse.quote("/a b") == "/a%20b"
    """,
    "zstandard works without platform, which works afterwards": """
        import tracefile.codec
        assert "platform" not in sys.modules
        codec, stored = tracefile.codec.Compressor().section(b"a" * 1000)
        assert tracefile.codec.zstandard.backend == "cext"
        import platform
        from interfaces.imports import python_implementation
        assert platform.python_implementation() == python_implementation()
    """,
    "python-ptrace's own tools work afterwards": """
        import interposer.ptrace
        assert not {"logging", "datetime", "ptrace.tools"} & sys.modules.keys()
        import ptrace.tools
        assert ptrace.tools.minmax(1, 5, 3) == 3
    """,
    "what is imported already stays": """
        import platform
        from interfaces.imports import standing_in
        with standing_in("platform"):
            assert sys.modules["platform"] is platform
        assert sys.modules["platform"] is platform
    """,
    "another thread sees no stand-in": """
        import threading
        from interfaces.imports import standing_in
        end = threading.Event()
        thread = threading.Thread(target=end.wait)
        thread.start()
        with standing_in("platform"):
            assert "platform" not in sys.modules
        end.set()
        thread.join()
    """,
    "an import that fails leaves no stand-in": """
        from interfaces.imports import standing_in
        try:
            with standing_in("platform"):
                raise ImportError
        except ImportError:
            assert "platform" not in sys.modules
        else:
            raise AssertionError
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_stand_ins(case: str) -> None:
    code = "import sys\n" + textwrap.dedent(CASES[case])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
