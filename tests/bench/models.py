"""Training steps of five models in one process, on dtf and on TensorFlow in turn: CPU time, where arithmetic counts.

    python -m tests.bench.models [--threads N] [--rounds N] [MODEL ...]

`DTF_TENSORFLOW_PYTHON` names a Python with TensorFlow; without it only dtf runs, with its default kernels and with
numpy's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_STEPS = {"mlp": 30, "deepnn": 5, "resnet": 3, "lstm": 5, "transformer": 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(_STEPS)}; all, if none is named")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("model, then for each side: the minimum and the median of CPU ms a step, and TensorFlow's minimum over it")
    for model in options.models or _STEPS:
        print(model, _compare(model, options.threads, options.rounds), flush=True)


def _compare(model: str, threads: int, rounds: int) -> str:
    sides = {"dtf": (sys.executable, "dtf", {}), "dtf with numpy": (sys.executable, "dtf", {"DTF_KERNELS": "numpy"})}
    if "DTF_TENSORFLOW_PYTHON" in os.environ:
        sides = {"TensorFlow": (os.environ["DTF_TENSORFLOW_PYTHON"], "tensorflow", {}), **sides}
    tasks = {name: _start(*side, model, threads) for name, side in sides.items()}
    times: dict[str, list[list[float]]] = {name: [] for name in tasks}
    for turn in range(rounds + 1):  # the first one warms up
        for name, task in tasks.items():
            assert task.stdin is not None and task.stdout is not None
            task.stdin.write(f"{_STEPS[model]}\n")
            task.stdin.flush()
            line = task.stdout.readline()
            if not line:
                raise SystemExit(f"{name} ended while it ran {model}")
            if turn:
                times[name].append([float(word) for word in line.split()])
    for task in tasks.values():
        task.communicate()
    least = {name: min(low for low, _ in turns) for name, turns in times.items()}
    middle = {name: statistics.median(mid for _, mid in turns) for name, turns in times.items()}
    parts = [f"{name} {least[name]:.2f}, {middle[name]:.2f}" for name in times]
    if "TensorFlow" in least:
        parts = [f"{part} ({least['TensorFlow'] / low:.2f}x)" for part, low in zip(parts, least.values(), strict=True)]
    return "; ".join(parts)


def _start(python: str, library: str, more: dict[str, str], model: str, threads: int) -> subprocess.Popen[str]:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    limits = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    command = [python, str(Path(__file__).resolve()), "--serve", library, model, str(threads)]
    environment = {**os.environ, **quiet, **limits, **more}
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=none)


def _serve(library: str, model: str, threads: int) -> None:
    """For each number on stdin, runs so many steps and prints their minimum and median in CPU ms."""
    if library == "tensorflow":
        import tensorflow.compat.v1 as tf  # type: ignore[import-not-found]

        tf.disable_eager_execution()
        tf.disable_resource_variables()
    else:
        import dtf as tf
    loss, feed = Models(tf).by_name[model]()
    train = tf.train.AdamOptimizer(1e-3).minimize(loss)
    config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        for line in sys.stdin:
            times = []
            for _ in range(int(line)):
                started = time.process_time()
                session.run(train, feed)
                times.append((time.process_time() - started) * 1e3)
            print(min(times), statistics.median(times), flush=True)


class Models:
    """The models in the words of either library: each gives its loss and what to feed."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._random = np.random.RandomState(0)
        self.by_name: dict[str, Callable[[], tuple[Any, dict[Any, Any]]]] = {
            "mlp": self.mlp, "deepnn": self.deepnn, "resnet": self.resnet, "lstm": self.lstm,
            "transformer": self.transformer,
        }  # fmt: skip

    def mlp(self) -> tuple[Any, dict[Any, Any]]:
        """784-512-512-10, batch 64."""
        tf = self._tf
        images, labels = self._inputs([64, 784], 10)
        net = images[0]
        for number, width in enumerate((512, 512)):
            net = tf.nn.relu(self._dense(net, width, f"d{number}"))
        return self._loss(self._dense(net, 10, "out"), labels), dict([images, labels])

    def deepnn(self) -> tuple[Any, dict[Any, Any]]:
        """28x28, 5x5 convolutions of 32 and 64, dense 1024, batch 50."""
        tf = self._tf
        images, labels = self._inputs([50, 28, 28, 1], 10)
        net = images[0]
        for number, depth in enumerate((32, 64)):
            filters = self._weights(f"c{number}", [5, 5, int(net.shape[-1]), depth])
            net = tf.nn.conv2d(net, filters, [1, 1, 1, 1], "SAME") + self._weights(f"cb{number}", [depth])
            net = tf.nn.max_pool(tf.nn.relu(net), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        net = tf.nn.relu(self._dense(tf.reshape(net, [50, 7 * 7 * 64]), 1024, "d"))
        net = tf.nn.dropout(net, rate=0.5, seed=1)
        return self._loss(self._dense(net, 10, "out"), labels), dict([images, labels])

    def resnet(self) -> tuple[Any, dict[Any, Any]]:
        """ResNet-20 on 32x32, batch 32."""
        tf = self._tf
        images, labels = self._inputs([32, 32, 32, 3], 10)
        names = iter(range(1000))

        def convolved(net: Any, size: int, depth: int, stride: int = 1) -> Any:
            filters = self._weights(f"c{next(names)}", [size, size, int(net.shape[-1]), depth])
            return tf.nn.conv2d(net, filters, [1, stride, stride, 1], "SAME")

        def normalized(net: Any) -> Any:
            scale, shift = (self._weights(f"{kind}{next(names)}", [int(net.shape[-1])]) for kind in ("scale", "shift"))
            return tf.nn.fused_batch_norm(net, scale, shift, epsilon=1e-3)[0]

        net = tf.nn.relu(normalized(convolved(images[0], 3, 16)))
        for depth in (16, 32, 64):
            for block in range(3):
                stride = 2 if depth > 16 and block == 0 else 1
                beside = convolved(net, 1, depth, 2) if stride == 2 else net
                inner = tf.nn.relu(normalized(convolved(net, 3, depth, stride)))
                net = tf.nn.relu(normalized(convolved(inner, 3, depth)) + beside)
        return self._loss(self._dense(tf.reduce_mean(net, [1, 2]), 10, "out"), labels), dict([images, labels])

    def lstm(self) -> tuple[Any, dict[Any, Any]]:
        """256 units over 32 steps, batch 32, vocabulary 2,000."""
        tf = self._tf
        words, labels = self._ids([32, 32], 2000), self._ids([32, 32], 2000)
        embedded = tf.nn.embedding_lookup(self._weights("words", [2000, 256]), words[0])
        cell = hidden = tf.zeros([32, 256])
        kernel, bias = self._weights("kernel", [512, 1024]), self._weights("bias", [1024])
        outputs = []
        for each in tf.unstack(embedded, axis=1):
            gates = tf.nn.bias_add(tf.matmul(tf.concat([each, hidden], 1), kernel), bias)
            enter, new, forget, leave = tf.split(gates, 4, axis=1)
            cell = cell * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(new)
            hidden = tf.tanh(cell) * tf.sigmoid(leave)
            outputs.append(hidden)
        logits = self._dense(tf.reshape(tf.stack(outputs, 1), [32 * 32, 256]), 2000, "out")
        return self._loss(logits, (tf.reshape(labels[0], [-1]), None)), dict([words, labels])

    def transformer(self) -> tuple[Any, dict[Any, Any]]:
        """Two layers of 256 with four heads on 8 x 128 tokens."""
        tf = self._tf
        batch, length, width, heads = 8, 128, 256, 4
        words, labels = self._ids([batch, length], 1000), self._ids([batch, length], 1000)
        net = tf.nn.embedding_lookup(self._weights("words", [1000, width]), words[0])
        net = tf.reshape(net + self._weights("places", [length, width]), [batch * length, width])

        def normalized(net: Any, name: str) -> Any:
            mean, variance = tf.nn.moments(net, [-1], keep_dims=True)
            scale, shift = self._weights(f"{name}_scale", [width]), self._weights(f"{name}_shift", [width])
            return (net - mean) * tf.rsqrt(variance + 1e-6) * scale + shift

        def split(net: Any) -> Any:
            return tf.transpose(tf.reshape(net, [batch, length, heads, width // heads]), [0, 2, 1, 3])

        for layer in range(2):
            inner = normalized(net, f"a{layer}")
            query, key, value = (split(self._dense(inner, width, f"{kind}{layer}")) for kind in "qkv")
            weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * (width // heads) ** -0.5)
            seen = tf.reshape(tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3]), [batch * length, width])
            net = net + self._dense(seen, width, f"o{layer}")
            inner = tf.nn.relu(self._dense(normalized(net, f"f{layer}"), 4 * width, f"up{layer}"))
            net = net + self._dense(inner, width, f"down{layer}")
        logits = self._dense(normalized(net, "z"), 1000, "out")
        return self._loss(logits, (tf.reshape(labels[0], [-1]), None)), dict([words, labels])

    def _inputs(self, shape: list[int], classes: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        images = self._tf.placeholder(self._tf.float32, shape)
        return (images, self._random.standard_normal(shape).astype("f")), self._ids(shape[:1], classes)

    def _ids(self, shape: list[int], end: int) -> tuple[Any, Any]:
        return self._tf.placeholder(self._tf.int32, shape), self._random.randint(0, end, shape)

    def _weights(self, name: str, shape: list[int]) -> Any:
        deviation = (2 / np.prod(shape[:-1])) ** 0.5 if len(shape) > 1 else 0.1
        initializer = self._tf.truncated_normal_initializer(stddev=deviation, seed=1)
        return self._tf.get_variable(name, shape, initializer=initializer)

    def _dense(self, net: Any, width: int, name: str) -> Any:
        weights = self._weights(f"{name}_weights", [int(net.shape[-1]), width])
        return self._tf.nn.bias_add(self._tf.matmul(net, weights), self._weights(f"{name}_bias", [width]))

    def _loss(self, logits: Any, labels: tuple[Any, Any]) -> Any:
        tf = self._tf
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[0], logits=logits))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        _serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
