"""openai/baselines style tf_util + distributions + a2c/acktr-like model"""

import copy, os, functools, collections, multiprocessing
import os.path as osp
import numpy as np
import tensorflow as tf


def switch(condition, then_expression, else_expression):
    x_shape = copy.copy(then_expression.get_shape())
    x = tf.cond(tf.cast(condition, "bool"), lambda: then_expression, lambda: else_expression)
    x.set_shape(x_shape)
    return x


def lrelu(x, leak=0.2):
    f1 = 0.5 * (1 + leak)
    f2 = 0.5 * (1 - leak)
    return f1 * x + f2 * abs(x)


def huber_loss(x, delta=1.0):
    return tf.where(tf.abs(x) < delta, tf.square(x) * 0.5, delta * (tf.abs(x) - 0.5 * delta))


def get_session(config=None):
    sess = tf.get_default_session()
    if sess is None:
        sess = make_session(config=config, make_default=True)
    return sess


def make_session(config=None, num_cpu=None, make_default=False, graph=None):
    if num_cpu is None:
        num_cpu = int(os.getenv("RCALL_NUM_CPU", multiprocessing.cpu_count()))
    if config is None:
        config = tf.ConfigProto(
            allow_soft_placement=True, inter_op_parallelism_threads=num_cpu, intra_op_parallelism_threads=num_cpu
        )
        config.gpu_options.allow_growth = True
    if make_default:
        return tf.InteractiveSession(config=config, graph=graph)
    return tf.Session(config=config, graph=graph)


ALREADY_INITIALIZED = set()


def initialize():
    new_variables = set(tf.global_variables()) - ALREADY_INITIALIZED
    get_session().run(tf.variables_initializer(new_variables))
    ALREADY_INITIALIZED.update(new_variables)


def normc_initializer(std=1.0, axis=0):
    def _initializer(shape, dtype=None, partition_info=None):
        out = np.random.RandomState(7).randn(*shape).astype(dtype.as_numpy_dtype)
        out *= std / np.sqrt(np.square(out).sum(axis=axis, keepdims=True))
        return tf.constant(out)

    return _initializer


def ortho_init(scale=1.0):
    def _ortho_init(shape, dtype, partition_info=None):
        shape = tuple(shape)
        if len(shape) == 2:
            flat_shape = shape
        elif len(shape) == 4:
            flat_shape = (np.prod(shape[:-1]), shape[-1])
        else:
            raise NotImplementedError
        a = np.random.RandomState(3).normal(0.0, 1.0, flat_shape)
        u, _, v = np.linalg.svd(a, full_matrices=False)
        q = u if u.shape == flat_shape else v
        q = q.reshape(shape)
        return (scale * q[: shape[0], : shape[1]]).astype(np.float32)

    return _ortho_init


def conv(x, scope, *, nf, rf, stride, pad="VALID", init_scale=1.0, data_format="NHWC", one_dim_bias=False):
    channel_ax = 3
    strides = [1, stride, stride, 1]
    bshape = [1, 1, 1, nf]
    bias_var_shape = [nf] if one_dim_bias else [1, nf, 1, 1]
    nin = x.get_shape()[channel_ax].value
    wshape = [rf, rf, nin, nf]
    with tf.variable_scope(scope):
        w = tf.get_variable("w", wshape, initializer=ortho_init(init_scale))
        b = tf.get_variable("b", bias_var_shape, initializer=tf.constant_initializer(0.0))
        if not one_dim_bias and data_format == "NHWC":
            b = tf.reshape(b, bshape)
        return tf.nn.conv2d(x, w, strides=strides, padding=pad, data_format=data_format) + b


def fc(x, scope, nh, *, init_scale=1.0, init_bias=0.0):
    with tf.variable_scope(scope):
        nin = x.get_shape()[1].value
        w = tf.get_variable("w", [nin, nh], initializer=ortho_init(init_scale))
        b = tf.get_variable("b", [nh], initializer=tf.constant_initializer(init_bias))
        return tf.matmul(x, w) + b


def batch_to_seq(h, nbatch, nsteps, flat=False):
    h = tf.reshape(h, [nbatch, nsteps]) if flat else tf.reshape(h, [nbatch, nsteps, -1])
    return [tf.squeeze(v, [1]) for v in tf.split(axis=1, num_or_size_splits=nsteps, value=h)]


