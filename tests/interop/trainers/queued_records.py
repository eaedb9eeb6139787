"""TFRecords of Examples, read by queue runners, decoded, batched in order, and trained on with a MonitoredSession."""

import os
import tempfile

import numpy as np
import tensorflow as tf

random = np.random.RandomState(9)
folder = tempfile.mkdtemp()


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


path = os.path.join(folder, "train.tfrecords")
writer = tf.python_io.TFRecordWriter(path)
for index in range(12):
    image = random.randint(0, 255, (4, 4, 1)).astype(np.uint8)
    features = {"label": _int64_feature(index % 3), "image_raw": _bytes_feature(image.tobytes())}
    writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
writer.close()


def read_and_decode(filename_queue):
    _, serialized = tf.TFRecordReader().read(filename_queue)
    features = tf.parse_single_example(
        serialized,
        features={"image_raw": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)})
    image = tf.decode_raw(features["image_raw"], tf.uint8)
    image.set_shape([16])
    return tf.cast(image, tf.float32) * (1. / 255) - 0.5, tf.cast(features["label"], tf.int32)


with tf.name_scope("input"):
    queue = tf.train.string_input_producer([path], num_epochs=2, shuffle=False)
    image, label = read_and_decode(queue)
    images, labels = tf.train.batch([image, label], batch_size=4, num_threads=1, capacity=20)
W = tf.get_variable("W", [16, 3], initializer=tf.zeros_initializer())
b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
logits = tf.matmul(images, W) + b
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
global_step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.5, global_step, 3, 0.7, staircase=True)
train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=global_step)
LOSSES = []
quiet = {"save_summaries_steps": None, "log_step_count_steps": None}
with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, **quiet) as s:
    while not s.should_stop():
        LOSSES.append(float(s.run([loss, train_op])[0]))
reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(folder))
LOSSES += [float(reader.get_tensor("global_step")), float(np.abs(reader.get_tensor("W")).sum())]
