# ARGS: --num_gpus=2 --max_steps=6 --train_dir=tr
"""cifar10_multi_gpu_train with binary records, filename queue, average_gradients, TOWER names; plus Horovod-like wrapper & AdaBound optimizer subclass"""

from datetime import datetime
import os.path, re, time
import numpy as np
import tensorflow as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("train_dir", "/tmp/cifar10_train", """Directory""")
tf.app.flags.DEFINE_integer("max_steps", 1000000, """Number of batches to run.""")
tf.app.flags.DEFINE_integer("num_gpus", 1, """How many GPUs to use.""")
tf.app.flags.DEFINE_boolean("log_device_placement", False, """Whether to log device placement.""")
TOWER_NAME = "tower"


def read_cifar10(filename_queue):
    class CIFAR10Record(object):
        pass

    result = CIFAR10Record()
    label_bytes = 1
    result.height = 8
    result.width = 8
    result.depth = 3
    image_bytes = result.height * result.width * result.depth
    reader = tf.FixedLengthRecordReader(record_bytes=label_bytes + image_bytes)
    result.key, value = reader.read(filename_queue)
    record_bytes = tf.decode_raw(value, tf.uint8)
    result.label = tf.cast(tf.strided_slice(record_bytes, [0], [label_bytes]), tf.int32)
    depth_major = tf.reshape(
        tf.strided_slice(record_bytes, [label_bytes], [label_bytes + image_bytes]),
        [result.depth, result.height, result.width],
    )
    result.uint8image = tf.transpose(depth_major, [1, 2, 0])
    return result


def inputs():
    filenames = [os.path.join(".", "data_batch_%d.bin" % i) for i in range(1, 3)]
    for f in filenames:
        if not tf.gfile.Exists(f):
            raise ValueError("Failed to find file: " + f)
    q = tf.train.string_input_producer(filenames, shuffle=False)
    r = read_cifar10(q)
    im = tf.cast(r.uint8image, tf.float32)
    im = tf.image.per_image_standardization(tf.image.resize_image_with_crop_or_pad(im, 6, 6))
    im.set_shape([6, 6, 3])
    r.label.set_shape([1])
    images, label_batch = tf.train.batch([im, r.label], batch_size=4, num_threads=1, capacity=30)
    tf.summary.image("images", images)
    return images, tf.reshape(label_batch, [4])


def _activation_summary(x):
    tensor_name = re.sub("%s_[0-9]*/" % TOWER_NAME, "", x.op.name)
    tf.summary.histogram(tensor_name + "/activations", x)
    tf.summary.scalar(tensor_name + "/sparsity", tf.nn.zero_fraction(x))


def _variable_on_cpu(name, shape, initializer):
    with tf.device("/cpu:0"):
        return tf.get_variable(name, shape, initializer=initializer, dtype=tf.float32)


def _variable_with_weight_decay(name, shape, stddev, wd):
    var = _variable_on_cpu(
        name, shape, tf.truncated_normal_initializer(stddev=stddev, dtype=tf.float32, seed=len(name))
    )
    if wd is not None:
        tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(var), wd, name="weight_loss"))
    return var


def inference(images):
    with tf.variable_scope("conv1") as scope:
        kernel = _variable_with_weight_decay("weights", shape=[3, 3, 3, 8], stddev=5e-2, wd=None)
        conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding="SAME")
        conv1 = tf.nn.relu(
            tf.nn.bias_add(conv, _variable_on_cpu("biases", [8], tf.constant_initializer(0.0))), name=scope.name
        )
        _activation_summary(conv1)
    pool1 = tf.nn.max_pool(conv1, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME", name="pool1")
    norm1 = tf.nn.lrn(pool1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name="norm1")
    with tf.variable_scope("local3") as scope:
        reshape = tf.reshape(norm1, [images.get_shape().as_list()[0], -1])
        dim = reshape.get_shape()[1].value
        weights = _variable_with_weight_decay("weights", shape=[dim, 10], stddev=0.04, wd=0.004)
        local3 = tf.nn.relu(
            tf.matmul(reshape, weights) + _variable_on_cpu("biases", [10], tf.constant_initializer(0.1)),
            name=scope.name,
        )
    with tf.variable_scope("softmax_linear") as scope:
        return tf.add(
            tf.matmul(local3, _variable_with_weight_decay("weights", [10, 10], 0.1, None)),
            _variable_on_cpu("biases", [10], tf.constant_initializer(0.0)),
            name=scope.name,
        )


def loss(logits, labels):
    ce = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.cast(labels, tf.int64), logits=logits, name="cross_entropy_per_example"
    )
    tf.add_to_collection("losses", tf.reduce_mean(ce, name="cross_entropy"))
    return tf.add_n(tf.get_collection("losses"), name="total_loss")


