"""A program as a user writes it. A type checker reads it; nobody runs it.

Each line that begins with `reveal_type` ends with the type that a checker must show; each line with `# error` has a
mistake that a checker must find.
"""

import numpy as np

import dtf as tf
import dtf.compat.v1 as tf1

x = tf.placeholder(tf.float32, [None, 784], name="x")
w = tf.Variable(tf.zeros([784, 10]), name="w")
y = tf.nn.relu(tf.matmul(x, w))
optimizer = tf.train.AdamOptimizer(1e-3)
loss = tf.reduce_mean(tf.square(y - 1.0))

reveal_type(x)  # Tensor
reveal_type(w)  # Variable
reveal_type(y)  # Tensor
reveal_type(loss)  # Tensor
reveal_type(x + 1)  # Tensor
reveal_type(1.0 - x)  # Tensor
reveal_type(w * 2)  # Tensor
reveal_type(-w)  # Tensor
reveal_type(x[:, 0])  # Tensor
reveal_type(x < 1)  # Tensor
reveal_type(tf.layers.dense(x, 3))  # Tensor
reveal_type(tf.layers.dense(inputs=x, units=3))  # Tensor
reveal_type(tf.concat([x, x], 1))  # Tensor
reveal_type(tf.reshape(x, [-1]))  # Tensor
reveal_type(tf.add(x, 1.0))  # Tensor
reveal_type(tf.math.log(x))  # Tensor
reveal_type(tf.constant(3))  # Tensor
reveal_type(tf.float32)  # DType
reveal_type(tf.get_default_graph())  # Graph
reveal_type(tf.train.ClusterSpec({"ps": ["localhost:2222"]}))  # ClusterSpec
reveal_type(tf.train.Server.create_local_server())  # Server
reveal_type(optimizer)  # AdamOptimizer
reveal_type(tf.train.Saver())  # Saver
reveal_type(tf.train.MonitoredTrainingSession())  # MonitoredSession
reveal_type(tf.summary.FileWriter("/tmp"))  # FileWriter
reveal_type(tf.data.Dataset.from_tensor_slices([1]))  # Dataset
reveal_type(tf.ConfigProto(allow_soft_placement=True))  # ConfigProto
reveal_type(tf.train.get_or_create_global_step())  # Variable
reveal_type(tf.trainable_variables())  # list
reveal_type(tf.GraphKeys.GLOBAL_VARIABLES)  # str
reveal_type(tf1.Session())  # Session
with tf.Session() as sess:
    reveal_type(sess)  # Session
    reveal_type(sess.graph)  # Graph
    sess.run(y, {x: np.zeros((1, 784))})

tf.nn.relu([1.0, 2.0])
tf.nn.relu([1.0, x])
tf.add(np.zeros(3), 1)
tf.one_hot([1, 2], depth=3)
tf.cast(x, "int32")
tf.cast(x, np.float32)

tf.nn.rellu(x)  # error
tf.add(x, z=1)  # error
tf.layers.max_pooling2d(x, 2, 2, pad="same")  # error
tf.train.Savr()  # error
tf.placehodler(tf.float32)  # error
tf.Session(1, 2, 3, 4, 5)  # error
tf.nn.relu(object())  # error
tf.train.AdamOptimizer(learning_rat=0.1)  # error
w.asign(1.0)  # error
