"""What one case comes to: dtypes, static shapes, names and values of the results, or the type of the error.

The same code runs beside dtf and beside TensorFlow; it uses their public names only.
    python -m tests.interop.argument_forms.outcomes OUT EVERY TABLE...  (with TensorFlow's Python) pickles all outcomes
"""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any

import numpy as np

TABLES = (
    "array", "array_shapes", "distribution_calls", "flow_forms", "images", "layer_forms", "linear", "math_forms",
    "metric_forms", "neural", "ragged_forms", "reductions", "scopes", "signals", "sparse_forms", "texts",
    "training_forms",
)  # fmt: skip

#: The most elements of a value that are compared one by one.
_ELEMENTS_MAX = 5000


def cases_of(table: str) -> list[str]:
    """The cases of one table, without repetitions."""
    module = importlib.import_module(f"tests.interop.argument_forms.{table}")
    return list(dict.fromkeys(module.CASES))


class _Inputs:
    """The forms of inputs in expressions: each gives a tensor and remembers what to feed."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf
        self.feeds: dict[Any, Any] = {}

    def constant(self, value: Any, dtype: Any = None, shape: Any = None) -> Any:
        return self.tf.constant(value, dtype, shape)

    def unknown(self, value: Any, dtype: Any = None) -> Any:
        """A placeholder of unknown rank."""
        return self.of_shape(value, None, dtype)

    def ranked(self, value: Any, dtype: Any = None) -> Any:
        """A placeholder of known rank and unknown sizes."""
        return self.of_shape(value, [None] * np.ndim(value), dtype)

    def of_shape(self, value: Any, shape: Any, dtype: Any = None) -> Any:
        """A placeholder of the given static shape."""
        if dtype is None:
            found = np.asarray(value)
            kinds = {"f": np.float32, "i": np.int32} if not isinstance(value, (np.ndarray, np.generic)) else {}
            dtype = self.tf.string if found.dtype.kind in "SUO" else kinds.get(found.dtype.kind, found.dtype)
        placeholder = self.tf.placeholder(dtype, shape)
        self.feeds[placeholder] = value
        return placeholder

    def after(self, operation: Any, value: Any) -> Any:
        """What the function `value` gives, once the operation has run."""
        with self.tf.control_dependencies([operation]):
            made = value()
            if isinstance(made, list):
                return [self.tf.identity(each) for each in made]
            return self.tf.identity(made)

    def variable(self, value: Any, **arguments: Any) -> Any:
        return self.tf.Variable(value, **arguments)


def _described(tf: Any, value: Any, fetches: list[Any]) -> Any:
    """A result as plain values; tensors are appended to `fetches` and described by dtype, static shape and name."""
    if isinstance(value, (tf.Tensor, tf.Variable)):
        fetches.append(value)
        shape = value.shape
        return ["tensor", value.dtype.name, None if shape.ndims is None else shape.as_list(), value.name, value.op.type]
    if isinstance(value, (tf.SparseTensor, tf.IndexedSlices)):
        parts = [value.indices, value.values, value.dense_shape]
        shape = value.get_shape()
        known = None if shape.ndims is None else shape.as_list()
        described = [None if each is None else _described(tf, each, fetches) for each in parts]
        return [type(value).__name__, known, described]
    if isinstance(value, tf.RaggedTensor):
        parts = (value.flat_values, *value.nested_row_splits)
        return ["RaggedTensor", [_described(tf, each, fetches) for each in parts]]
    if isinstance(value, tf.Operation):
        fetches.append(value)
        return ["operation", value.name, value.type]
    if isinstance(value, tf.TensorShape):
        return ["shape", None if value.ndims is None else value.as_list()]
    if isinstance(value, tf.DType):
        return ["dtype", value.name]
    if isinstance(value, tf.Dimension):
        return ["dimension", value.value]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__ if not hasattr(value, "_fields") else "tuple",
                [_described(tf, each, fetches) for each in value]]
    if isinstance(value, dict):
        return ["dict", [[str(key), _described(tf, value[key], fetches)] for key in sorted(value, key=str)]]
    if isinstance(value, np.ndarray):
        return ["array", str(value.dtype), value.tolist()]
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        return ["plain", value.item() if isinstance(value, np.generic) else value]
    return ["object", type(value).__name__]


def _words(error: BaseException) -> str:
    """The message of an error, without the stack that TensorFlow 2 puts before it."""
    text = str(error)
    return (text.partition("\nNode: ")[2] or text)[:300]


def _needs_initialization(tf: Any) -> bool:
    """Whether the graph has variables or tables."""
    keys = tf.GraphKeys
    return any(
        tf.get_collection(key) for key in (keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES, keys.TABLE_INITIALIZERS)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind in "SUO":
        return ["strings", array.shape, [str(each) for each in array.ravel()[:_ELEMENTS_MAX]]]
    return array if array.size <= _ELEMENTS_MAX else ["large", array.shape, str(array.dtype)]


def outcome(tf: Any, case: str) -> dict[str, Any]:
    """What the expression comes to in a graph of its own."""
    with tf.Graph().as_default() as graph:
        given = _Inputs(tf)
        names = {
            "tf": tf, "np": np, "T": given.constant, "P": given.unknown, "Q": given.ranked, "S": given.of_shape,
            "V": given.variable, "A": given.after, "graph": graph,
        }  # fmt: skip
        tf.set_random_seed(7)
        fetches: list[Any] = []
        try:
            result = eval(case, names)
            described = _described(tf, result, fetches)
        except Exception as error:  # whatever the runtime answers is the outcome
            return {"building": type(error).__name__, "message": _words(error)}
        nodes = [(node.name, node.op) for node in graph.as_graph_def().node]
        try:
            with tf.Session() as session:
                if _needs_initialization(tf):
                    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
                    session.run(tf.tables_initializer())
                values = session.run(fetches, given.feeds) if fetches else []
        except Exception as error:
            return {"running": type(error).__name__, "message": _words(error), "result": described, "nodes": nodes}
        return {"result": described, "values": [_plain(each) for each in values], "nodes": nodes}


if __name__ == "__main__":
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    tensorflow.logging.set_verbosity(tensorflow.logging.ERROR)
    every, tables = int(sys.argv[2]), sys.argv[3:]
    found = {table: {case: outcome(tensorflow, case) for case in cases_of(table)[::every]} for table in tables}
    with open(sys.argv[1], "wb") as file:
        pickle.dump(found, file)