def tower_loss(scope, images, labels):
    logits = inference(images)
    _ = loss(logits, labels)
    losses = tf.get_collection("losses", scope)
    total_loss = tf.add_n(losses, name="total_loss")
    for l in losses + [total_loss]:
        tf.summary.scalar(re.sub("%s_[0-9]*/" % TOWER_NAME, "", l.op.name), l)
    return total_loss


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        grad = tf.reduce_mean(tf.concat(axis=0, values=grads), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads


class LocalDistributed(tf.train.Optimizer):
    """hvd.DistributedOptimizer look-alike"""

    def __init__(self, optimizer, name=None, use_locking=False):
        self._optimizer = optimizer
        super(LocalDistributed, self).__init__(
            name="Distributed" + type(optimizer).__name__ if name is None else name, use_locking=use_locking
        )

    def compute_gradients(self, *args, **kwargs):
        gradients = self._optimizer.compute_gradients(*args, **kwargs)
        out = []
        for grad, var in gradients:
            if isinstance(grad, tf.IndexedSlices):
                grad = tf.IndexedSlices(tf.div(grad.values, 1.0), grad.indices, dense_shape=grad.dense_shape)
            out.append((grad, var))
        return out

    def apply_gradients(self, *a, **k):
        return self._optimizer.apply_gradients(*a, **k)

    def get_slot(self, *a, **k):
        return self._optimizer.get_slot(*a, **k)

    def get_slot_names(self, *a, **k):
        return self._optimizer.get_slot_names(*a, **k)

    def variables(self, *a, **k):
        return self._optimizer.variables(*a, **k)


class AdaBound(tf.train.Optimizer):
    def __init__(self, lr=0.001, final_lr=0.1, beta1=0.9, beta2=0.999, gamma=1e-3, use_locking=False, name="AdaBound"):
        super(AdaBound, self).__init__(use_locking, name)
        self._lr, self._final, self._b1, self._b2, self._g = lr, final_lr, beta1, beta2, gamma

    def _get_beta_accumulators(self):
        g = tf.get_default_graph()
        return self._get_non_slot_variable("beta1_power", graph=g), self._get_non_slot_variable("beta2_power", graph=g)

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda x: x.name)
        self._create_non_slot_variable(initial_value=self._b1, name="beta1_power", colocate_with=first)
        self._create_non_slot_variable(initial_value=self._b2, name="beta2_power", colocate_with=first)
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self):
        self._lr_t = tf.convert_to_tensor(self._lr)
        self._b1_t = tf.convert_to_tensor(self._b1)
        self._b2_t = tf.convert_to_tensor(self._b2)

    def _apply_dense(self, grad, var):
        b1p, b2p = self._get_beta_accumulators()
        b1p = tf.cast(b1p, var.dtype.base_dtype)
        b2p = tf.cast(b2p, var.dtype.base_dtype)
        lr = self._lr_t * tf.sqrt(1 - b2p) / (1 - b1p)
        m = self.get_slot(var, "m")
        m_t = tf.assign(m, m * self._b1_t + grad * (1 - self._b1_t), use_locking=self._use_locking)
        v = self.get_slot(var, "v")
        v_t = tf.assign(v, v * self._b2_t + (grad * grad) * (1 - self._b2_t), use_locking=self._use_locking)
        step = tf.clip_by_value(lr / (tf.sqrt(v_t) + 1e-8), self._final * 0.5, self._final * 2)
        up = tf.assign_sub(var, m_t * step, use_locking=self._use_locking)
        return tf.group(*[up, m_t, v_t])

    def _resource_apply_dense(self, grad, var):
        return self._apply_dense(grad, var)

    def _apply_sparse(self, grad, var):
        return self._apply_dense(tf.convert_to_tensor(grad), var)

    def _finish(self, update_ops, name_scope):
        with tf.control_dependencies(update_ops):
            a, b = self._get_beta_accumulators()
            with tf.colocate_with(a):
                ua = a.assign(a * self._b1_t)
                ub = b.assign(b * self._b2_t)
        return tf.group(*update_ops + [ua, ub], name=name_scope)


