"""Whole training programs for a cluster of one worker and two ps: each is a function of `tf` and a `Place`.

They use TensorFlow's names only, build in the default graph, and return {name: array-like}. All initial values and data
are numpy's and every order is fixed, so that each gives the same wherever its tasks run. `outcomes` runs them.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.interop import rewrites
from tests.interop.programs import classes, flattened, numbers, variable

Values = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a program runs. Attributes: target of the sessions, an empty folder, and a name for what is shared."""

    target: str
    folder: str
    container: str

    def session(self, tf):
        return tf.Session(self.target)


def trained(tf, place: Place, loss, train, feed: Callable[[int], dict], steps: int = 5) -> list[float]:
    """Initializes, and gives the losses before each of the steps.

    The loss is no part of the step that trains: nothing would order its reading of a variable and the update.
    """
    with place.session(tf) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        losses = []
        for step in range(steps):
            losses.append(session.run(loss, feed(step)))
            session.run(train, feed(step))
        return losses


def perceptron(optimizer: Callable[[Any], Any], use_resource: bool):
    def program(tf, place):
        x = tf.placeholder(tf.float32, [None, 6])
        y = tf.placeholder(tf.int64, [None])
        h = x
        with tf.variable_scope("layers", use_resource=use_resource):
            for number, (rows, columns) in enumerate([(6, 8), (8, 8), (8, 3)]):
                w = variable(tf, f"w{number}", rows, columns, seed=number)
                b = tf.get_variable(f"b{number}", [columns], initializer=tf.zeros_initializer())
                h = tf.matmul(h, w) + b
                h = tf.nn.relu(h) if columns == 8 else h
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=h))
        step = tf.train.get_or_create_global_step()
        train = optimizer(tf).minimize(loss, step)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(h, 1), y), tf.float32))
        feed = {x: numbers(3, 16, 6), y: classes(4, 16, 3)}
        with place.session(tf) as session:
            session.run(tf.global_variables_initializer())
            losses = []
            for _ in range(6):
                losses.append(session.run(loss, feed))
                session.run(train, feed)
            return {"losses": losses, "step": session.run(step), "accuracy": session.run(accuracy, feed)}

    return program


def convnet(tf, place):
    images = tf.placeholder(tf.float32, [None, 8, 8, 1])
    labels = tf.placeholder(tf.int64, [None])
    net = images
    for number, (depth, out) in enumerate([(1, 4), (4, 6)]):
        with tf.variable_scope(f"conv{number}"):
            kernel = variable(tf, "kernel", 3, 3, depth, out, seed=number)
            net = tf.nn.conv2d(net, kernel, [1, 1, 1, 1], "SAME")
            net = tf.nn.relu(tf.nn.bias_add(net, variable(tf, "bias", out, seed=number + 5)))
            net = tf.nn.max_pool(net, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    logits = tf.nn.xw_plus_b(tf.reshape(net, [-1, 24]), variable(tf, "w", 24, 3, seed=9), variable(tf, "b", 3, seed=8))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())
    feed = {images: numbers(5, 10, 8, 8, 1), labels: classes(6, 10, 3)}
    return {"losses": trained(tf, place, loss, train, lambda step: feed)}


def embedding(tf, place):
    """A partitioned table, one piece on each ps, with sparse gradients for Adagrad."""
    ids = tf.placeholder(tf.int64, [None])
    target = tf.placeholder(tf.float32, [None, 3])
    with tf.variable_scope("e", partitioner=tf.fixed_size_partitioner(2)):
        table = tf.get_variable(
            "table",
            [10, 3],
            initializer=lambda shape, dtype=None, partition_info=None: tf.constant(
                numbers(partition_info.var_offset[0], *[int(size) for size in shape])
            ),
        )
    rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
    loss = tf.reduce_sum(tf.squared_difference(rows, target))
    train = tf.train.AdagradOptimizer(0.5).minimize(loss, tf.train.get_or_create_global_step())
    return {
        "losses": trained(
            tf, place, loss, train, lambda step: {ids: classes(step, 6, 10), target: numbers(step, 6, 3)}
        ),
        "devices": np.array([piece.device for piece in table]),
    }


