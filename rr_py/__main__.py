"""`python -m rr_py` and the `rr-py` script."""

import sys

from rr_py.main import main

if __name__ == "__main__":
    sys.exit(main())