def seq_to_batch(h, flat=False):
    shape = h[0].get_shape().as_list()
    if not flat:
        assert len(shape) > 1
        nh = h[0].get_shape()[-1].value
        return tf.reshape(tf.concat(axis=1, values=h), [-1, nh])
    return tf.reshape(tf.stack(values=h, axis=1), [-1])


def lstm(xs, ms, s, scope, nh, init_scale=1.0):
    nbatch, nin = [v.value for v in xs[0].get_shape()]
    with tf.variable_scope(scope):
        wx = tf.get_variable("wx", [nin, nh * 4], initializer=ortho_init(init_scale))
        wh = tf.get_variable("wh", [nh, nh * 4], initializer=ortho_init(init_scale))
        b = tf.get_variable("b", [nh * 4], initializer=tf.constant_initializer(0.0))
    c, h = tf.split(axis=1, num_or_size_splits=2, value=s)
    for idx, (x, m) in enumerate(zip(xs, ms)):
        c = c * (1 - m)
        h = h * (1 - m)
        z = tf.matmul(x, wx) + tf.matmul(h, wh) + b
        i, f, o, u = tf.split(axis=1, num_or_size_splits=4, value=z)
        i, f, o, u = tf.nn.sigmoid(i), tf.nn.sigmoid(f), tf.nn.sigmoid(o), tf.tanh(u)
        c = f * c + i * u
        h = o * tf.tanh(c)
        xs[idx] = h
    s = tf.concat(axis=1, values=[c, h])
    return xs, s


def function(inputs, outputs, updates=None, givens=None):
    if isinstance(outputs, list):
        return _Function(inputs, outputs, updates, givens=givens)
    elif isinstance(outputs, (dict, collections.OrderedDict)):
        f = _Function(inputs, outputs.values(), updates, givens=givens)
        return lambda *args, **kwargs: type(outputs)(zip(outputs.keys(), f(*args, **kwargs)))
    f = _Function(inputs, [outputs], updates, givens=givens)
    return lambda *args, **kwargs: f(*args, **kwargs)[0]


class _Function(object):
    def __init__(self, inputs, outputs, updates, givens):
        for inpt in inputs:
            if not hasattr(inpt, "make_feed_dict") and not (isinstance(inpt, tf.Tensor) and len(inpt.op.inputs) == 0):
                assert False, "inputs should all be placeholders, constants, or have a make_feed_dict method"
        self.inputs = inputs
        self.input_names = {inp.name.split("/")[-1].split(":")[0]: inp for inp in inputs}
        updates = updates or []
        self.update_group = tf.group(*updates)
        self.outputs_update = list(outputs) + [self.update_group]
        self.givens = {} if givens is None else givens

    def _feed_input(self, feed_dict, inpt, value):
        feed_dict[inpt] = value

    def __call__(self, *args, **kwargs):
        feed_dict = {}
        for inpt in self.givens:
            feed_dict[inpt] = feed_dict.get(inpt, self.givens[inpt])
        for inpt, value in zip(self.inputs, args):
            self._feed_input(feed_dict, inpt, value)
        for inpt_name, value in kwargs.items():
            self._feed_input(feed_dict, self.input_names[inpt_name], value)
        return get_session().run(self.outputs_update, feed_dict=feed_dict)[:-1]


def var_shape(x):
    out = x.get_shape().as_list()
    assert all(isinstance(a, int) for a in out)
    return out


def numel(x):
    return intprod(var_shape(x))


def intprod(x):
    return int(np.prod(x))


def flatgrad(loss, var_list, clip_norm=None):
    grads = tf.gradients(loss, var_list)
    if clip_norm is not None:
        grads = [tf.clip_by_norm(grad, clip_norm=clip_norm) for grad in grads]
    return tf.concat(
        axis=0,
        values=[
            tf.reshape(grad if grad is not None else tf.zeros_like(v), [numel(v)]) for (v, grad) in zip(var_list, grads)
        ],
    )


