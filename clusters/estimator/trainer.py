"""Trains the handwritten digits with tf.estimator: chief and workers train, a ps serves, the evaluator evaluates.

Every task runs this file, and `train_and_evaluate` does the part that TF_CONFIG says is its own. Without TF_CONFIG one
process does it all:

    python trainer.py --model_dir=checkpoints
"""

from __future__ import annotations

import argparse

from digits import load_digits

import dtf as tf

FLAGS = argparse.Namespace()


def model_fn(features, labels, mode, params):
    """A 3x3 convolution, pooling, and two dense layers."""
    net = tf.layers.conv2d(features["image"], 16, 3, padding="same", activation=tf.nn.relu)
    net = tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2))
    net = tf.layers.dropout(tf.layers.dense(net, 64, tf.nn.relu), 0.25, training=mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.layers.dense(net, 10)
    predictions = {"digit": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = tf.train.AdamOptimizer(params["learning_rate"]).minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["digit"])}
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, metrics)


def serving_input_receiver():
    """A server feeds images as numbers from 0 to 1, float32 [n, 8, 8, 1]."""
    image = tf.placeholder(tf.float32, [None, 8, 8, 1], name="image")
    return tf.estimator.export.ServingInputReceiver({"image": image}, {"image": image})


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    train_images, train_labels, test_images, test_labels = load_digits()

    def train_input(config):
        data = tf.data.Dataset.from_tensor_slices(({"image": train_images}, train_labels))
        return data.shuffle(len(train_labels), seed=config.global_id_in_cluster).repeat().batch(FLAGS.batch_size)

    def eval_input():
        return tf.data.Dataset.from_tensor_slices(({"image": test_images}, test_labels)).batch(120)

    config = tf.estimator.RunConfig(FLAGS.model_dir, tf_random_seed=1, save_checkpoints_steps=FLAGS.save_steps)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"learning_rate": FLAGS.learning_rate})
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(train_input, max_steps=FLAGS.train_steps),
        tf.estimator.EvalSpec(
            eval_input,
            steps=None,
            exporters=tf.estimator.FinalExporter("digits", serving_input_receiver),
            start_delay_secs=2,
            throttle_secs=1,
        ),
    )
    if config.task_type == "evaluator" or not config.cluster_spec:
        evaluations = tf.estimator.experimental.read_eval_metrics(estimator.eval_dir())
        step, figures = list(evaluations.items())[-1]
        print(f"step {step}, held-out accuracy: {100 * figures['accuracy']:.2f} %", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", default="checkpoints")
    parser.add_argument("--train_steps", type=int, default=1000, help="global steps, summed over chief and workers")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.002)
    parser.add_argument("--save_steps", type=int, default=200, help="global steps between checkpoints")
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[__file__, *unparsed])
