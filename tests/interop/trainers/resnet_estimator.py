"""A residual network as an Estimator: batch normalization, weight decay, a piecewise rate, evaluation.

TensorFlow 2.16 and later have no Estimator; there the same steps run in a session.
"""

import shutil
import tempfile

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)
IMAGES = random.normal(size=(16, 8, 8, 2)).astype(np.float32)
LABELS = random.randint(0, 3, 16).astype(np.int32)


def conv(inputs, filters, stride, seed):
    shape = (3, 3, inputs.get_shape()[-1], filters)
    kernel = np.random.RandomState(seed).normal(size=[int(size) for size in shape]) * 0.2
    start = tf.constant_initializer(kernel)
    return tf.layers.conv2d(inputs, filters, 3, stride, "same", use_bias=False, kernel_initializer=start)


def block(inputs, filters, stride, training, seed):
    shortcut = conv(inputs, filters, stride, seed)
    net = tf.nn.relu(tf.layers.batch_normalization(inputs, momentum=0.9, training=training))
    net = conv(net, filters, stride, seed + 1)
    net = tf.nn.relu(tf.layers.batch_normalization(net, momentum=0.9, training=training))
    return shortcut + conv(net, filters, 1, seed + 2)


def network(features, labels, training, params):
    net = block(block(features, 4, 1, training, 10), 8, 2, training, 20)
    net = tf.reduce_mean(net, [1, 2])
    logits = tf.layers.dense(net, 3, kernel_initializer=tf.constant_initializer(np.linspace(-1, 1, 24).reshape(8, 3)))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    decay = tf.add_n([tf.nn.l2_loss(each) for each in tf.trainable_variables() if "batch_norm" not in each.name])
    loss += params["weight_decay"] * decay
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(tf.train.piecewise_constant(step, [3, 6], [0.1, 0.05, 0.01]), 0.9)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = optimizer.minimize(loss, step)
    return logits, loss, train, {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}


def input_fn():
    return tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).repeat(1).batch(8)


PARAMS = {"weight_decay": 1e-3}
LOSSES = []


def with_estimator(folder):
    def model_fn(features, labels, mode, params):
        logits, loss, train, metrics = network(features, labels, mode == tf.estimator.ModeKeys.TRAIN, params)
        return tf.estimator.EstimatorSpec(mode, {"logits": logits}, loss, train, metrics)

    estimator = tf.estimator.Estimator(model_fn, folder, params=PARAMS)
    for _ in range(3):
        estimator.train(input_fn)
        figures = estimator.evaluate(input_fn)
        LOSSES.extend([float(figures["loss"]), float(figures["accuracy"]), int(figures["global_step"])])


def in_session(folder, training):
    """One pass over the data, from the last checkpoint on."""
    with tf.Graph().as_default():
        batch = tf.data.make_one_shot_iterator(input_fn()).get_next()
        _, loss, train, metrics = network(*batch, training, PARAMS)
        mean, accuracy = tf.metrics.mean(loss), metrics["accuracy"]
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            if tf.train.latest_checkpoint(folder):
                saver.restore(session, tf.train.latest_checkpoint(folder))
            for _ in range(2):
                session.run(train if training else [mean[1], accuracy[1]])
            figures = [float(each) for each in session.run([mean[0], accuracy[0]])]
            step = int(session.run(tf.train.get_global_step()))
            if training:
                saver.save(session, folder + "/model.ckpt", step)
            else:
                LOSSES.extend([*figures, step])


folder = tempfile.mkdtemp()
if hasattr(tf, "estimator"):
    with_estimator(folder)
else:
    for _ in range(3):
        in_session(folder, training=True)
        in_session(folder, training=False)
shutil.rmtree(folder)
