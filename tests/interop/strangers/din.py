import random, pickle, sys, time
import numpy as np
import tensorflow as tf


def prelu(_x, scope=""):
    with tf.variable_scope(name_or_scope=scope, default_name="prelu"):
        _alpha = tf.get_variable(
            "prelu_" + scope, shape=_x.get_shape()[-1], dtype=_x.dtype, initializer=tf.constant_initializer(0.1)
        )
        return tf.maximum(0.0, _x) + _alpha * tf.minimum(0.0, _x)


def dice(_x, axis=-1, epsilon=0.000000001, name=""):
    with tf.variable_scope(name_or_scope="", reuse=tf.AUTO_REUSE):
        alphas = tf.get_variable(
            "alpha" + name, _x.get_shape()[-1], initializer=tf.constant_initializer(0.0), dtype=tf.float32
        )
    input_shape = list(_x.get_shape())
    reduction_axes = list(range(len(input_shape)))
    del reduction_axes[axis]
    broadcast_shape = [1] * len(input_shape)
    broadcast_shape[axis] = input_shape[axis]
    mean = tf.reduce_mean(_x, axis=reduction_axes)
    brodcast_mean = tf.reshape(mean, broadcast_shape)
    std = tf.reduce_mean(tf.square(_x - brodcast_mean) + epsilon, axis=reduction_axes)
    std = tf.sqrt(std)
    brodcast_std = tf.reshape(std, broadcast_shape)
    x_normed = tf.layers.batch_normalization(_x, center=False, scale=False, name="dice_bn" + name, reuse=tf.AUTO_REUSE)
    x_p = tf.sigmoid(x_normed)
    return alphas * (1.0 - x_p) * _x + x_p * _x


def attention(queries, keys, keys_length):
    queries_hidden_units = queries.get_shape().as_list()[-1]
    queries = tf.tile(queries, [1, tf.shape(keys)[1]])
    queries = tf.reshape(queries, [-1, tf.shape(keys)[1], queries_hidden_units])
    din_all = tf.concat([queries, keys, queries - keys, queries * keys], axis=-1)
    d1 = tf.layers.dense(din_all, 8, activation=tf.nn.sigmoid, name="f1_att", reuse=tf.AUTO_REUSE)
    d3 = tf.layers.dense(d1, 1, activation=None, name="f3_att", reuse=tf.AUTO_REUSE)
    outputs = tf.reshape(d3, [-1, 1, tf.shape(keys)[1]])
    key_masks = tf.sequence_mask(keys_length, tf.shape(keys)[1])
    key_masks = tf.expand_dims(key_masks, 1)
    paddings = tf.ones_like(outputs) * (-(2**32) + 1)
    outputs = tf.where(key_masks, outputs, paddings)
    outputs = outputs / (keys.get_shape().as_list()[-1] ** 0.5)
    outputs = tf.nn.softmax(outputs)
    return tf.matmul(outputs, keys)


