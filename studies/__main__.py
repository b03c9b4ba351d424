"""`python -m studies NAME`."""

from __future__ import annotations

import sys

from studies.shared.runner import main

if __name__ == "__main__":
    sys.exit(main())
