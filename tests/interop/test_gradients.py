"""Every op must have a gradient where TensorFlow registers one."""

from __future__ import annotations

from dtf.build import gradients
from dtf.build.function_calls import CALLS
from dtf.wire import opdef
from tests.interop import tensorflow_process
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow

# What TensorFlow registers for these gives None for every input, or refuses.
NOTHING_FLOWS = {
    "ArgMax", "ArgMin", "Ceil", "Floor", "FloorDiv", "LoopCond", "Rint", "Round", "SparseSparseMaximum",
    "SparseSparseMinimum", "TruncateDiv",
}  # fmt: skip
# Elements of datasets: nothing flows through them in dtf, where TensorFlow has gradients.
ELEMENTS = {"RaggedTensorFromVariant", "RaggedTensorToVariant"}

REGISTERED = """
    from tensorflow.python.framework import ops

    registry = ops.gradient_registry
    print(json.dumps([name for name in registry.list() if registry.lookup(name) is not None]))
"""


def test_every_gradient_that_tensorflow_registers_is_there():
    gradients.load()
    theirs = set(tensorflow_process.run(REGISTERED)) & set(opdef.names())
    assert len(theirs) > 300
    lacking = {name for name in theirs if gradients.table.get(name) is None} - NOTHING_FLOWS - ELEMENTS - CALLS
    assert not lacking, f"no gradient: {sorted(lacking)}"
