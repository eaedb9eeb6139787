# ARGS: --mode=train --log_root=log --exp_name=exp --unknown=3
"""abisee/pointer-generator style."""

import sys, time, os, glob, queue, collections
from random import shuffle
from threading import Thread
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import array_ops, math_ops, nn_ops, variable_scope
from tensorflow.core.example import example_pb2
from tensorflow.python import debug as tf_debug

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_string("mode", "train", "must be one of train/eval/decode")
tf.app.flags.DEFINE_string("log_root", "", "Root directory for all logging.")
tf.app.flags.DEFINE_string("exp_name", "", "Name for experiment.")
tf.app.flags.DEFINE_integer("hidden_dim", 6, "dimension of RNN hidden states")
tf.app.flags.DEFINE_integer("emb_dim", 5, "dimension of word embeddings")
tf.app.flags.DEFINE_integer("batch_size", 3, "minibatch size")
tf.app.flags.DEFINE_integer("max_enc_steps", 7, "max timesteps of encoder")
tf.app.flags.DEFINE_integer("max_dec_steps", 4, "max timesteps of decoder")
tf.app.flags.DEFINE_float("lr", 0.15, "learning rate")
tf.app.flags.DEFINE_float("adagrad_init_acc", 0.1, "initial accumulator value for Adagrad")
tf.app.flags.DEFINE_float("rand_unif_init_mag", 0.2, "magnitude")
tf.app.flags.DEFINE_float("trunc_norm_init_std", 0.1, "std")
tf.app.flags.DEFINE_float("max_grad_norm", 2.0, "for gradient clipping")
tf.app.flags.DEFINE_boolean("pointer_gen", True, "pg")
tf.app.flags.DEFINE_boolean("debug", False, "Run in tensorflow's debug mode (watches for NaN/inf values)")


def linear(args, output_size, bias, bias_start=0.0, scope=None):
    if args is None or (isinstance(args, (list, tuple)) and not args):
        raise ValueError("`args` must be specified")
    if not isinstance(args, (list, tuple)):
        args = [args]
    total_arg_size = 0
    shapes = [a.get_shape().as_list() for a in args]
    for shape in shapes:
        total_arg_size += shape[1]
    with tf.variable_scope(scope or "Linear"):
        matrix = tf.get_variable("Matrix", [total_arg_size, output_size])
        if len(args) == 1:
            res = tf.matmul(args[0], matrix)
        else:
            res = tf.matmul(tf.concat(axis=1, values=args), matrix)
        if not bias:
            return res
        bias_term = tf.get_variable("Bias", [output_size], initializer=tf.constant_initializer(bias_start))
    return res + bias_term


def attention_decoder(decoder_inputs, initial_state, encoder_states, enc_padding_mask, cell):
    with variable_scope.variable_scope("attention_decoder") as scope:
        batch_size = encoder_states.get_shape()[0].value
        attn_size = encoder_states.get_shape()[2].value
        encoder_states = tf.expand_dims(encoder_states, axis=2)
        attention_vec_size = attn_size
        W_h = variable_scope.get_variable("W_h", [1, 1, attn_size, attention_vec_size])
        encoder_features = nn_ops.conv2d(encoder_states, W_h, [1, 1, 1, 1], "SAME")
        v = variable_scope.get_variable("v", [attention_vec_size])

        def attention(decoder_state):
            with variable_scope.variable_scope("Attention"):
                decoder_features = linear(decoder_state, attention_vec_size, True)
                decoder_features = tf.expand_dims(tf.expand_dims(decoder_features, 1), 1)

                def masked_attention(e):
                    attn_dist = nn_ops.softmax(e)
                    attn_dist *= enc_padding_mask
                    masked_sums = tf.reduce_sum(attn_dist, axis=1)
                    return attn_dist / tf.reshape(masked_sums, [-1, 1])

                e = math_ops.reduce_sum(v * math_ops.tanh(encoder_features + decoder_features), [2, 3])
                attn_dist = masked_attention(e)
                context_vector = math_ops.reduce_sum(
                    array_ops.reshape(attn_dist, [batch_size, -1, 1, 1]) * encoder_states, [1, 2]
                )
                context_vector = array_ops.reshape(context_vector, [-1, attn_size])
            return context_vector, attn_dist

        outputs, attn_dists, p_gens = [], [], []
        state = initial_state
        context_vector = array_ops.zeros([batch_size, attn_size])
        context_vector.set_shape([None, attn_size])
        for i, inp in enumerate(decoder_inputs):
            if i > 0:
                variable_scope.get_variable_scope().reuse_variables()
            input_size = inp.get_shape().with_rank(2)[1]
            if input_size.value is None:
                raise ValueError("Could not infer input size from input: %s" % inp.name)
            x = linear([inp] + [context_vector], input_size, True)
            cell_output, state = cell(x, state)
            context_vector, attn_dist = attention(state)
            attn_dists.append(attn_dist)
            with tf.variable_scope("calculate_pgen"):
                p_gen = tf.sigmoid(linear([context_vector, state.c, state.h, x], 1, True))
                p_gens.append(p_gen)
            with variable_scope.variable_scope("AttnOutputProjection"):
                output = linear([cell_output] + [context_vector], cell.output_size, True)
            outputs.append(output)
        return outputs, state, attn_dists, p_gens


