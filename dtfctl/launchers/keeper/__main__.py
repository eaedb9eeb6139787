"""What `python -I -S .../keeper RUN_DIR` runs, wherever this folder and those above it have been copied to."""

from __future__ import annotations

import os
import sys


def run() -> None:
    # The folder that holds the whole package, in place of this one; behind Python's own, so that it hides no module.
    sys.path[:] = [*sys.path[1:], os.path.abspath(os.path.join(__file__, "../../../.."))]
    from dtfctl.launchers.keeper.keeper import main

    main()


if __name__ == "__main__":
    run()
