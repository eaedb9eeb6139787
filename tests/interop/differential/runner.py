"""Runs jobs under one runtime: `python runner.py dtf|tensorflow.compat.v1`, a script of both Pythons.

Owns one end of a pipe: a pickled job comes in, a pickled outcome goes out, in order, until the input ends. A job is a
dict, as `jobs` makes it; an outcome is a dict of

    values      one array per fetch, or absent after an error
    after       the same of what is fetched when the op has run: the variables that it changed
    gradients   one array (or None: not connected) per input that was asked for
    error       (phase "import" | "run" | "build gradients" | "run gradients", code, message)

Imports nothing of the project and nothing of TensorFlow by itself: the runtime's public API is all that it uses.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import warnings
import zlib

import numpy as np

INVALID_ARGUMENT = 3


def main(runtime: str) -> None:
    """Serves jobs from standard input to standard output; what the runtime prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # our neighbours' names are not modules of the runtime
    tf = importlib.import_module(runtime)
    if runtime != "dtf":
        tf.disable_v2_behavior()
        tf.logging.set_verbosity(tf.logging.FATAL)
    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            os._exit(0)
        pickle.dump(registered_kernels() if job == "kernels" else outcome(tf, job), answers)
        answers.flush()


def registered_kernels():
    """What TensorFlow's CPU kernels take: for each op one {attribute: [numbers of dtypes]} per kernel."""
    kernels = importlib.import_module("tensorflow.python.framework.kernels")
    table: dict[str, list[dict[str, list[int]]]] = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and not kernel.label:
            taken = {each.name: list(each.allowed_values.list.type) for each in kernel.constraint}
            table.setdefault(kernel.op, []).append(taken)
    return table


def outcome(tf, job):
    """Imports the graph, runs the op, and the gradients that this runtime's `tf.gradients` builds for it."""
    found = {}
    phase = "import"
    try:
        with tf.Graph().as_default() as graph:
            graph_def = tf.GraphDef()
            graph_def.ParseFromString(job["graph_def"])
            tf.import_graph_def(graph_def, name="")
            with tf.Session(config=_config(tf)) as session:
                phase = "run"
                for target in job["before"]:
                    session.run(target, job["feeds"])
                values = session.run([*job["fetches"], *job["targets"]], job["feeds"])
                found["values"] = _arrays(values[: len(job["fetches"])], job["dtypes"])
                found["after"] = [np.array(value) for value in session.run(job["after"])]
                if job["gradients"]:
                    phase = "build gradients"
                    made = _gradients(tf, graph, job, found["values"])
                    phase = "run gradients"
                    values = iter(session.run([grad for grad in made if grad is not None], job["feeds"]))
                    found["gradients"] = [None if grad is None else np.asarray(next(values)) for grad in made]
    except Exception as error:
        code = getattr(error, "error_code", None)
        if code is None and phase == "import" and isinstance(error, ValueError):
            code = INVALID_ARGUMENT  # a contract or a shape rule said no
        found["error"] = phase, type(error).__name__ if code is None else code, str(error)[:600]
    return found


def _config(tf):
    config = tf.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, operation_timeout_in_ms=20000
    )
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def _gradients(tf, graph, job, values):
    """The gradients of a weighted sum of the outputs; the weights are the same for both runtimes."""
    ys, weights = [], []
    for fetch, value in zip(job["fetches"], values, strict=True):
        if fetch in job["gradients"]["ys"]:
            ys.append(graph.get_tensor_by_name(fetch))
            random = np.random.RandomState(zlib.crc32(fetch.encode()))
            weight = random.uniform(0.5, 1.5, value.shape)
            if value.dtype.kind == "c":
                weight = weight + 1j * random.uniform(-0.5, 0.5, value.shape)
            weights.append(tf.constant(weight.astype(value.dtype)))
    xs = [graph.get_tensor_by_name(name) for name in job["gradients"]["xs"]]
    made = tf.gradients(ys, xs, weights)
    return [None if grad is None else tf.convert_to_tensor(grad) for grad in made]


def _arrays(values, dtypes):
    return [
        np.asarray(value, object) if dtype == "string" else np.asarray(value)
        for value, dtype in zip(values, dtypes, strict=True)
    ]


if __name__ == "__main__":
    main(sys.argv[1])