class Model(object):
    def __init__(self, hps, vsize):
        self._hps, self._vsize = hps, vsize

    def build(self):
        hps = self._hps
        t0 = time.time()
        self.rand_unif_init = tf.random_uniform_initializer(-hps.rand_unif_init_mag, hps.rand_unif_init_mag, seed=123)
        self.trunc_norm_init = tf.truncated_normal_initializer(stddev=hps.trunc_norm_init_std, seed=5)
        self.enc_batch = tf.placeholder(tf.int32, [hps.batch_size, None], name="enc_batch")
        self.enc_lens = tf.placeholder(tf.int32, [hps.batch_size], name="enc_lens")
        self.enc_mask = tf.placeholder(tf.float32, [hps.batch_size, None], name="enc_padding_mask")
        self.ext = tf.placeholder(tf.int32, [hps.batch_size, None], name="enc_batch_extend_vocab")
        self.max_art_oovs = tf.placeholder(tf.int32, [], name="max_art_oovs")
        self.dec_batch = tf.placeholder(tf.int32, [hps.batch_size, hps.max_dec_steps], name="dec_batch")
        self.target_batch = tf.placeholder(tf.int32, [hps.batch_size, hps.max_dec_steps], name="target_batch")
        self.dec_mask = tf.placeholder(tf.float32, [hps.batch_size, hps.max_dec_steps], name="dec_padding_mask")
        with tf.variable_scope("seq2seq", initializer=self.trunc_norm_init):
            with tf.variable_scope("embedding"):
                embedding = tf.get_variable(
                    "embedding", [self._vsize, hps.emb_dim], dtype=tf.float32, initializer=self.trunc_norm_init
                )
                enc = tf.nn.embedding_lookup(embedding, self.enc_batch)
                dec = [tf.nn.embedding_lookup(embedding, x) for x in tf.unstack(self.dec_batch, axis=1)]
            with tf.variable_scope("encoder"):
                cell_fw = tf.nn.rnn_cell.LSTMCell(hps.hidden_dim, initializer=self.rand_unif_init, state_is_tuple=True)
                cell_bw = tf.nn.rnn_cell.LSTMCell(hps.hidden_dim, initializer=self.rand_unif_init, state_is_tuple=True)
                (eo, (fw_st, bw_st)) = tf.nn.bidirectional_dynamic_rnn(
                    cell_fw, cell_bw, enc, dtype=tf.float32, sequence_length=self.enc_lens, swap_memory=True
                )
                eo = tf.concat(axis=2, values=eo)
            with tf.variable_scope("reduce_final_st"):
                w = tf.get_variable("w_reduce_c", [hps.hidden_dim * 2, hps.hidden_dim])
                st = tf.nn.rnn_cell.LSTMStateTuple(
                    tf.nn.relu(tf.matmul(tf.concat(axis=1, values=[fw_st.c, bw_st.c]), w)),
                    tf.nn.relu(tf.matmul(tf.concat(axis=1, values=[fw_st.h, bw_st.h]), w)),
                )
            with tf.variable_scope("decoder"):
                cell = tf.nn.rnn_cell.LSTMCell(hps.hidden_dim, state_is_tuple=True, initializer=self.rand_unif_init)
                outs, _, attn, pg = attention_decoder(dec, st, eo, self.enc_mask, cell)
            with tf.variable_scope("output_projection"):
                w = tf.get_variable("w", [hps.hidden_dim, self._vsize], dtype=tf.float32)
                v = tf.get_variable("v", [self._vsize], dtype=tf.float32)
                scores = []
                for i, output in enumerate(outs):
                    if i > 0:
                        tf.get_variable_scope().reuse_variables()
                    scores.append(tf.nn.xw_plus_b(output, w, v))
                vd = [tf.nn.softmax(s) for s in scores]
            with tf.variable_scope("final_distribution"):
                vd = [p * d for (p, d) in zip(pg, vd)]
                ad = [(1 - p) * d for (p, d) in zip(pg, attn)]
                extended_vsize = self._vsize + self.max_art_oovs
                extra_zeros = tf.zeros((hps.batch_size, self.max_art_oovs))
                vd = [tf.concat(axis=1, values=[d, extra_zeros]) for d in vd]
                batch_nums = tf.range(0, limit=hps.batch_size)
                batch_nums = tf.expand_dims(batch_nums, 1)
                attn_len = tf.shape(self.ext)[1]
                batch_nums = tf.tile(batch_nums, [1, attn_len])
                indices = tf.stack((batch_nums, self.ext), axis=2)
                shape = [hps.batch_size, extended_vsize]
                proj = [tf.scatter_nd(indices, d, shape) for d in ad]
                final = [a + b for (a, b) in zip(vd, proj)]
            with tf.variable_scope("loss"):
                loss_per_step = []
                batch_nums = tf.range(0, limit=hps.batch_size)
                for dec_step, dist in enumerate(final):
                    targets = self.target_batch[:, dec_step]
                    gold = tf.gather_nd(dist, tf.stack((batch_nums, targets), axis=1))
                    loss_per_step.append(-tf.log(gold))
                dec_lens = tf.reduce_sum(self.dec_mask, axis=1)
                vals = [v * self.dec_mask[:, s] for s, v in enumerate(loss_per_step)]
                self.loss = tf.reduce_mean(sum(vals) / dec_lens)
                tf.summary.scalar("loss", self.loss)
                coverage = tf.zeros_like(attn[0])
                covs = []
                for a in attn:
                    covs.append(tf.reduce_sum(tf.minimum(a, coverage), [1]))
                    coverage += a
                self.cov = tf.reduce_mean(sum(c * self.dec_mask[:, i] for i, c in enumerate(covs)) / dec_lens)
        self.global_step = tf.Variable(0, name="global_step", trainable=False)
        tvars = tf.trainable_variables()
        gradients = tf.gradients(self.loss + self.cov, tvars, aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE)
        with tf.device("/gpu:0"):
            grads, global_norm = tf.clip_by_global_norm(gradients, hps.max_grad_norm)
        tf.summary.scalar("global_norm", global_norm)
        optimizer = tf.train.AdagradOptimizer(hps.lr, initial_accumulator_value=hps.adagrad_init_acc)
        with tf.device("/gpu:0"):
            self.train_op = optimizer.apply_gradients(
                zip(grads, tvars), global_step=self.global_step, name="train_step"
            )
        self._summaries = tf.summary.merge_all()