class Model(object):
    def __init__(self, user_count, item_count, cate_count, cate_list):
        self.i = tf.placeholder(
            tf.int32,
            [
                None,
            ],
        )
        self.j = tf.placeholder(
            tf.int32,
            [
                None,
            ],
        )
        self.y = tf.placeholder(
            tf.float32,
            [
                None,
            ],
        )
        self.hist_i = tf.placeholder(tf.int32, [None, None])
        self.sl = tf.placeholder(
            tf.int32,
            [
                None,
            ],
        )
        self.lr = tf.placeholder(tf.float64, [])
        hidden_units = 8
        item_emb_w = tf.get_variable("item_emb_w", [item_count, hidden_units // 2])
        item_b = tf.get_variable("item_b", [item_count], initializer=tf.constant_initializer(0.0))
        cate_emb_w = tf.get_variable("cate_emb_w", [cate_count, hidden_units // 2])
        cate_list = tf.convert_to_tensor(cate_list, dtype=tf.int64)

        def emb(i):
            return tf.concat(
                [tf.nn.embedding_lookup(item_emb_w, i), tf.nn.embedding_lookup(cate_emb_w, tf.gather(cate_list, i))], -1
            )

        i_emb, i_b, j_emb, j_b, h_emb = (
            emb(self.i),
            tf.gather(item_b, self.i),
            emb(self.j),
            tf.gather(item_b, self.j),
            emb(self.hist_i),
        )
        hist = tf.layers.batch_normalization(inputs=tf.reshape(attention(i_emb, h_emb, self.sl), [-1, hidden_units]))
        hist = tf.reshape(hist, [-1, hidden_units], name="hist_bn")
        u_emb_i = tf.layers.dense(hist, hidden_units, name="hist_fcn")
        hist_j = tf.reshape(attention(j_emb, h_emb, self.sl), [-1, hidden_units])
        hist_j = tf.layers.batch_normalization(inputs=hist_j, reuse=tf.AUTO_REUSE, name="hist_bn_j")
        u_emb_j = tf.layers.dense(hist_j, hidden_units, name="hist_fcn", reuse=True)

        def fcn(u, e, reuse):
            din = tf.concat([u, e, u * e], axis=-1)
            din = tf.layers.batch_normalization(inputs=din, name="b1", reuse=reuse)
            d1 = tf.layers.dense(din, 16, activation=None, name="f1", reuse=reuse)
            d1 = dice(d1, name="dice_1")
            d2 = prelu(tf.layers.dense(d1, 8, activation=None, name="f2", reuse=reuse), scope="p%d" % bool(reuse))
            return tf.reshape(tf.layers.dense(d2, 1, activation=None, name="f3", reuse=reuse), [-1])

        d_i, d_j = fcn(u_emb_i, i_emb, None), fcn(u_emb_j, j_emb, True)
        x = i_b - j_b + d_i - d_j
        self.logits = i_b + d_i
        self.mf_auc = tf.reduce_mean(tf.to_float(x > 0))
        self.global_step = tf.Variable(0, trainable=False, name="global_step")
        self.global_epoch_step = tf.Variable(0, trainable=False, name="global_epoch_step")
        self.global_epoch_step_op = tf.assign(self.global_epoch_step, self.global_epoch_step + 1)
        self.loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=self.logits, labels=self.y))
        trainable_params = tf.trainable_variables()
        self.opt = tf.train.GradientDescentOptimizer(learning_rate=self.lr)
        gradients = tf.gradients(self.loss, trainable_params)
        clip_gradients, _ = tf.clip_by_global_norm(gradients, 5)
        self.train_op = self.opt.apply_gradients(zip(clip_gradients, trainable_params), global_step=self.global_step)

    def train(self, sess, uij, l):
        loss, _ = sess.run(
            [self.loss, self.train_op],
            feed_dict={
                self.i: uij[0],
                self.j: uij[0][::-1],
                self.y: uij[1],
                self.hist_i: uij[2],
                self.sl: uij[3],
                self.lr: l,
            },
        )
        return loss

    def save(self, sess, path):
        tf.train.Saver().save(sess, save_path=path)

    def restore(self, sess, path):
        tf.train.Saver().restore(sess, save_path=path)


random.seed(1234)
np.random.seed(1234)
tf.set_random_seed(1234)
gpu_options = tf.GPUOptions(allow_growth=True)
with tf.Session(config=tf.ConfigProto(gpu_options=gpu_options)) as sess:
    model = Model(10, 20, 5, [i % 5 for i in range(20)])
    sess.run(tf.global_variables_initializer())
    sess.run(tf.local_variables_initializer())
    lr = 1.0
    for e in range(8):
        sl = np.random.randint(1, 6, 12)
        hist = np.zeros([12, sl.max()], np.int64)
        for k in range(12):
            hist[k, : sl[k]] = np.random.randint(0, 20, sl[k])
        i = np.random.randint(0, 20, 12)
        print("%.6f" % model.train(sess, (i, (i % 2).tolist(), hist, sl), lr))
        model.global_epoch_step_op.eval()
    model.save(sess, "din_ckpt/m") if tf.gfile.MakeDirs("din_ckpt") is None else None
    model.restore(sess, "din_ckpt/m")
    print(model.global_step.eval(), model.global_epoch_step.eval(session=sess))
