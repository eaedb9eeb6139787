"""Every row of the table of op cases must give the same values under real TensorFlow, from the same GraphDef."""

from __future__ import annotations

import pickle

import numpy as np

import dtf as tf
from tests.interop import tensorflow_process
from tests.interop.tensorflow_process import needs_tensorflow
from tests.runtime.test_ops import CASES, build, run

pytestmark = needs_tensorflow

# What TensorFlow's CPU kernels cannot do, or leave open.
NOT_COMPARED = {
    "Round-int32": "gives zeros there",
    "FusedBatchNorm-inference": "its reserved outputs are not initialised there",
    "Conv2DBackpropInput-SAME-(1,1)-(2,1)": "no dilations there",
    "Conv2DBackpropFilter-SAME-(1,1)-(2,1)": "no dilations there",
    "Conv2D-NCHW": "NHWC only there",
    "MaxPool-NCHW": "NHWC only there",
    "TopK": "not available to graphs as new as ours there",
    "_FusedMatMul-side-input": "no side input there",
    "_FusedConv2D-NCHW": "NHWC only there",
    "_FusedDepthwiseConv2dNative": "only with oneDNN there",
    "_FusedBatchNormEx": "only on accelerators there",
}

COMPARE = """
    import pickle

    different = []
    for name, graph_def, fetches, feeds, expected in pickle.load(open(sys.argv[1], "rb")):
        try:
            with tf.Graph().as_default() as graph:
                tf.import_graph_def(tf.GraphDef.FromString(graph_def), name="")
                with tf.Session() as session:
                    values = session.run(fetches, feeds)
        except Exception as error:
            different.append([name, f"{type(error).__name__}: {error}"[:500]])
            continue
        for fetch, value, wanted in zip(fetches, values, expected):
            value = np.asarray(value, object) if wanted.dtype == object else np.asarray(value)
            if value.dtype != wanted.dtype or value.shape != wanted.shape:
                different.append([name, f"{fetch}: {value.dtype}{value.shape}, dtf: {wanted.dtype}{wanted.shape}"])
                continue
            tolerance = 2e-2 if value.dtype.itemsize == 2 else 1e-4
            if value.dtype == object:
                same = value.tolist() == wanted.tolist()
            else:
                same = np.allclose(value.astype(complex), wanted.astype(complex), tolerance, 1e-5, equal_nan=True)
            if not same:
                different.append([name, f"{fetch}: {value.tolist()}, dtf: {wanted.tolist()}"])
    print(json.dumps(different))
"""


def test_an_op_gives_tensorflows_values(tmp_path):
    rows = []
    for case in CASES:
        if case.run is not None or str(case) in NOT_COMPARED:
            continue
        graph = tf.Graph()
        placeholders, outputs, arrays = build(case, graph)
        values = run(graph, outputs, zip(placeholders, arrays, strict=True))
        feeds = {holder.name: array for holder, array in zip(placeholders, arrays, strict=True)}
        fetches = [tensor.name for tensor in outputs]
        rows.append(
            (str(case), graph.as_graph_def().SerializeToString(), fetches, feeds, [np.asarray(each) for each in values])
        )
    path = tmp_path / "cases"
    path.write_bytes(pickle.dumps(rows))
    different = tensorflow_process.run(COMPARE, str(path))
    assert not different, "\n".join(f"{name}: {what}" for name, what in different)
