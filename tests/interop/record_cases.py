"""Writes tests/runtime/op_cases/recorded.json: what TensorFlow gives for the cases that expect RECORDED values.

    DTF_TENSORFLOW_PYTHON=... python -m tests.interop.record_cases [OP ...]

Runs under the project's Python from the repository root with runtime/ on PYTHONPATH. Only cases that are not there
yet are recorded, and those of the ops that are named; what belongs to no case any more is dropped.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile

import dtf as tf
from tests.interop import tensorflow_process
from tests.runtime.op_cases import RECORDED, RECORDED_FILE, all_cases
from tests.runtime.test_ops import build

RECORD = """
    import pickle

    made, failed = {}, []
    for name, graph_def, fetches, feeds in pickle.load(open(sys.argv[1], "rb")):
        try:
            with tf.Graph().as_default():
                tf.import_graph_def(tf.GraphDef.FromString(graph_def), name="")
                with tf.Session() as session:
                    values = session.run(fetches, feeds)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}"[:600], file=sys.stderr)
            failed.append(name)
            continue
        rows = []
        for value in values:
            value = np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)
            if value.dtype == object:
                elements = [element.decode("latin1") for element in value.ravel()]
                rows.append(["string", list(value.shape), elements])
            elif value.dtype.kind in "biu":
                rows.append([value.dtype.name, list(value.shape), value.ravel().tolist()])
            else:
                elements = [float(f"{element:.9g}") if value.dtype.itemsize < 8 else float(element)
                            for element in value.ravel().astype(float)]
                rows.append([value.dtype.name, list(value.shape), elements])
        made[name] = rows
    print(json.dumps([made, failed]))
"""


def main() -> None:
    known = json.loads(RECORDED_FILE.read_text(encoding="utf-8")) if RECORDED_FILE.exists() else {}
    cases = {str(case): case for case in all_cases() if case.expect is RECORDED}
    rows = []
    for name, case in cases.items():
        if name in known and case.op not in sys.argv[1:]:
            continue
        graph = tf.Graph()
        placeholders, outputs, arrays = build(case, graph)
        feeds = {holder.name: array for holder, array in zip(placeholders, arrays, strict=True)}
        rows.append((name, graph.as_graph_def().SerializeToString(), [tensor.name for tensor in outputs], feeds))
    with tempfile.NamedTemporaryFile() as file:
        file.write(pickle.dumps(rows))
        file.flush()
        made, failed = tensorflow_process.run(RECORD, file.name)
    known.update(made)
    lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known) if name in cases]
    if failed:
        print("TensorFlow refuses:", ", ".join(failed))
    RECORDED_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
