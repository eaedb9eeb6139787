"""A network of contrib.slim; where there is no contrib, the same of tf.layers."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)
images = tf.constant(random.normal(size=(6, 8, 8, 3)).astype(np.float32))
labels = tf.constant(random.randint(0, 3, 6))
first = tf.constant_initializer(random.normal(size=(3, 3, 3, 4)) * 0.2)
last = tf.constant_initializer(random.normal(size=(64, 3)) * 0.2)
try:
    import tensorflow.contrib.slim as slim
except ImportError:
    slim = None
if slim is not None:
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.01)):
        params = {"decay": 0.9, "epsilon": 0.01, "scale": True}
        net = slim.conv2d(
            images, 4, [3, 3], normalizer_fn=slim.batch_norm, normalizer_params=params, weights_initializer=first,
        )  # fmt: skip
        net = slim.flatten(slim.max_pool2d(net, [2, 2]))
        logits = slim.fully_connected(net, 3, activation_fn=None, weights_initializer=last)
    slim.losses.sparse_softmax_cross_entropy(logits, labels)
    total = slim.losses.get_total_loss()
    train = slim.learning.create_train_op(total, tf.train.MomentumOptimizer(0.1, 0.9), clip_gradient_norm=1.0)
else:
    decay = lambda weights: 0.01 * tf.nn.l2_loss(weights)  # noqa: E731
    net = tf.layers.conv2d(
        images, 4, 3, padding="same", use_bias=False, kernel_initializer=first, kernel_regularizer=decay)  # fmt: skip
    net = tf.nn.relu(tf.layers.batch_normalization(net, momentum=0.9, epsilon=0.01, training=True))
    net = tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2))
    logits = tf.layers.dense(net, 3, kernel_initializer=last, kernel_regularizer=decay)
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    total = tf.losses.get_total_loss()
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    clipped = [(tf.clip_by_norm(gradient, 1.0), each) for gradient, each in optimizer.compute_gradients(total)]
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        barrier = tf.identity(total)
    with tf.control_dependencies([optimizer.apply_gradients(clipped, tf.train.get_or_create_global_step())]):
        train = tf.identity(barrier)
LOSSES = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        LOSSES.append(float(session.run(train)))
    LOSSES += [float(np.abs(session.run(each)).sum()) for each in tf.global_variables() if "moving" in each.name]
