"""Nothing that the GPL, version 2 only, forbids to be combined with is imported into rr-py's process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

COMBINABLE = {
    "capstone": "BSD-3-Clause",
    "click": "BSD-3-Clause",
    "numpy": "BSD-3-Clause",
    "platformdirs": "MIT",
    "psutil": "BSD-3-Clause",
    "pyelftools": "public domain",
    "python-ptrace": "GPL-2.0-only",
    "rr-py": "MIT",
    "typing_extensions": "PSF-2.0",
    "zstandard": "BSD-3-Clause",
    # of the extra `library`
    "frida": "wxWindows Library Licence 3.1",
    "networkx": "BSD-3-Clause",
    "pycparser": "BSD-3-Clause",
    # of the extra `tui`
    "linkify-it-py": "MIT",
    "markdown-it-py": "MIT",
    "mdit-py-plugins": "MIT",
    "mdurl": "MIT",
    "Pygments": "BSD-2-Clause",
    "rich": "MIT",
    "textual": "MIT",
    "uc-micro-py": "MIT",
}

IMPORT_ALL = """
import importlib, importlib.metadata, json, pathlib, pkgutil, sys
for top in sorted({path.parent.name for path in pathlib.Path(sys.argv[1]).glob('*/__init__.py')} - {'tests'}):
    package = importlib.import_module(top)
    for module in pkgutil.walk_packages(package.__path__, top + '.'):
        if not module.name.endswith('__main__'):
            importlib.import_module(module.name)
import capstone, click, elftools.elf.elffile, ptrace.binding, zstandard
for extra in ('frida', 'networkx', 'pycparser'):
    try:
        importlib.import_module(extra)
    except ImportError:
        pass
owners = importlib.metadata.packages_distributions()
loaded = {name.partition('.')[0] for name in sys.modules}
print(json.dumps(sorted({owner for name in loaded for owner in owners.get(name, [])})))
"""


def test_all_that_is_imported_may_be_combined_with_python_ptrace() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, ROOT], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = set(json.loads(done.stdout))
    assert {"click", "numpy", "python-ptrace", "zstandard"} <= found
    tools_of_the_environment = {"setuptools", "pip"}
    assert found - tools_of_the_environment - set(COMBINABLE) == set()
