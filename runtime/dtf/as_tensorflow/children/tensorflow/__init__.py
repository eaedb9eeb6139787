"""dtf, under TensorFlow's name: found by programs whose PYTHONPATH has the folder above (see dtf.as_tensorflow)."""

import os
import sys

try:
    from dtf import as_tensorflow
except ModuleNotFoundError:  # a child with a shorter path than its parent's
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    from dtf import as_tensorflow

del sys.modules["tensorflow"]  # this very module, in whose place dtf's comes
as_tensorflow.install()
