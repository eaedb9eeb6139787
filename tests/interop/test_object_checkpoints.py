"""Checkpoints of objects are read by TensorFlow, and TensorFlow's by us."""

from __future__ import annotations

import numpy as np

import dtf
from tests.interop.tensorflow_process import needs_tensorflow, run

pytestmark = needs_tensorflow

PROGRAM = """
import os
def trained(tf):
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    w = tf.get_variable("w", initializer=[[3.0]], use_resource=True)
    optimizer = tf.train.AdamOptimizer(0.1)
    step = optimizer.minimize(tf.reduce_sum(v * v) + tf.reduce_sum(w * w))
    inner = tf.train.Checkpoint(weights=[v, w])
    return tf.train.Checkpoint(inner=inner, optimizer=optimizer, v=v), step, v
"""
namespace: dict = {}
exec(PROGRAM, namespace)

THEIRS = """
checkpoint, step, v = trained(tf)
with tf.Session() as session:
    if sys.argv[1] == "save":
        session.run(tf.global_variables_initializer())
        session.run(step); session.run(step)
        path = checkpoint.save(sys.argv[2], session)
        print(json.dumps([path, session.run(v).tolist()]))
    else:
        status = checkpoint.restore(sys.argv[2])
        status.assert_consumed().initialize_or_restore(session)
        first = session.run(v).tolist(); session.run(step)
        print(json.dumps([first, session.run(v).tolist(), int(session.run(checkpoint.save_counter))]))
"""


def test_object_checkpoints_go_both_ways(tmp_path):
    with dtf.Graph().as_default(), dtf.Session() as session:
        checkpoint, step, v = namespace["trained"](dtf)
        session.run(dtf.global_variables_initializer())
        session.run(step)
        ours = checkpoint.save(str(tmp_path / "ours" / "ckpt"), session)
        value = session.run(v)
        session.run(step)
        expected = session.run(v)
        first, second, count = run(PROGRAM + THEIRS, "restore", ours)
        np.testing.assert_allclose([first, second], [value, expected], rtol=1e-6)
        assert count == 1
        path, theirs = run(PROGRAM + THEIRS, "save", str(tmp_path / "theirs" / "ckpt"))
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)
        np.testing.assert_array_equal(session.run(v), np.float32(theirs))
        names = dict(dtf.train.list_variables(path))
        assert dict(dtf.train.list_variables(ours)).keys() == names.keys()