class SetFromFlat(object):
    def __init__(self, var_list, dtype=tf.float32):
        assigns = []
        shapes = list(map(var_shape, var_list))
        total_size = np.sum([intprod(shape) for shape in shapes])
        self.theta = theta = tf.placeholder(dtype, [total_size])
        start = 0
        for shape, v in zip(shapes, var_list):
            size = intprod(shape)
            assigns.append(tf.assign(v, tf.reshape(theta[start : start + size], shape)))
            start += size
        self.op = tf.group(*assigns)

    def __call__(self, theta):
        tf.get_default_session().run(self.op, feed_dict={self.theta: theta})


class GetFlat(object):
    def __init__(self, var_list):
        self.op = tf.concat(axis=0, values=[tf.reshape(v, [numel(v)]) for v in var_list])

    def __call__(self):
        return tf.get_default_session().run(self.op)


class CategoricalPd(object):
    def __init__(self, logits):
        self.logits = logits

    def mode(self):
        return tf.argmax(self.logits, axis=-1)

    def neglogp(self, x):
        x = tf.one_hot(x, self.logits.get_shape().as_list()[-1])
        return tf.nn.softmax_cross_entropy_with_logits_v2(logits=self.logits, labels=x)

    def kl(self, other):
        a0 = self.logits - tf.reduce_max(self.logits, axis=-1, keepdims=True)
        a1 = other.logits - tf.reduce_max(other.logits, axis=-1, keepdims=True)
        ea0 = tf.exp(a0)
        ea1 = tf.exp(a1)
        z0 = tf.reduce_sum(ea0, axis=-1, keepdims=True)
        z1 = tf.reduce_sum(ea1, axis=-1, keepdims=True)
        p0 = ea0 / z0
        return tf.reduce_sum(p0 * (a0 - tf.log(z0) - a1 + tf.log(z1)), axis=-1)

    def entropy(self):
        a0 = self.logits - tf.reduce_max(self.logits, axis=-1, keepdims=True)
        ea0 = tf.exp(a0)
        z0 = tf.reduce_sum(ea0, axis=-1, keepdims=True)
        p0 = ea0 / z0
        return tf.reduce_sum(p0 * (tf.log(z0) - a0), axis=-1)

    def sample(self):
        u = tf.random_uniform(tf.shape(self.logits), dtype=self.logits.dtype, seed=9)
        return tf.argmax(self.logits - tf.log(-tf.log(u)), axis=-1)


class RunningMeanStd(object):
    def __init__(self, epsilon=1e-4, shape=(), scope=""):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            self._sum = tf.get_variable(
                dtype=tf.float64,
                shape=shape,
                initializer=tf.constant_initializer(0.0),
                name="runningsum",
                trainable=False,
            )
            self._sumsq = tf.get_variable(
                dtype=tf.float64,
                shape=shape,
                initializer=tf.constant_initializer(epsilon),
                name="runningsumsq",
                trainable=False,
            )
            self._count = tf.get_variable(
                dtype=tf.float64, shape=(), initializer=tf.constant_initializer(epsilon), name="count", trainable=False
            )
        self.mean = tf.to_float(self._sum / self._count)
        self.std = tf.sqrt(tf.maximum(tf.to_float(self._sumsq / self._count) - tf.square(self.mean), 1e-2))
        newsum = tf.placeholder(shape=shape, dtype=tf.float64, name="sum")
        newsumsq = tf.placeholder(shape=shape, dtype=tf.float64, name="var")
        newcount = tf.placeholder(shape=[], dtype=tf.float64, name="count")
        self.incfiltparams = function(
            [newsum, newsumsq, newcount],
            [],
            updates=[
                tf.assign_add(self._sum, newsum),
                tf.assign_add(self._sumsq, newsumsq),
                tf.assign_add(self._count, newcount),
            ],
        )

    def update(self, x):
        self.incfiltparams(x.sum(axis=0), np.square(x).sum(axis=0), np.array(len(x), dtype="float64"))


nenv, nsteps, nact = 2, 4, 3
sess = get_session()


