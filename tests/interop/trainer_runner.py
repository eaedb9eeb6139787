"""Runs programs that `import tensorflow`, one after another in graphs of their own; prints their LOSSES as JSON.

Under `python -m dtf` it is dtf that they get, under Python with TensorFlow 2 its compat.v1 as `tensorflow`.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path


def main(folder: str) -> None:
    import tensorflow

    if not tensorflow.__version__.startswith("1."):
        import tensorflow.compat.v1 as tensorflow

        tensorflow.disable_v2_behavior()
        sys.modules["tensorflow"] = tensorflow
    tensorflow.logging.set_verbosity(tensorflow.logging.ERROR)
    found = {}
    for path in sorted(Path(folder).glob("[a-z]*.py")):
        with tensorflow.Graph().as_default():
            found[path.stem] = runpy.run_path(str(path), run_name=path.stem)["LOSSES"]
    print(json.dumps(found))


main(sys.argv[1])