def sparse_inputs(tf, place):
    """SparseTensors are fed: a bag of words, and a sparse matrix."""
    words = tf.sparse_placeholder(tf.int64)
    weights = tf.sparse_placeholder(tf.float32)
    table = variable(tf, "table", 7, 3, seed=1)
    w = variable(tf, "w", 9, 3, seed=2)
    bags = tf.nn.embedding_lookup_sparse(table, words, None, combiner="sqrtn")
    out = bags + tf.sparse_tensor_dense_matmul(weights, w)
    loss = tf.reduce_sum(tf.square(out - 0.5))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    indices = np.array([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [2, 2]], np.int64)
    feed = {
        words: tf.SparseTensorValue(indices, np.array([1, 2, 2, 6, 0, 5], np.int64), [3, 3]),
        weights: tf.SparseTensorValue(indices * [1, 4], numbers(3, 6), [3, 9]),
    }
    return {"losses": trained(tf, place, loss, train, lambda step: feed)}


def lstm(tf, place):
    """A long short-term memory unrolled by while_loop with TensorArrays, and its gradient."""
    inputs = tf.placeholder(tf.float32, [6, 4, 3])
    kernel = variable(tf, "kernel", 3 + 5, 4 * 5, seed=1)
    bias = variable(tf, "bias", 4 * 5, seed=2)
    source = tf.TensorArray(tf.float32, 6).unstack(inputs)

    def body(t, c, h, out):
        i, j, f, o = tf.split(tf.nn.xw_plus_b(tf.concat([source.read(t), h], 1), kernel, bias), 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return t + 1, c, h, out.write(t, h)

    start = [0, tf.zeros([4, 5]), tf.zeros([4, 5]), tf.TensorArray(tf.float32, 6)]
    _, _, last, out = tf.while_loop(lambda t, *_: t < 6, body, start)
    loss = tf.reduce_mean(tf.square(out.stack() - 0.3)) + tf.reduce_mean(tf.square(last))
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, [kernel, bias]), 0.5)
    optimizer = tf.train.MomentumOptimizer(0.5, 0.9)
    train = optimizer.apply_gradients(zip(gradients, [kernel, bias], strict=True))
    feed = {inputs: numbers(3, 6, 4, 3)}
    return {"losses": trained(tf, place, [loss, norm], train, lambda step: feed)}


def batch_normalized(use_resource: bool):
    def program(tf, place):
        x = tf.placeholder(tf.float32, [None, 5, 5, 3])
        training = tf.placeholder(tf.bool, [])
        with tf.variable_scope("bn", use_resource=use_resource):
            gamma = tf.get_variable("gamma", [3], initializer=tf.ones_initializer())
            beta = variable(tf, "beta", 3)
            mean = tf.get_variable("mean", [3], initializer=tf.zeros_initializer(), trainable=False)
            variance = tf.get_variable("variance", [3], initializer=tf.ones_initializer(), trainable=False)

        def batch():
            out, found, spread = tf.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3)
            return out, found, spread

        def moving():
            out, _, _ = tf.nn.fused_batch_norm(x, gamma, beta, mean, variance, epsilon=1e-3, is_training=False)
            return out, tf.identity(mean), tf.identity(variance)

        out, found, spread = tf.cond(training, batch, moving)
        for old, new in ((mean, found), (variance, spread)):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(old, (old - new) * 0.1))
        loss = tf.reduce_mean(tf.square(out - 1.0))
        step = tf.train.get_or_create_global_step()
        averages = tf.train.ExponentialMovingAverage(0.7)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.RMSPropOptimizer(0.05).minimize(loss, step)
        average = averages.apply([gamma, beta])
        data = [numbers(number, 4, 5, 5, 3) for number in range(5)]
        with place.session(tf) as session:
            session.run(tf.global_variables_initializer())
            losses = []
            for each in data:
                losses.append(session.run(loss, {x: each, training: True}))
                session.run(train, {x: each, training: True})
                session.run(average)
            kept = [mean, variance, averages.average(gamma), averages.average(beta)]
            used = session.run(loss, {x: data[0], training: False})
            return {"losses": losses, "used": used, "kept": session.run(kept)}

    return program


