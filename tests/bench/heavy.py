"""numpy's kernels beside oneDNN's: `python -m tests.bench.heavy [--threads N] [--rounds N]`.

Convolutions, poolings and their gradients, and whole training steps of the convnet, in this process, in turn round
after round. Prints the least time of each, in ms: on one thread that of the processor, which a loaded machine
lengthens little; on several the clock's.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

CONVOLUTIONS = [  # images, filters, stride
    ((64, 28, 28, 1), (5, 5, 1, 16), 1),
    ((64, 14, 14, 16), (5, 5, 16, 32), 1),
    ((16, 56, 56, 64), (3, 3, 64, 64), 1),
    ((16, 112, 112, 3), (7, 7, 3, 64), 2),
    ((32, 28, 28, 32), (3, 3, 32, 64), 2),
    ((64, 7, 7, 256), (1, 1, 256, 256), 1),
    ((1, 8, 8, 4), (3, 3, 4, 4), 1),
]
DEPTHWISE = [((16, 28, 28, 64), (3, 3, 64, 1), 1)]
POOLINGS = [((64, 28, 28, 16), 2, 2), ((64, 14, 14, 32), 2, 2), ((16, 56, 56, 64), 3, 2), ((1, 8, 8, 4), 2, 2)]
WAYS = ("numpy", "onednn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # before numpy reads it
    clock = time.thread_time if arguments.threads == 1 else time.perf_counter
    print(f"| {arguments.threads} thread(s) | numpy | oneDNN | faster by |\n|---|---|---|---|")
    for name, make in [*_convolutions(), *_poolings(), ("training step of the convnet", _training_step)]:
        functions = {way: _made(make, way) for way in WAYS}
        least = dict.fromkeys(WAYS, float("inf"))
        for function in functions.values():
            function()
        for _ in range(arguments.rounds):
            for way, function in functions.items():
                began = time.perf_counter()
                while time.perf_counter() - began < 0.05:
                    start = clock()
                    function()
                    least[way] = min(least[way], clock() - start)
        numpys, onednns = (least[way] * 1000 for way in WAYS)
        print(f"| {name} | {numpys:.3g} | {onednns:.3g} | {numpys / onednns:.2f}x |", flush=True)


def _made(make: Callable[[], Callable[[], Any]], way: str) -> Callable[[], Any]:
    from dtf.run.lib import onednn

    os.environ[onednn.SWITCH] = way
    assert onednn.is_there() == (way == "onednn"), "pip install onednn-cpu-gomp"
    return make()


def _function(op: str, **attrs: Any) -> Callable[..., Any]:
    """What a step runs for a node of these attributes."""
    from dtf.run import kernels
    from dtf.wire import opdef

    defaults = {attr.name: attr.default for attr in opdef.get(op).attrs if attr.has_default}
    node = kernels.KernelNode("bench", op, "", {**defaults, "padding": b"SAME", "T": 1, **attrs}, 1, {})
    return kernels.bind(node)[1]


def _convolutions() -> Any:
    import numpy as np

    random = np.random.default_rng(0)
    for kind, shapes in (("Conv2D", CONVOLUTIONS), ("DepthwiseConv2dNative", DEPTHWISE)):
        for images, filters, stride in shapes:
            depth = filters[3] if kind == "Conv2D" else filters[2] * filters[3]
            outputs = (images[0], -(-images[1] // stride), -(-images[2] // stride), depth)
            x, w, g = (random.standard_normal(shape, np.float32) for shape in (images, filters, outputs))
            for suffix, inputs in (
                ("", (x, w)),
                ("BackpropInput", (np.array(images, np.int32), w, g)),
                ("BackpropFilter", (x, np.array(filters, np.int32), g)),
            ):

                def make(op=kind + suffix, strides=(1, stride, stride, 1), inputs=inputs):
                    function = _function(op, strides=strides)
                    return lambda: function(*inputs)

                yield f"{kind}{suffix} {_text(images)}, {_text(filters)}, /{stride}", make


def _poolings() -> Any:
    import numpy as np

    random = np.random.default_rng(0)
    for images, size, stride in POOLINGS:
        x = random.standard_normal(images, np.float32)
        attrs = {"ksize": [1, size, size, 1], "strides": [1, stride, stride, 1]}
        y = _function("MaxPool", **attrs)(x)
        shape = np.array(images, np.int32)
        inputs_of = {"MaxPool": (x,), "MaxPoolGrad": (x, y, y), "AvgPool": (x,), "AvgPoolGrad": (shape, y)}
        for op, inputs in inputs_of.items():

            def make(op=op, attrs=attrs, inputs=inputs):
                function = _function(op, **attrs)
                return lambda: function(*inputs)

            yield f"{op} {_text(images)}, {size}x{size}, /{stride}", make


def _training_step() -> Callable[[], Any]:
    import numpy as np

    import dtf as tf
    from tests.bench.programs import convnet

    graph = tf.Graph()
    with graph.as_default():
        loss, feed, optimizer = convnet(tf, np.random.RandomState(0))
        train = optimizer.minimize(loss)
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())
    session.run(train, feed)
    return lambda: session.run(train, feed)


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


if __name__ == "__main__":
    main()
