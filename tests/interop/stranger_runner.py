"""Runs whole scripts that `import tensorflow`, one after another; prints what each printed, as JSON.

A script's first line may hold its arguments: `# ARGS: --epochs 2`. Under `python -m dtf` it gets dtf, under Python with
TensorFlow 2 its compat.v1 as `tensorflow`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import shlex
import sys
import tempfile
from pathlib import Path


def main(folder: str) -> None:
    import tensorflow

    if not tensorflow.__version__.startswith("1."):
        import tensorflow.compat.v1 as tensorflow

        tensorflow.disable_v2_behavior()
        sys.modules["tensorflow"] = tensorflow
    tensorflow.logging.set_verbosity(tensorflow.logging.ERROR)
    flags = tensorflow.flags.FLAGS
    given = set(flags)
    found = {}
    for path in sorted(Path(folder).resolve().glob("[a-z]*.py")):
        first = path.read_text().partition("\n")[0]
        sys.argv[:] = [str(path), *shlex.split(first.partition("ARGS:")[2])]
        tensorflow.reset_default_graph()
        output = io.StringIO()
        with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(output):
            os.chdir(place)
            with contextlib.suppress(SystemExit):
                runpy.run_path(str(path), run_name="__main__")
            os.chdir("/")
        found[path.stem] = output.getvalue()
        for name in set(flags) - given:
            delattr(flags, name)
        flags.unparse_flags()  # the next program's flags come from its own arguments
    print(json.dumps(found))


main(sys.argv[1])