def guarded(tf, place):
    """Updates under cond, of both kinds of variables; a step of infinite loss is skipped and counted."""
    value = tf.placeholder(tf.float32, [3])
    w = variable(tf, "w", 3)
    r = tf.get_variable("r", initializer=tf.constant(numbers(7, 3)), use_resource=True)
    skipped = tf.get_variable("skipped", [], tf.int32, initializer=tf.zeros_initializer(), trainable=False)
    loss = tf.reduce_sum(tf.square(w - value) + tf.square(r * value))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss)

    def update():
        return tf.group(*[tf.assign_sub(held, 0.1 * grad) for grad, held in pairs])

    train = tf.cond(tf.is_finite(loss), update, lambda: tf.group(tf.assign_add(skipped, 1)))
    branch = tf.case([(loss > 4.0, lambda: loss * 2.0), (loss > 2.0, lambda: loss)], default=lambda: -loss)
    (through,) = tf.gradients(branch, value)
    with place.session(tf) as session:
        session.run(tf.global_variables_initializer())
        out = []
        for number in range(6):
            fed = numbers(number, 3) if number != 3 else np.array([np.inf, 0, 0], np.float32)
            out.append(session.run([loss, branch, through], {value: fed}))
            session.run(train, {value: fed})
        return {"out": [np.nan_to_num(np.hstack(each)) for each in out], "kept": session.run([w, r, skipped])}


def queues(tf, place):
    """A queue on a ps is filled by a queue runner and drained by the worker."""
    with tf.device("/job:ps/task:1"):
        queue = tf.FIFOQueue(5, [tf.int64, tf.float32], [[], [2]], shared_name=f"queue{place.container}")
    counter = tf.get_variable("counter", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
    number = tf.count_up_to(counter, 11)
    values = tf.stack([tf.cast(number, tf.float32), 1.0])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([number, values])]))
    ids, batch = queue.dequeue_up_to(4)
    total = variable(tf, "total", 2)
    train = tf.assign_add(total, tf.reduce_sum(batch, 0))
    with place.session(tf) as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        seen = []
        try:
            while True:
                seen.extend(session.run([ids, train])[0])
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
        return {"seen": np.array(seen), "total": session.run(total)}


def accumulators(tf, place):
    """Gradients gathered on the ps, one of them stale, dense and sparse."""
    step = tf.placeholder(tf.int64, [])
    dense_grad = tf.placeholder(tf.float32, [2])
    with tf.device("/job:ps/task:0"):
        dense = tf.ConditionalAccumulator(tf.float32, [2], shared_name=f"dense{place.container}")
        taken = dense.take_grad(2)
        count = dense.num_accumulated()
    with tf.device("/job:ps/task:1"):
        sparse = tf.SparseConditionalAccumulator(
            tf.float32, [5, 1], shared_name=f"sparse{place.container}", reduction_type="SUM"
        )
        rows = sparse.take_indexed_slices_grad(2)
    apply_dense = dense.apply_grad(dense_grad, step)
    apply_sparse = [
        sparse.apply_indexed_slices_grad(tf.IndexedSlices(tf.constant(numbers(each, 2, 1)), [each, each + 1], [5, 1]))
        for each in range(2)
    ]
    with place.session(tf) as session:
        session.run(dense.set_global_step(1))
        for at, value in ((0, [8.0, 8.0]), (1, [1.0, 2.0]), (2, [2.0, 3.0])):
            session.run(apply_dense, {step: at, dense_grad: value})
        counted = session.run(count)
        session.run(apply_sparse)
        return {"counted": counted, "dense": session.run(taken), "sparse": session.run([rows.indices, rows.values])}


