"""Training programs with TensorFlow's names only: each is a function of the module `tf` and of an empty folder.

It builds in the default graph, runs it, and returns what came of it: {name: array-like}. All initial values and data
are numpy's, so that both runtimes must give the same.

    python programs.py tensorflow.compat.v1 values.npz

writes the values as `program/name`, and prints one line of JSON for each program: the names of its graph.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

Values = dict[str, Any]


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def classes(seed: int, count: int, below: int) -> np.ndarray:
    return np.random.RandomState(seed).randint(0, below, count)


def variable(tf, name: str, *shape: int, seed: int = 1, **options):
    return tf.get_variable(name, initializer=tf.constant(numbers(seed, *shape)), **options)


def repeated(session, steps: int, fetches, feed=None) -> list[Any]:
    return [session.run(fetches, feed(step) if feed else None) for step in range(steps)]


def softmax_regression(tf, folder):
    x = tf.placeholder(tf.float32, [None, 5])
    y = tf.placeholder(tf.int64, [None])
    w = tf.Variable(tf.zeros([5, 3]), name="weights")
    b = tf.Variable(tf.zeros([3]), name="biases")
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    correct = tf.equal(tf.argmax(logits, 1), y)
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    data = {x: numbers(0, 20, 5), y: classes(1, 20, 3)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, train], data)[0] for _ in range(10)]
        top = session.run(tf.nn.top_k(logits, 2), data)
        return {"losses": losses, "accuracy": accuracy.eval(data), "w": w.eval(), "top": top.values}


OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "sgd": lambda tf, rate: tf.train.GradientDescentOptimizer(rate),
    "momentum": lambda tf, rate: tf.train.MomentumOptimizer(rate, 0.9),
    "nesterov": lambda tf, rate: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
    "adagrad": lambda tf, rate: tf.train.AdagradOptimizer(rate),
    "adam": lambda tf, rate: tf.train.AdamOptimizer(rate),
    "rmsprop": lambda tf, rate: tf.train.RMSPropOptimizer(rate, momentum=0.5),
    "centered_rmsprop": lambda tf, rate: tf.train.RMSPropOptimizer(rate, centered=True),
    "ftrl": lambda tf, rate: tf.train.FtrlOptimizer(rate, l1_regularization_strength=0.01),
    "adadelta": lambda tf, rate: tf.train.AdadeltaOptimizer(rate * 10),
}


def perceptron(optimizer: str, use_resource: bool):
    def program(tf, folder):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        y = tf.placeholder(tf.float32, [None, 1], name="y")
        with tf.variable_scope("model", use_resource=use_resource):
            h = x
            for number, (rows, columns) in enumerate([(4, 6), (6, 3)]):
                with tf.variable_scope(f"layer{number}"):
                    w = variable(tf, "w", rows, columns, seed=number)
                    b = tf.get_variable("b", [columns], initializer=tf.zeros_initializer())
                    h = tf.nn.relu(tf.nn.xw_plus_b(h, w, b))
            out = tf.matmul(h, variable(tf, "out", 3, 1, seed=9))
        loss = tf.losses.mean_squared_error(y, out)
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.05, step, 3, 0.5, staircase=True)
        chosen = OPTIMIZERS[optimizer](tf, rate)
        train = chosen.minimize(loss, global_step=step)
        averages = tf.train.ExponentialMovingAverage(0.9, step)
        average = averages.apply(tf.trainable_variables())
        feed = {x: numbers(3, 16, 4), y: numbers(4, 16, 1)}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            losses = []
            for _ in range(8):
                losses.append(session.run([loss, rate], feed))
                session.run(train, feed)
                session.run(average)
            return {
                "losses": losses,
                "w": session.run(w),
                "average": session.run(averages.average(w)),
                "slots": np.array(sorted(v.op.name for v in chosen.variables())),
                "slot_names": np.array(chosen.get_slot_names()),
                "restored": np.array(sorted(averages.variables_to_restore())),
            }

    return program


def convnet(tf, folder):
    images = tf.placeholder(tf.float32, [None, 8, 8, 1])
    labels = tf.placeholder(tf.int32, [None])
    training = tf.placeholder_with_default(False, [])
    keep = tf.placeholder_with_default(1.0, [])
    step = tf.train.create_global_step()

    def normalized(x, momentum=0.8):
        with tf.variable_scope("batch_normalization"):
            shape = [x.shape[-1].value]
            gamma = tf.get_variable("gamma", shape, initializer=tf.ones_initializer())
            beta = tf.get_variable("beta", shape, initializer=tf.zeros_initializer())
            moving = [
                tf.get_variable(name, shape, initializer=initializer, trainable=False)
                for name, initializer in (
                    ("moving_mean", tf.zeros_initializer()),
                    ("moving_variance", tf.ones_initializer()),
                )
            ]
            found, mean, variance = tf.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3)
            for old, new in zip(moving, (mean, variance), strict=True):
                tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(old, (old - new) * (1 - momentum)))
            return tf.cond(training, lambda: found, lambda: tf.nn.batch_normalization(x, *moving, beta, gamma, 1e-3))

    net = tf.nn.conv2d(images, variable(tf, "first", 3, 3, 1, 4), [1, 1, 1, 1], "SAME")
    net = tf.nn.relu(tf.nn.bias_add(net, variable(tf, "bias", 4, seed=7)))
    net = tf.nn.max_pool(net, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    net = tf.nn.lrn(net, 2, bias=1.0, alpha=0.01, beta=0.75)
    net = tf.nn.conv2d(net, variable(tf, "second", 3, 3, 4, 5, seed=2), [1, 1, 1, 1], "VALID")
    net = tf.nn.relu(normalized(net))
    net = tf.nn.dropout(tf.reshape(net, [-1, 20]), keep_prob=keep)
    w = variable(tf, "logits", 20, 3, seed=3)
    logits = tf.matmul(net, w)
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, 0.01 * tf.nn.l2_loss(w))
    loss = tf.losses.get_total_loss()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, step)
    data = {images: numbers(5, 12, 8, 8, 1), labels: classes(6, 12, 3)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = []
        for _ in range(5):
            # Not in one step: nothing would order the regularization's reading of w and the update.
            losses.append(session.run(loss, {**data, training: True}))
            session.run(train, {**data, training: True})
        moving = {v.op.name: session.run(v) for v in tf.global_variables() if "moving" in v.name}
        return {"losses": losses, "logits": session.run(logits, data), "regularized": session.run(loss, data), **moving}


def embeddings(strategy: str):
    def program(tf, folder):
        ids = tf.placeholder(tf.int64, [None, 3])
        target = tf.placeholder(tf.float32, [None, 2])
        with tf.variable_scope("e", partitioner=tf.fixed_size_partitioner(3)):
            table = tf.get_variable(
                "table",
                [8, 2],
                initializer=lambda shape, dtype=None, partition_info=None: tf.constant(
                    numbers(int(shape[0]) + partition_info.var_offset[0], *[int(n) for n in shape])
                ),
            )
        rows = tf.nn.embedding_lookup(table, ids, partition_strategy=strategy)
        loss = tf.reduce_sum(tf.squared_difference(tf.reduce_mean(rows, 1), target))
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.AdagradOptimizer(0.3)
        pairs = optimizer.compute_gradients(loss)
        sparse = all(isinstance(gradient, tf.IndexedSlices) for gradient, _ in pairs)
        train = optimizer.apply_gradients(pairs, step)
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            losses = repeated(
                session,
                6,
                [loss, train],
                lambda n: {ids: classes(n, 12, 8).reshape(4, 3), target: numbers(n, 4, 2)},
            )
            path = saver.save(session, os.path.join(folder, "model"))
            reader = tf.train.load_checkpoint(path)
            return {
                "losses": [each[0] for each in losses],
                "sparse": sparse,
                "whole": session.run(tf.convert_to_tensor(table)),
                "saved": reader.get_tensor("e/table"),
                "names": np.array(sorted(reader.get_variable_to_shape_map())),
            }

    return program


def guarded_update(tf, folder):
    value = tf.placeholder(tf.float32, [])
    total = tf.Variable(0.0, name="total")
    skipped = tf.Variable(0, name="skipped", trainable=False)
    update = tf.cond(value > 0.5, lambda: tf.assign_add(total, value * 2.0), lambda: tf.identity(total))
    with tf.control_dependencies([update]):
        count = tf.cond(
            tf.is_finite(value),
            lambda: tf.group(tf.assign_add(skipped, 0)),
            lambda: tf.group(tf.assign_add(skipped, 1)),
        )
    chosen = tf.case(
        {value < 0.0: lambda: tf.constant(-1), value > 1.0: lambda: tf.constant(1)}, lambda: tf.constant(0)
    )
    branch = tf.cond(value > 0.0, lambda: tf.square(value), lambda: value * 3.0)
    (gradient,) = tf.gradients(branch, value)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        out = [session.run([update, chosen, gradient, count], {value: v})[:3] for v in (1.0, -2.0, 0.7, np.inf, np.nan)]
        return {"values": out, "state": session.run([total, skipped])}


def loop_sum(tf, folder):
    x = tf.placeholder(tf.float32, [None])
    w = variable(tf, "w", 3)
    n = tf.placeholder(tf.int32, [])
    i = tf.constant(0)
    _, total, history = tf.while_loop(
        lambda i, total, history: i < n,
        lambda i, total, history: (i + 1, total + x * w * tf.cast(i, tf.float32), tf.concat([history, [total[0]]], 0)),
        [i, tf.zeros([3]), tf.zeros([0])],
        shape_invariants=[i.get_shape(), tf.TensorShape([3]), tf.TensorShape([None])],
        swap_memory=True,
    )
    gradients = tf.gradients(tf.reduce_sum(total * total), [x, w])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return dict(enumerate_values(session.run([total, history, *gradients], {x: numbers(2, 3), n: 6})))


def enumerate_values(values):
    return ((f"value{number}", value) for number, value in enumerate(values))


def recurrent(tf, folder):
    inputs = tf.placeholder(tf.float32, [5, 2, 3], name="inputs")
    with tf.variable_scope("cell"):
        w = variable(tf, "w", 7, 4)
        b = variable(tf, "b", 4, seed=2)

    def cell(x, h):
        return tf.tanh(tf.matmul(tf.concat([x, h], 1), w) + b)

    h = tf.zeros([2, 4])
    outputs = []
    for x in tf.unstack(inputs):
        h = cell(x, h)
        outputs.append(h)
    unrolled = tf.stack(outputs)

    source = tf.TensorArray(tf.float32, 5).unstack(inputs)

    def body(t, h, out):
        h = cell(source.read(t), h)
        return t + 1, h, out.write(t, h)

    _, last, out = tf.while_loop(
        lambda t, *_: t < 5, body, [0, tf.zeros([2, 4]), tf.TensorArray(tf.float32, 5)], parallel_iterations=8
    )
    looped = out.stack()
    results = []
    for each in (unrolled, looped):
        loss = tf.reduce_sum(tf.square(each) * numbers(8, 5, 2, 4))
        results += [each, loss, *tf.gradients(loss, [w, b, inputs])]
    train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.square(looped - 0.5)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {inputs: numbers(3, 5, 2, 3)}
        before = session.run(results, feed)
        for _ in range(3):
            session.run(train, feed)
        return {**dict(enumerate_values(before)), "last": session.run(last, feed), "w": session.run(w)}


def input_pipeline(tf, folder):
    queue = tf.FIFOQueue(8, [tf.float32, tf.int32], shapes=[[2], []], name="examples")
    counter = tf.Variable(0, name="counter", trainable=False)
    number = tf.count_up_to(counter, 14)
    enqueue = queue.enqueue([tf.fill([2], tf.cast(number, tf.float32)), number])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))
    batch, ids = queue.dequeue_many(4)
    shuffled = tf.RandomShuffleQueue(20, 0, tf.int32, shapes=[[]], seed=1)
    fill = shuffled.enqueue_many([np.arange(10)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        seen = []
        try:
            while True:
                seen.append(session.run([tf.reduce_sum(batch, 1), ids])[1])
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
        session.run([fill])
        session.run(shuffled.close())
        drawn = sorted(session.run(shuffled.dequeue()) for _ in range(10))
        try:
            session.run(shuffled.dequeue())
            ended = False
        except tf.errors.OutOfRangeError:
            ended = True
        return {"ids": seen, "drawn": drawn, "ended": ended, "threads": len(threads)}


def clipped_gradients(tf, folder):
    w = variable(tf, "w", 3, 2)
    e = variable(tf, "e", 6, 2, seed=4)
    x = tf.constant(numbers(5, 4, 3))
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + tf.gather(e, [0, 2, 2, 5]))) * 10.0
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    variables = tf.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.5)
    train = optimizer.apply_gradients(zip(gradients, variables, strict=True), global_step=step)
    pairs = [(tf.clip_by_value(g, -0.1, 0.1), v) for g, v in optimizer.compute_gradients(loss, [w])]
    small = optimizer.apply_gradients([(tf.clip_by_norm(g, 0.05), v) for g, v in pairs])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run([loss, norm, train])[:2] for _ in range(5)]
        session.run(small)
        return {"found": found, "w": session.run(w), "e": session.run(e), "step": session.run(step)}


def ordered_assignments(tf, folder):
    v = tf.Variable([1.0, 2.0], name="v")
    w = tf.get_variable("w", [2], initializer=tf.constant_initializer(3.0), use_resource=True)
    with tf.control_dependencies([v.assign(v * 2.0)]):
        read = v.read_value()
        with tf.control_dependencies([tf.assign_add(v, read), w.assign_sub([0.5, 1.0])]):
            after = tf.tuple([tf.identity(v.read_value()), w.read_value()])
            done = tf.no_op(name="done")
    scattered = tf.scatter_sub(v, [0, 0, 1], [1.0, 1.0, 5.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(after)
        session.run(done)
        return {"after": first, "v": session.run(v), "w": session.run(w), "s": session.run(scattered)}


def towers(tf, folder):
    x = tf.placeholder(tf.float32, [8, 3])
    y = tf.placeholder(tf.float32, [8, 1])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    step = tf.train.get_or_create_global_step()
    found, losses = [], []
    with tf.variable_scope(tf.get_variable_scope()):
        for tower, (part, wanted) in enumerate(zip(tf.split(x, 2), tf.split(y, 2), strict=True)):
            with tf.device("/cpu:0"), tf.name_scope(f"tower_{tower}") as scope:
                w = variable(tf, "w", 3, 1)
                loss = tf.reduce_mean(tf.square(tf.matmul(part, w) - wanted))
                tf.add_to_collection("losses", loss)
                losses += tf.get_collection("losses", scope)
                tf.get_variable_scope().reuse_variables()
                found.append(optimizer.compute_gradients(loss))
    averaged = []
    for pairs in zip(*found, strict=True):
        stacked = tf.concat([tf.expand_dims(gradient, 0) for gradient, _ in pairs], 0)
        averaged.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
    train = optimizer.apply_gradients(averaged, global_step=step)
    for loss in losses:
        tf.summary.scalar(loss.op.name, loss)
    merged = tf.summary.merge_all()
    total = tf.add_n(losses)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True, device_count={"CPU": 1})) as session:
        session.run(tf.global_variables_initializer())
        out = repeated(session, 5, [total, merged, train], lambda n: {x: numbers(n, 8, 3), y: numbers(n + 50, 8, 1)})
        summary = tf.Summary.FromString(out[-1][1])
        return {
            "losses": [each[0] for each in out],
            "tags": np.array([value.tag for value in summary.value]),
            "values": [value.simple_value for value in summary.value],
        }


def checkpoints(tf, folder):
    path = os.path.join(folder, "model")
    with tf.variable_scope("kept"):
        a = variable(tf, "a", 2, 3)
    tf.Variable([1, 2], name="b")
    step = tf.train.get_or_create_global_step()
    bump = tf.assign_add(step, 5)
    saver = tf.train.Saver(max_to_keep=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        paths = []
        for _ in range(4):
            session.run(bump)
            paths.append(os.path.basename(saver.save(session, path, global_step=step)))
        session.run(a.assign(a * 2.0))
        saver.restore(session, tf.train.latest_checkpoint(folder))
        restored = session.run(a)
    state = tf.train.get_checkpoint_state(folder)
    with tf.Graph().as_default(), tf.Session() as session:
        c = tf.get_variable("c", [2, 3])
        d = tf.get_variable("d", [2], initializer=tf.ones_initializer())
        tf.train.Saver({"kept/a": c}).restore(session, state.model_checkpoint_path)
        missing = session.run(tf.report_uninitialized_variables())
        session.run(d.initializer)
        other = session.run([c, d])
        try:
            tf.train.Saver([d]).restore(session, state.model_checkpoint_path)
            refused = b""
        except tf.errors.NotFoundError as error:
            refused = error.message.split("\n")[0][:40]
    with tf.Graph().as_default(), tf.Session() as session:
        imported = tf.train.import_meta_graph(state.model_checkpoint_path + ".meta")
        imported.restore(session, state.model_checkpoint_path)
        values = session.run(["kept/a:0", "b:0", "global_step:0"])
    files = sorted(name for name in os.listdir(folder) if not name.endswith(".meta"))
    return {
        "paths": np.array(paths),
        "restored": restored,
        "missing": missing.astype(str),
        "c": other[0],
        "d": other[1],
        "refused": np.array(refused),
        "imported": values[0],
        "step": values[2],
        "b": values[1],
        "files": np.array(files),
        "state": np.array([os.path.basename(each) for each in state.all_model_checkpoint_paths]),
        "known": np.array([f"{name} {shape}" for name, shape in tf.train.list_variables(folder)]),
    }


def monitored(tf, folder):
    seen = []

    class Hook(tf.train.SessionRunHook):
        def begin(self):
            self.step = tf.train.get_global_step()

        def after_create_session(self, session, coord):
            seen.append(("created", int(session.run(self.step))))

        def before_run(self, run_context):
            return tf.train.SessionRunArgs({"loss": loss}, feed_dict=None)

        def after_run(self, run_context, run_values):
            seen.append((f"ran {run_values.results['loss']:.3f}", int(run_context.session.run(self.step))))

        def end(self, session):
            seen.append(("end", int(session.run(self.step))))

    w = variable(tf, "w", 3)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [3])
    loss = tf.reduce_sum(tf.square(w - x))
    train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    tf.summary.scalar("loss", loss)
    tf.summary.histogram("w", w)
    losses = []
    for last in (4, 7):
        hooks = [tf.train.StopAtStepHook(last_step=last), Hook(), tf.train.NanTensorHook(loss)]
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=1))
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder,
            hooks=hooks,
            scaffold=scaffold,
            save_checkpoint_steps=2,
            save_summaries_steps=2,
            log_step_count_steps=3,
        ) as session:
            while not session.should_stop():
                losses.append(session.run([loss, train], {x: numbers(2, 3)})[0])
    tags = []
    for name in sorted(os.listdir(folder)):
        if "tfevents" in name:
            for event in tf.train.summary_iterator(os.path.join(folder, name)):
                tags += [f"{event.step} {value.tag}" for value in event.summary.value if "sec" not in value.tag]
    return {
        "losses": losses,
        "seen": np.array([f"{what} {step}" for what, step in seen]),
        "latest": np.array(os.path.basename(tf.train.latest_checkpoint(folder))),
        "tags": np.array(sorted(tags)),
    }


def supervised(tf, folder):
    """A trainer of the first releases: a Supervisor, its queue runners and its services."""
    w = variable(tf, "w", 3)
    step = tf.train.get_or_create_global_step()
    inputs = tf.train.limit_epochs(tf.constant([1.0, 2.0, 3.0]), 6, name="inputs")
    queue = tf.FIFOQueue(4, [tf.float32], [[3]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([inputs])]))
    loss = tf.reduce_sum(tf.square(w - queue.dequeue()))
    train = tf.train.AdagradOptimizer(0.3).minimize(loss, global_step=step)
    tf.summary.scalar("first", w[0])
    found = {"losses": [], "steps": []}
    supervisor = tf.train.Supervisor(logdir=folder, save_summaries_secs=0, save_model_secs=0)
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            found["losses"].append(session.run([loss, train])[0])
            found["steps"].append(session.run(step))
            supervisor.summary_computed(session, session.run(supervisor.summary_op))
            if found["steps"][-1] == 4:
                supervisor.saver.save(session, supervisor.save_path, global_step=step)
    told = []
    for name in sorted(os.listdir(folder)):
        if "tfevents" in name:
            for event in tf.train.summary_iterator(os.path.join(folder, name)):
                told += [f"{event.step} {value.tag}" for value in event.summary.value if "sec" not in value.tag]
                told += [f"session {event.session_log.status}"] * event.HasField("session_log")
    again = tf.train.Supervisor(logdir=folder, save_summaries_secs=0, save_model_secs=0)
    with again.managed_session(start_standard_services=False) as session:
        found["restored"] = [session.run(step), session.run(w)]
    taken = []

    def take(session, *args, **kwargs):
        taken.append(f"{args} {kwargs}")
        if len(taken) == 2:
            raise tf.errors.AbortedError(None, None, "lost")
        if len(taken) == 4:
            again.request_stop()

    tf.train.basic_train_loop(again, take, (1,), {"b": 2})
    collections = {
        key: [each.name for each in tf.get_collection(key) if hasattr(each, "name")]
        for key in ("init_op", "local_init_op", "summary_op", "savers", "queue_runners")
    }
    return {
        **found,
        "told": np.array(sorted(set(told))),
        "taken": np.array(taken),
        "stopped": supervisor.should_stop(),
        "collections": np.array([f"{key}: {names}" for key, names in sorted(collections.items())]),
    }


def odd_gradients(tf, folder):
    x = tf.constant(numbers(1, 4, 6))
    positive = tf.abs(x) + 0.5
    cube = tf.reshape(x, [2, 3, 4])
    ys = {
        "segment": tf.segment_sum(x, [0, 0, 1, 2]) ** 2,
        "unsorted": tf.unsorted_segment_sum(x, [2, 0, 2, 1], 3) ** 2,
        "gather_nd": tf.gather_nd(x, [[0, 1], [3, 2], [0, 1]]) ** 2,
        "scatter_nd": tf.scatter_nd([[1], [0], [1], [5]], x, [6, 6]) ** 2,
        "cumsum": tf.cumsum(x, 1, exclusive=True, reverse=True) ** 2,
        "cumprod": tf.cumprod(positive, 0),
        "prod": tf.reduce_prod(positive, 1),
        "max": tf.reduce_max(x, 0) ** 2,
        "logsumexp": tf.reduce_logsumexp(x, 1),
        "strided": x[1:, ::-2] ** 2,
        "ellipsis": cube[..., tf.newaxis, 1:3] ** 2,
        "pad": tf.pad(x, [[1, 0], [2, 1]], "REFLECT") ** 2,
        "tile": tf.tile(x, [2, 3]) * 1.5,
        "reverse": tf.reverse(x, [1]) ** 2,
        "where": tf.where(x > 0.0, x * x, x * 3.0),
        "minimum": tf.minimum(x, 0.3 * positive),
        "pow": positive**1.7 + tf.pow(2.0, x),
        "lgamma": tf.lgamma(positive) + tf.digamma(positive),
        "erf": tf.erf(x) + tf.atan2(x, positive),
        "einsum": tf.einsum("abc,dc->abd", cube, tf.constant(numbers(6, 5, 4))),
        "tensordot": tf.tensordot(cube, tf.constant(numbers(6, 4, 3)), [[2, 1], [0, 1]]) ** 2,
        "inverse": tf.matrix_inverse(tf.matmul(x, x, transpose_b=True) + tf.eye(4)),
        "cholesky": tf.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(4)),
        "dynamic": tf.dynamic_stitch([[0, 2], [1, 3]], tf.split(x, 2)) ** 2,
        "partition": tf.add_n([tf.reduce_sum(p**3) for p in tf.dynamic_partition(x, [0, 1, 1, 0], 2)]),
        "top_k": tf.nn.top_k(x, 2).values ** 2,
        "one_hot": tf.one_hot([1, 2, 0, 5], 6, on_value=2.0) * x,
        "stop": tf.stop_gradient(x) * x,
        "stack": tf.stack(tf.unstack(x, axis=1), axis=-1) ** 2,
        "space": tf.space_to_batch_nd(tf.reshape(x, [1, 4, 6, 1]), [2, 2], [[0, 0], [0, 0]]) ** 2,
        "resize": tf.depth_to_space(tf.reshape(x, [1, 2, 3, 4]), 2) ** 2,
        "l2_normalize": tf.nn.l2_normalize(x, 0) * positive,
        "boolean_mask": tf.boolean_mask(x, [True, False, True, True]) ** 2,
        "norm": tf.norm(x, axis=1),
        "clip": tf.clip_by_value(x, -0.4, 0.4) * x,
        "sequence": tf.sequence_mask([1, 6, 3, 0], 6, tf.float32) * x * x,
    }
    gradients = {name: tf.gradients(y, x)[0] for name, y in ys.items()}
    unconnected = tf.gradients(tf.constant(1.0), x)[0] is None
    second = tf.gradients(tf.gradients(tf.reduce_sum(tf.tanh(x) ** 3), x)[0], x)[0]
    with tf.Session() as session:
        values, found, twice = session.run([ys, gradients, second])
        return {
            **{f"value_{name}": value for name, value in values.items()},
            **{f"gradient_{name}": value for name, value in found.items()},
            "second": twice,
            "unconnected": unconnected,
        }


def strings(tf, folder):
    words = tf.placeholder(tf.string, [None])
    split = tf.string_split(words, " ")
    out = {
        "join": tf.string_join([words, tf.constant(["a", "b"])], separator="-"),
        "split": split.values,
        "rows": tf.sparse_tensor_to_dense(split, default_value=""),
        "number": tf.string_to_number(tf.constant(["1.5", "-2"])),
        "text": tf.as_string(tf.constant([1.5, 2.25]), precision=3),
        "ints": tf.as_string([3, 4]),
        "substr": tf.substr(words, 1, 2),
        "lengths": tf.strings.length(words),
        "replaced": tf.regex_replace(words, "[aeiou]", "*"),
        "reduced": tf.reduce_join([["a", "b"], ["c", "d"]], 1),
        "base64": tf.encode_base64(words),
        "decoded": tf.decode_raw(tf.constant([b"\x01\x00\x02\x00"]), tf.int16),
        "lower": tf.strings.lower(words),
        "stripped": tf.strings.strip(words),
        "csv": tf.decode_csv(tf.constant(["1,x,2.5"]), [[0], [""], [0.0]])[2],
        "equal": tf.equal(words, "some words"),
    }
    with tf.Session() as session:
        found = session.run(out, {words: ["some words", b"Other"]})
        return {name: value.astype("S") if value.dtype == object else value for name, value in found.items()}


def scopes(tf, folder):
    made = []

    def layer(x, units):
        w = tf.get_variable("w", [x.get_shape()[-1].value, units], initializer=tf.ones_initializer())
        b = tf.get_variable("b", units, initializer=tf.zeros_initializer(), collections=["mine", "variables"])
        made.append(w)
        return tf.add(tf.matmul(x, w), b, name="out")

    x = tf.constant(numbers(1, 2, 3), name="x")
    with tf.variable_scope("one") as one:
        y = layer(x, 4)
    with tf.variable_scope(one, reuse=True), tf.name_scope("inside"):
        z = layer(x, 4)
    with tf.variable_scope("two"), tf.variable_scope("deep", reuse=tf.AUTO_REUSE, dtype=tf.float64):
        t = tf.get_variable("t", [2], initializer=tf.zeros_initializer())
        assert tf.get_variable("t", [2]) is t
    with tf.variable_scope(None, "one"):
        layer(x, 2)
    share = tf.make_template("shared", layer, units=5)
    u = share(x) + share(x)
    problems = []
    for name, reuse, shape in (("one", False, [3, 4]), ("one", True, [9, 9]), ("new", True, [1])):
        try:
            with tf.variable_scope(name, reuse=reuse):
                tf.get_variable("w", shape)
        except ValueError as error:
            problems.append(str(error).split(",")[0].split(".")[0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return {
            "y": session.run([y, z]),
            "u": session.run(u),
            "same": made[0] is made[1],
            "names": np.array([v.name for v in tf.global_variables()]),
            "trainable": np.array([v.op.name for v in tf.trainable_variables("one")]),
            "mine": np.array([v.name for v in tf.get_collection("mine")]),
            "dtype": np.array(t.dtype.base_dtype.name),
            "problems": np.array(problems),
        }


def scans(tf, folder):
    x = tf.constant(numbers(1, 5, 3))
    w = variable(tf, "w", 3)
    mapped = tf.map_fn(lambda row: tf.square(row) * w, x)
    pairs = tf.map_fn(lambda both: both[0] * both[1], (x, x * 2.0), dtype=tf.float32)
    summed = tf.scan(lambda total, row: total * 0.5 + row * w, x)
    left = tf.foldl(lambda total, row: total * 0.9 + row, x)
    right = tf.foldr(lambda total, row: total * 0.9 + row, x, initializer=tf.zeros([3]))
    loss = tf.reduce_sum(mapped) + tf.reduce_sum(summed**2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return dict(enumerate_values(session.run([mapped, pairs, summed, left, right, *tf.gradients(loss, [w, x])])))


def metrics(tf, folder):
    labels = tf.placeholder(tf.int64, [None])
    guesses = tf.placeholder(tf.int64, [None])
    accuracy, update = tf.metrics.accuracy(labels, guesses)
    mean, update_mean = tf.metrics.mean(tf.cast(guesses, tf.float32), name="average")
    precision, update_precision = tf.metrics.precision(labels > 1, guesses > 1)
    recall, update_recall = tf.metrics.recall(labels > 1, guesses > 1)
    error, update_error = tf.metrics.mean_squared_error(tf.cast(labels, tf.float32), tf.cast(guesses, tf.float32))
    confusion = tf.confusion_matrix(labels, guesses, num_classes=4)
    updates = [update, update_mean, update_precision, update_recall, update_error]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        feeds = [{labels: classes(n, 10, 4), guesses: classes(n // 2, 10, 4)} for n in range(4)]
        return {
            "updates": [session.run(updates, feed) for feed in feeds],
            "values": session.run([accuracy, mean, precision, recall, error]),
            "confusion": session.run(confusion, feeds[1]),
            "names": np.array([v.name for v in tf.local_variables()]),
        }


PROGRAMS: dict[str, Callable[[Any, str], Values]] = {
    "softmax_regression": softmax_regression,
    **{f"perceptron_{name}": perceptron(name, False) for name in OPTIMIZERS},
    "resource_perceptron_adam": perceptron("adam", True),
    "resource_perceptron_momentum": perceptron("momentum", True),
    "convnet": convnet,
    "embeddings_mod": embeddings("mod"),
    "embeddings_div": embeddings("div"),
    **{
        program.__name__: program
        for program in (
            guarded_update, loop_sum, recurrent, input_pipeline, clipped_gradients, ordered_assignments, towers,
            checkpoints, monitored, supervised, odd_gradients, strings, scopes, scans, metrics,
        )
    },
}  # fmt: skip


class At:
    """A module tf whose sessions are at a server."""

    def __init__(self, tf, target):
        self._tf = tf
        self._target = target

    def __getattr__(self, name):
        return getattr(self._tf, name)

    def Session(self, config=None):
        return self._tf.Session(self._target, config=config)


def outcome(tf: Any, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The values of one program, and the names of its graph: {"variables": [...], "nodes": {name: op}}."""
    with tf.Graph().as_default() as graph, tempfile.TemporaryDirectory() as folder:
        values = {key: np.asarray(value) for key, value in flattened(PROGRAMS[name](tf, folder))}
        variables = [[variable.name, list(variable.shape.as_list())] for variable in tf.global_variables()]
        nodes = {node.name: node.op for node in graph.as_graph_def().node}
    return values, {"variables": variables, "nodes": nodes}


def flattened(values: Values):
    for key, value in values.items():
        if isinstance(value, list | tuple):
            yield from flattened({f"{key}[{number}]": each for number, each in enumerate(value)})
        else:
            yield key, value


def main(runtime: str, path: str) -> None:
    tf = importlib.import_module(runtime)
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    arrays = {}
    for name in PROGRAMS:
        values, names = outcome(tf, name)
        arrays |= {f"{name}/{key}": value for key, value in values.items()}
        print(json.dumps({"program": name, **names}))
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
