"""Trains a deep net on handwritten digits with its layers on different tasks, in a pipeline of micro-batches.

Each stage, a task, has some of the layers: their variables, their arithmetic forwards and backwards, and their updates.
Activations go from stage to stage, gradients back. A batch is cut into micro-batches, each with a copy of the net's
nodes in the same graph (not of its variables): while one stage is at a micro-batch, the stage before it is at the next
one. All of it is one `session.run` a step, by the client of stage 0; the other stages only serve.

    python trainer.py --stage_hosts=localhost:2222,localhost:2223 --job_name=stage --task_index=0
    python trainer.py --stage_hosts=localhost:2222,localhost:2223 --job_name=stage --task_index=1

`--runtime=tensorflow` runs the same program on real TensorFlow's 1.x API.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from digits import load_digits, numbered_batch

RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}
FLAGS = argparse.Namespace()


def layers_of_stages(stages):
    """For each stage, its layers as (name, inputs, outputs): as many hidden ones for each as can be."""
    sizes = [64, *[FLAGS.width] * FLAGS.hidden_layers, 10]
    layers = [(f"layer{n}", *pair) for n, pair in enumerate(zip(sizes[:-1], sizes[1:], strict=True))]
    # The first and the last layer are small, so they count as parts of their neighbours.
    hidden = [layers[:2], *[[layer] for layer in layers[2:-2]], layers[-2:]]
    return [sum(hidden[k * len(hidden) // stages : (k + 1) * len(hidden) // stages], []) for k in range(stages)]


def forward(tf, net, layers, is_last):
    """The layers of one stage; the variables are made by the first micro-batch and used by all."""
    for name, fan_in, fan_out in layers:
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            start = tf.truncated_normal_initializer(stddev=(2.0 / fan_in) ** 0.5)
            # A resource is read once for the way there and back, also where another micro-batch has been that far.
            kernel = tf.get_variable("kernel", [fan_in, fan_out], initializer=start, use_resource=True)
            bias = tf.get_variable("bias", [fan_out], initializer=tf.zeros_initializer(), use_resource=True)
        net = tf.matmul(net, kernel) + bias
        if not (is_last and name == layers[-1][0]):
            net = tf.nn.relu(net)
    return net


def build_pipeline(tf, stages, images, labels, micro_batches):
    """Returns (loss, [(gradient, variable)], logits) of a batch that is cut into micro-batches."""
    with tf.device("/job:stage/task:0"):
        nets = tf.split(tf.reshape(images, [-1, 64]), micro_batches)
    with tf.device(f"/job:stage/task:{len(stages) - 1}"):
        answers = tf.split(labels, micro_batches)
    losses, all_logits = [], []
    for net, answer in zip(nets, answers, strict=True):
        for number, layers in enumerate(stages):
            with tf.device(f"/job:stage/task:{number}"):
                net = forward(tf, net, layers, number == len(stages) - 1)
        with tf.device(f"/job:stage/task:{len(stages) - 1}"):
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=answer, logits=net)
            losses.append(tf.reduce_mean(loss))
            all_logits.append(net)
    variables = tf.trainable_variables()
    # Gradients of an op are computed where the op is.
    gradients = [tf.gradients(loss, variables, colocate_gradients_with_ops=True) for loss in losses]
    pairs = []
    for variable, parts in zip(variables, zip(*gradients, strict=True), strict=True):
        with tf.device(variable.device):
            pairs.append((tf.add_n(list(parts)) / micro_batches, variable))
    with tf.device(f"/job:stage/task:{len(stages) - 1}"):
        return tf.add_n(losses) / micro_batches, pairs, tf.concat(all_logits, 0)


def main(_):
    tf = importlib.import_module(RUNTIMES[FLAGS.runtime])
    if FLAGS.runtime == "tensorflow":
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)

    cluster = tf.train.ClusterSpec({"stage": FLAGS.stage_hosts.split(",")})
    server = tf.train.Server(cluster, job_name="stage", task_index=FLAGS.task_index)
    if FLAGS.task_index > 0:
        server.join()
        return

    train_images, train_labels, test_images, test_labels = load_digits()
    tf.set_random_seed(FLAGS.seed)
    stages = layers_of_stages(cluster.num_tasks("stage"))
    with tf.device("/job:stage/task:0"):
        global_step = tf.train.get_or_create_global_step()
        images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    with tf.device(f"/job:stage/task:{len(stages) - 1}"):
        labels = tf.placeholder(tf.int64, [None], name="labels")
    loss, gradients, logits = build_pipeline(tf, stages, images, labels, FLAGS.micro_batches)
    train_op = tf.train.MomentumOptimizer(FLAGS.learning_rate, 0.9).apply_gradients(gradients, global_step=global_step)
    with tf.device(f"/job:stage/task:{len(stages) - 1}"):
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        tf.summary.scalar("loss", loss)
    for number, layers in enumerate(stages):
        print(f"stage {number}:", *(f"{name} {fan_in}x{fan_out}" for name, fan_in, fan_out in layers), flush=True)

    final = tf.train.FinalOpsHook(accuracy, {images: test_images, labels: test_labels})
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps), tf.train.NanTensorHook(loss), final]
    times = []

    def train(step_context):
        step = step_context.session.run(global_step)
        rows = numbered_batch(step, FLAGS.batch_size, len(train_labels))
        feed = {images: train_images[rows], labels: train_labels[rows]}
        began = time.perf_counter()
        value = step_context.run_with_hooks([loss, train_op], feed_dict=feed)[0]
        times.append(time.perf_counter() - began)
        return step, value

    with tf.train.MonitoredTrainingSession(
        master=server.target,
        checkpoint_dir=FLAGS.checkpoint_dir,
        hooks=hooks,
        save_checkpoint_steps=FLAGS.save_steps,
        save_checkpoint_secs=None,
        save_summaries_steps=50,
        log_step_count_steps=50,
    ) as session:
        while not session.should_stop():
            step, value = session.run_step_fn(train)
            if step % FLAGS.log_steps == 0:
                print(f"step {step}: loss {value:.7f}", flush=True)
    times.sort()
    print(f"milliseconds a step: {1e3 * times[len(times) // 2]:.1f} (at best {1e3 * times[0]:.1f})")
    print(f"held-out accuracy: {100 * final.final_ops_values:.2f} %", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # The cluster
    parser.add_argument("--stage_hosts", required=True, help="comma-separated host:port pairs")
    parser.add_argument("--job_name", required=True, choices=["stage"])
    parser.add_argument("--task_index", type=int, required=True, help="index of the task within its job")
    # The model
    parser.add_argument("--hidden_layers", type=int, default=5)
    parser.add_argument("--width", type=int, default=512, help="of a hidden layer")
    # The training
    parser.add_argument("--train_steps", type=int, default=150)
    parser.add_argument("--batch_size", type=int, default=240)
    parser.add_argument("--micro_batches", type=int, default=4, help="parts of a batch that are under way at once")
    parser.add_argument("--learning_rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1, help="of the variables' first values")
    parser.add_argument("--checkpoint_dir", default="checkpoints")
    parser.add_argument("--save_steps", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--log_steps", type=int, default=25, help="steps between the losses that are printed")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), default="dtf")
    FLAGS, unparsed = parser.parse_known_args()
    importlib.import_module(RUNTIMES[FLAGS.runtime]).app.run(main=main, argv=[sys.argv[0], *unparsed])