def summaries(tf, place):
    w = variable(tf, "w", 4, 2)
    x = tf.placeholder(tf.float32, [None, 4])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    tf.summary.scalar("loss", loss)
    tf.summary.histogram("w", w)
    merged = tf.summary.merge_all()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with place.session(tf) as session:
        session.run(tf.global_variables_initializer())
        texts = []
        for number in range(3):
            texts.append(session.run(merged, {x: numbers(number, 5, 4)}))
            session.run(train, {x: numbers(number, 5, 4)})
    found = [tf.Summary.FromString(text).value for text in texts]
    histograms = [value.histo for values in found for value in values if value.HasField("histo")]
    return {
        "tags": np.array([value.tag for value in found[0]]),
        "losses": [value.simple_value for values in found for value in values if value.tag == "loss"],
        "histograms": [[histo.min, histo.max, histo.num, histo.sum, histo.sum_squares] for histo in histograms],
        "buckets": [list(histo.bucket) for histo in histograms],
    }


def supervised(tf, place):
    """The chief of the first releases' way; then a worker that finds the model ready."""
    w = variable(tf, "w", 4)
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_sum(tf.square(w - 3.0))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    losses = []
    for is_chief in (True, False):
        supervisor = tf.train.Supervisor(
            is_chief=is_chief, logdir=place.folder, save_model_secs=0, save_summaries_secs=0, recovery_wait_secs=1
        )
        with supervisor.managed_session(place.target) as session:
            while not supervisor.should_stop():
                losses.append(session.run(loss))
                if session.run([train, step])[1] and len(losses) % 4 == 0:
                    supervisor.request_stop()
    return {"losses": losses}


def monitored(tf, place):
    """Two sessions with hooks, the second of which goes on from the first one's checkpoint."""
    seen = []

    class Hook(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            seen.append(int(session.run(step)))

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(step)

        def end(self, session):
            seen.append(int(session.run(step)))

    with tf.variable_scope("model", partitioner=tf.fixed_size_partitioner(2)):
        w = tf.get_variable("w", [4, 2], initializer=tf.ones_initializer())
    whole = tf.convert_to_tensor(w)
    r = tf.get_variable("r", initializer=tf.constant(numbers(3, 2)), use_resource=True)
    x = tf.placeholder(tf.float32, [None, 4])
    loss = tf.reduce_sum(tf.square(tf.matmul(x, whole) - r))
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.1).minimize(loss, step)
    tf.summary.scalar("loss", loss)
    feed = {x: numbers(2, 5, 4)}
    losses = []
    for last in (4, 7):
        with tf.train.MonitoredTrainingSession(
            place.target,
            checkpoint_dir=place.folder,
            hooks=[tf.train.StopAtStepHook(last_step=last), Hook(), tf.train.NanTensorHook(loss)],
            scaffold=tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=1, sharded=True)),
            save_checkpoint_steps=2,
            save_summaries_steps=2,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                losses.append(session.run_step_fn(lambda step_context: step_context.session.run(loss, feed)))
                session.run(train, feed)
    reader = tf.train.load_checkpoint(place.folder)
    return {
        "losses": losses,
        "seen": np.array(seen),
        "latest": np.array(os.path.basename(tf.train.latest_checkpoint(place.folder))),
        "saved": [reader.get_tensor("model/w"), reader.get_tensor("r")],
        "names": np.array(sorted(reader.get_variable_to_shape_map())),
    }


def strings(tf, place):
    """Strings and integers cross from task to task."""
    words = tf.placeholder(tf.string, [None])
    with tf.device("/job:ps/task:0"):
        joined = tf.string_join([words, tf.as_string(tf.strings.length(words))], "/")
        kept = tf.Variable([b"first", b"second"], name="kept")
    with tf.device("/job:ps/task:1"):
        buckets = tf.string_to_hash_bucket_fast(joined, 100)
        parts = tf.string_split(joined, "/")
    with tf.device("/job:worker/task:0"):
        changed = tf.assign(kept, joined)
    with place.session(tf) as session:
        session.run(kept.initializer)
        feed = {words: ["some", "\xe4hnlich"]}
        values = session.run({"buckets": buckets, "parts": parts.values, "indices": parts.indices}, feed)
        values["before"] = session.run(kept)
        session.run(changed, feed)
        values["after"] = session.run(kept)
    return {name: each.astype("S") if each.dtype == object else each for name, each in values.items()}


