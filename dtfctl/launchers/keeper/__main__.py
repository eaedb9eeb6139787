"""What `python -I -S .../keeper RUN_DIR` runs, wherever this folder and those above it have been copied to."""

from __future__ import annotations

import os
import sys


def run() -> None:
    # Instead of this folder that which has the whole package in it; behind Python's own, so that it hides nothing.
    sys.path[:] = [*sys.path[1:], os.path.abspath(os.path.join(__file__, "../../../.."))]
    from dtfctl.launchers.keeper.keeper import main

    main()


if __name__ == "__main__":
    run()