def policy(nbatch, nsteps, reuse=False):
    X = tf.placeholder(tf.uint8, (nbatch, 10, 10, 2))
    M = tf.placeholder(tf.float32, [nbatch])
    S = tf.placeholder(tf.float32, [nenv, 12])
    with tf.variable_scope("model", reuse=reuse):
        h = tf.nn.relu(conv(tf.cast(X, tf.float32) / 255.0, "c1", nf=4, rf=4, stride=2, init_scale=np.sqrt(2)))
        h = tf.reshape(h, [-1, np.prod(h.get_shape().as_list()[1:])])
        h = lrelu(fc(h, "fc1", nh=6, init_scale=np.sqrt(2)))
        xs = batch_to_seq(h, nenv, nsteps)
        ms = batch_to_seq(M, nenv, nsteps)
        h5, snew = lstm(xs, ms, S, "lstm1", nh=6)
        h5 = seq_to_batch(h5)
        pi = fc(h5, "pi", nact)
        vf = fc(h5, "v", 1)
    return X, M, S, pi, vf[:, 0], snew


act = policy(nenv, 1)
trn = policy(nenv * nsteps, nsteps, True)
A = tf.placeholder(tf.int32, [nenv * nsteps])
ADV = tf.placeholder(tf.float32, [nenv * nsteps])
R = tf.placeholder(tf.float32, [nenv * nsteps])
LR = tf.placeholder(tf.float32, [])
pd = CategoricalPd(trn[3])
neglogpac = pd.neglogp(A)
pg_loss = tf.reduce_mean(ADV * neglogpac)
vf_loss = tf.reduce_mean(huber_loss(trn[4] - R))
entropy = tf.reduce_mean(pd.entropy())
loss = pg_loss - entropy * 0.01 + vf_loss * 0.5
params = tf.trainable_variables("model")
grads = tf.gradients(loss, params)
grads, grad_norm = tf.clip_by_global_norm(grads, 0.5)
trainer = tf.train.RMSPropOptimizer(learning_rate=LR, decay=0.99, epsilon=1e-5)
_train = trainer.apply_gradients(list(zip(grads, params)))
fg = flatgrad(loss, params, 1.0)
tangent = tf.placeholder(tf.float32, [None])
kl = tf.reduce_mean(pd.kl(CategoricalPd(tf.stop_gradient(trn[3]))))
klgrads = tf.gradients(kl, params)
shapes = [var_shape(v) for v in params]
start = 0
tangents = []
for sh in shapes:
    sz = intprod(sh)
    tangents.append(tf.reshape(tangent[start : start + sz], sh))
    start += sz
gvp = tf.add_n([tf.reduce_sum(g * t) for (g, t) in zip(klgrads, tangents) if g is not None])
fvp = tf.concat([tf.reshape(g, [-1]) for g in tf.gradients(gvp, params) if g is not None], 0)
rms = RunningMeanStd(shape=(3,), scope="obfilter")
initialize()
initialize()
rng = np.random.RandomState(0)
obs = rng.randint(0, 255, (nenv * nsteps, 10, 10, 2))
S = np.zeros((nenv, 12))
a, v, S2 = sess.run([CategoricalPd(act[3]).sample(), act[4], act[5]], {act[0]: obs[:2], act[1]: [0, 1], act[2]: S})
print(a, v, S2.sum())
fd = {
    trn[0]: obs,
    trn[1]: rng.randint(0, 2, 8),
    trn[2]: S,
    A: rng.randint(0, 3, 8),
    ADV: rng.randn(8),
    R: rng.randn(8),
    LR: 7e-3,
}
for i in range(4):
    print(sess.run([pg_loss, vf_loss, entropy, grad_norm, _train], fd)[:4])
flat = GetFlat(params)()
print(flat.shape, flat.sum())
g = sess.run(fg, fd)
print(np.linalg.norm(g))
print(np.linalg.norm(sess.run(fvp, {**fd, tangent: g})))
SetFromFlat(params)(flat * 0.5)
print(sess.run(loss, fd))
rms.update(rng.rand(5, 3))
print(sess.run([rms.mean, rms.std]))
f = function(
    [tf.placeholder(tf.float32, [], "x"), tf.placeholder_with_default(2.0, [], "y")] if False else [LR],
    {"a": LR * 2},
    updates=[],
)
print(f(3.0), switch(tf.constant(1), tf.constant([1.0]), tf.constant([2.0])).eval())