def rewritten(tf, place):
    """What the optimizer of TensorFlow's master rewrites; see `rewrites`."""
    with tf.device("/job:ps/task:0"):
        model = rewrites.Model(tf)
        outs = {name: rewrite.build(model) for name, rewrite in rewrites.REWRITES.items()}
    with place.session(tf) as session:
        session.run(tf.global_variables_initializer())
        return {name: session.run(out, model.feed) for name, out in outs.items()}


def input_producers(tf, place):
    """The old input pipelines, which only TensorFlow's client has: files, batches, shuffled batches, slices."""
    names = []
    for number in range(2):
        names.append(os.path.join(place.folder, f"part{number}.csv"))
        with open(names[-1], "w") as file:
            file.writelines(f"{number * 4 + row},{row}.5\n" for row in range(4))
    with tf.device("/job:worker/task:0"):
        producer = tf.train.string_input_producer(names, num_epochs=2, shuffle=False)
        lines = tf.string_split([tf.read_file(producer.dequeue())], "\n").values
        read = tf.decode_csv(lines, [[0], [0.0]])
        integers, values = tf.train.batch(read, 3, enqueue_many=True, allow_smaller_final_batch=True)
        shuffled = tf.train.shuffle_batch([tf.constant(7)], 2, capacity=8, min_after_dequeue=2)
        sliced = tf.train.slice_input_producer([tf.constant([5, 6, 7])], shuffle=False)[0]
        floats = tf.cast(integers, tf.float32)
    seen = []
    with place.session(tf) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        more = session.run([shuffled, sliced])
        try:
            while True:
                seen.append(np.stack(session.run([floats, values])))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return {"seen": seen, "more": more}


def dynamic_rnn(tf, place):
    """A loop of a cell over sequences of different lengths."""

    class Cell:
        state_size = 4
        output_size = 4
        kernel = variable(tf, "kernel", 7, 4)
        dtype = tf.float32

        def __call__(self, inputs, state, scope=None):
            out = tf.tanh(tf.matmul(tf.concat([inputs, state], 1), self.kernel))
            return out, out

        def zero_state(self, batch_size, dtype):
            return tf.zeros([batch_size, 4], dtype)

    inputs = tf.placeholder(tf.float32, [3, 5, 3])
    out, state = tf.nn.dynamic_rnn(Cell(), inputs, sequence_length=[5, 2, 4], dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(out - 0.1)) + tf.reduce_sum(state)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return {"losses": trained(tf, place, loss, train, lambda step: {inputs: numbers(3, 3, 5, 3)})}


PROGRAMS: dict[str, Callable[[Any, Place], Values]] = {
    "perceptron_momentum": perceptron(lambda tf: tf.train.MomentumOptimizer(0.2, 0.9), False),
    "resource_perceptron_adam": perceptron(lambda tf: tf.train.AdamOptimizer(0.05), True),
    "batch_normalized": batch_normalized(False),
    "resource_batch_normalized": batch_normalized(True),
    **{
        program.__name__: program
        for program in (
            convnet, embedding, sparse_inputs, lstm, dynamic_rnn, guarded, queues, accumulators, summaries, monitored,
            supervised, strings, rewritten,
        )
    },
}  # fmt: skip
"""For both clients."""

OF_TENSORFLOWS_CLIENT: dict[str, Callable[[Any, Place], Values]] = {
    program.__name__: program for program in (input_producers,)
}
"""These use names that dtf does not have."""


def outcomes(tf: Any, target: str, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The values of these programs at a cluster with the tasks worker 0, ps 0 and ps 1, as `program/value`."""
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default() as graph:
            setter = tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")
            # What one program leaves behind is not the next one's.
            container = "".join(filter(str.isalnum, folder))
            with graph.container(container), tf.device(setter):
                values = {**PROGRAMS, **OF_TENSORFLOWS_CLIENT}[name](tf, Place(target, folder, container))
        found |= {f"{name}/{key}": np.asarray(value) for key, value in flattened(values)}
    return found
