"""Two graph convolutions over sparse features and a sparse adjacency, with masked losses."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(5)
nodes, width, classes = 7, 5, 3


def to_tuple(dense):
    coords = np.argwhere(dense)
    return coords, dense[dense != 0].astype(np.float32), dense.shape


adjacency = (random.rand(nodes, nodes) < 0.4).astype(np.float32)
adjacency = np.minimum(adjacency + adjacency.T + np.eye(nodes), 1)
degrees = adjacency.sum(1) ** -0.5
support = to_tuple(adjacency * degrees[:, None] * degrees[None])
features = to_tuple((random.rand(nodes, width) < 0.5) * random.rand(nodes, width))
placeholders = {
    "support": [tf.sparse_placeholder(tf.float32)],
    "features": tf.sparse_placeholder(tf.float32, shape=tf.constant(features[2], dtype=tf.int64)),
    "labels": tf.placeholder(tf.float32, shape=(None, classes)),
    "labels_mask": tf.placeholder(tf.int32),
    "dropout": tf.placeholder_with_default(0., shape=()),
}


def weights(shape, name):
    return tf.Variable(tf.constant(random.uniform(-0.7, 0.7, shape).astype(np.float32)), name=name)


def dot(a, b, sparse=False):
    return tf.sparse_tensor_dense_matmul(a, b) if sparse else tf.matmul(a, b)


first, second = weights([width, 6], "w0"), weights([6, classes], "w1")
hidden = tf.nn.relu(dot(placeholders["support"][0], dot(placeholders["features"], first, True), True))
outputs = dot(placeholders["support"][0], dot(hidden, second), True)
loss = 5e-4 * tf.nn.l2_loss(first)
entropy = tf.nn.softmax_cross_entropy_with_logits(logits=outputs, labels=placeholders["labels"])
mask = tf.cast(placeholders["labels_mask"], dtype=tf.float32)
mask /= tf.reduce_mean(mask)
loss += tf.reduce_mean(entropy * mask)
opt_op = tf.train.AdamOptimizer(learning_rate=0.05).minimize(loss)
feed_dict = dict()
feed_dict.update({placeholders["labels"]: np.eye(classes)[random.randint(0, classes, nodes)]})
feed_dict.update({placeholders["labels_mask"]: [1, 1, 1, 0, 0, 1, 1]})
feed_dict.update({placeholders["features"]: features})
feed_dict.update({placeholders["support"][i]: support for i in range(1)})
sess = tf.Session()
sess.run(tf.global_variables_initializer())
LOSSES = [float(sess.run([opt_op, loss], feed_dict=feed_dict)[1]) for _ in range(8)]
