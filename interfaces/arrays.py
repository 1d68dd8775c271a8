"""numpy, imported late and without the threads of its linear algebra.

Importing it costs more than recording or replaying a short program, so that the modules on that way call
`numpy` when there is enough to do for it.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

_THREADS = "OPENBLAS_NUM_THREADS"


def numpy() -> ModuleType:
    """The module; nothing here multiplies matrices, so its library starts no thread for that.

    The environment variable that says so is there only during the import: recorded programs do not see it.
    """
    if "numpy" not in sys.modules and _THREADS not in os.environ:
        os.putenv(_THREADS, "1")
        try:
            import numpy
        finally:
            os.unsetenv(_THREADS)
    else:
        import numpy
    return numpy
