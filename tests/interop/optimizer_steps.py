"""A program of either runtime: twenty steps of every optimizer, dense and sparse, by reference and by handle.

    python optimizer_steps.py dtf|tensorflow.compat.v1 steps.npz

Writes the values of all variables after each few steps, and prints as JSON the names of the variables and of the ops
that `apply_gradients` adds.
"""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np

STEPS = 20
OPTIMIZERS = {
    "GradientDescent": lambda tf, step: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda tf, step: tf.train.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda tf, step: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda tf, step: tf.train.AdagradOptimizer(0.1),
    "AdagradDA": lambda tf, step: tf.train.AdagradDAOptimizer(0.1, step, l1_regularization_strength=0.01),
    "Adam": lambda tf, step: tf.train.AdamOptimizer(0.1),
    "RMSProp": lambda tf, step: tf.train.RMSPropOptimizer(0.1, momentum=0.5, epsilon=1e-6),
    "CenteredRMSProp": lambda tf, step: tf.train.RMSPropOptimizer(0.1, centered=True, epsilon=1e-4),
    "Ftrl": lambda tf, step: tf.train.FtrlOptimizer(
        0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02
    ),
    "FtrlPower": lambda tf, step: tf.train.FtrlOptimizer(0.1, learning_rate_power=-0.3),
    "FtrlShrinkage": lambda tf, step: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.05),
    "Adadelta": lambda tf, step: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-4),
    "ProximalGradientDescent": lambda tf, step: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02),
    "ProximalAdagrad": lambda tf, step: tf.train.ProximalAdagradOptimizer(
        0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02
    ),
}


def gradient_of(tf, variable, sparse: bool):
    """A gradient that changes with the step; the sparse one names a row twice."""
    if not sparse:
        return tf.sin(variable * 3.0) + 0.1
    rows = tf.constant([3, 0, 3, 1])
    return tf.IndexedSlices(tf.sin(tf.gather(variable, rows) * 3.0) + 0.1, rows, tf.constant([5, 3]))


def run_one(tf, kind: str, sparse: bool, use_resource: bool):
    """Returns (values by variable name and step, names of variables, names and types of the update ops)."""
    graph = tf.Graph()
    with graph.as_default():
        start = np.random.RandomState(1).uniform(-1, 1, [5, 3]).astype(np.float32)
        with tf.variable_scope("model", use_resource=use_resource):
            variable = tf.get_variable("w", initializer=start)
        step = tf.train.get_or_create_global_step()
        optimizer = OPTIMIZERS[kind](tf, step)
        gradient = gradient_of(tf, variable, sparse)
        before = set(graph.get_operations())
        train = optimizer.apply_gradients([(gradient, variable)], global_step=step)
        added = {op.name: op.type for op in graph.get_operations() if op not in before}
        variables = tf.global_variables()
        assert {each.name for each in optimizer.variables()} <= {each.name for each in variables}
        values = {}
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            for number in range(STEPS):
                session.run(train)
                if number in (0, 4, STEPS - 1):
                    for each in variables:
                        values[f"{each.op.name}@{number}"] = session.run(each)
        slots = {name: optimizer.get_slot(variable, name).op.name for name in optimizer.get_slot_names()}
    updates = {name: op_type for name, op_type in added.items() if "Apply" in op_type or "Scatter" in op_type}
    return values, {
        "variables": sorted(each.op.name for each in variables),
        "train_op": train.name,
        "slots": slots,
        "updates": updates,
    }


def main(runtime: str, path: str) -> None:
    tf = importlib.import_module(runtime)
    if runtime != "dtf":
        tf.disable_v2_behavior()
    arrays, names = {}, {}
    for kind in OPTIMIZERS:
        for sparse in (False, True):
            for use_resource in (False, True):
                key = f"{kind}-{'sparse' if sparse else 'dense'}-{'resource' if use_resource else 'reference'}"
                values, names[key] = run_one(tf, kind, sparse, use_resource)
                arrays.update({f"{key}|{name}": value for name, value in values.items()})
    np.savez(path, **arrays)
    print(json.dumps(names))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