def train():
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
        lr = tf.train.exponential_decay(0.1, global_step, 3, 0.5, staircase=True)
        opt = tf.train.GradientDescentOptimizer(lr)
        images, labels = inputs()
        batch_queue = (
            tf.contrib.slim.prefetch_queue.prefetch_queue([images, labels], capacity=2 * FLAGS.num_gpus)
            if False
            else None
        )
        tower_grads = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in range(FLAGS.num_gpus):
                with tf.device("/gpu:%d" % i):
                    with tf.name_scope("%s_%d" % (TOWER_NAME, i)) as scope:
                        l = tower_loss(scope, images[i * 2 : i * 2 + 2], labels[i * 2 : i * 2 + 2])
                        tf.get_variable_scope().reuse_variables()
                        summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)
                        grads = opt.compute_gradients(l)
                        tower_grads.append(grads)
        grads = average_gradients(tower_grads)
        summaries.append(tf.summary.scalar("learning_rate", lr))
        for grad, var in grads:
            if grad is not None:
                summaries.append(tf.summary.histogram(var.op.name + "/gradients", grad))
        apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
        variable_averages = tf.train.ExponentialMovingAverage(0.99, global_step)
        train_op = tf.group(apply_gradient_op, variable_averages.apply(tf.trainable_variables()))
        saver = tf.train.Saver(tf.global_variables())
        summary_op = tf.summary.merge(summaries)
        sess = tf.Session(
            config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=FLAGS.log_device_placement)
        )
        sess.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        w = tf.summary.FileWriter(FLAGS.train_dir, sess.graph)
        for step in range(FLAGS.max_steps):
            _, lv = sess.run([train_op, l])
            assert not np.isnan(lv)
            print("step %d, loss = %.4f" % (step, lv))
        w.add_summary(sess.run(summary_op), step)
        saver.save(sess, os.path.join(FLAGS.train_dir, "model.ckpt"), global_step=step)
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=10)
        print(len(summaries), sorted(v.op.name for v in tf.moving_average_variables())[:2])
    with tf.Graph().as_default() as g:
        emb = tf.get_variable("e", [6, 3], initializer=tf.random_normal_initializer(seed=1))
        w = tf.get_variable("w", initializer=tf.ones([3, 1]))
        y = tf.matmul(tf.nn.embedding_lookup(emb, [0, 2, 2]), w)
        ls = tf.reduce_mean(tf.square(y - 1.0))
        ops = [LocalDistributed(tf.train.AdamOptimizer(0.1)).minimize(ls), AdaBound().minimize(ls)]
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            for o in ops:
                for _ in range(3):
                    s.run(o)
                    print("%.5f" % s.run(ls))
            print([v.name for v in tf.global_variables()])


def main(argv=None):
    r = np.random.RandomState(0)
    for i in (1, 2):
        open("data_batch_%d.bin" % i, "wb").write(
            b"".join(bytes([r.randint(10)]) + r.randint(0, 255, 192).astype(np.uint8).tobytes() for _ in range(8))
        )
    if tf.gfile.Exists(FLAGS.train_dir):
        tf.gfile.DeleteRecursively(FLAGS.train_dir)
    tf.gfile.MakeDirs(FLAGS.train_dir)
    train()


if __name__ == "__main__":
    tf.app.run()