def get_config():
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    return config


def main(unused_argv):
    if len(unused_argv) > 2:
        raise Exception("Problem with flags: %s" % unused_argv)
    tf.logging.set_verbosity(tf.logging.ERROR)
    FLAGS.log_root = os.path.join(FLAGS.log_root, FLAGS.exp_name)
    if not os.path.exists(FLAGS.log_root):
        os.makedirs(FLAGS.log_root)
    hparam_list = [
        "mode",
        "lr",
        "adagrad_init_acc",
        "rand_unif_init_mag",
        "trunc_norm_init_std",
        "max_grad_norm",
        "hidden_dim",
        "emb_dim",
        "batch_size",
        "max_dec_steps",
        "max_enc_steps",
        "pointer_gen",
    ]
    hps_dict = {}
    for key, val in FLAGS.__flags.items():
        if key in hparam_list:
            hps_dict[key] = val.value if hasattr(val, "value") else val
    hps = collections.namedtuple("HParams", hps_dict.keys())(**hps_dict)
    tf.set_random_seed(111)
    model = Model(hps, 12)
    model.build()
    train_dir = os.path.join(FLAGS.log_root, "train")
    saver = tf.train.Saver(max_to_keep=3)
    sv = tf.train.Supervisor(
        logdir=train_dir,
        is_chief=True,
        saver=saver,
        summary_op=None,
        save_summaries_secs=60,
        save_model_secs=60,
        global_step=model.global_step,
    )
    summary_writer = sv.summary_writer
    sess_context_manager = sv.prepare_or_wait_for_session(config=get_config())
    rng = np.random.RandomState(0)
    with sess_context_manager as sess:
        if FLAGS.debug:
            sess = tf_debug.LocalCLIDebugWrapperSession(sess)
            sess.add_tensor_filter("has_inf_or_nan", tf_debug.has_inf_or_nan)
        for _ in range(5):
            lens = np.array([7, 5, 4])
            e = rng.randint(0, 12, (3, 7))
            fd = {
                model.enc_batch: e,
                model.enc_lens: lens,
                model.enc_mask: np.arange(7)[None] < lens[:, None],
                model.ext: np.where(e == 1, 13, e),
                model.max_art_oovs: 2,
                model.dec_batch: rng.randint(0, 12, (3, 4)),
                model.target_batch: rng.randint(0, 12, (3, 4)),
                model.dec_mask: np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]),
            }
            res = sess.run(
                {
                    "train_op": model.train_op,
                    "summaries": model._summaries,
                    "loss": model.loss,
                    "global_step": model.global_step,
                    "cov": model.cov,
                },
                fd,
            )
            print("loss: %f cov %f" % (res["loss"], res["cov"]))
            summary_writer.add_summary(res["summaries"], res["global_step"])
        summary_writer.flush()
    sv.stop()


if __name__ == "__main__":
    tf.app.run()
