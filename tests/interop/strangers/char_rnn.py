# ARGS: --model lstm --num_epochs 3 --save_dir char_rnn_save --log_dir char_rnn_logs
from __future__ import print_function
import argparse, time, os, codecs, collections

try:
    from six.moves import cPickle
except ImportError:
    import pickle as cPickle
import numpy as np
import tensorflow as tf

rnn = tf.nn.rnn_cell
try:
    from tensorflow.contrib import legacy_seq2seq
except ImportError:

    class legacy_seq2seq:
        @staticmethod
        def rnn_decoder(decoder_inputs, initial_state, cell, loop_function=None, scope=None):
            with tf.variable_scope(scope or "rnn_decoder"):
                state = initial_state
                outputs = []
                prev = None
                for i, inp in enumerate(decoder_inputs):
                    if loop_function is not None and prev is not None:
                        with tf.variable_scope("loop_function", reuse=True):
                            inp = loop_function(prev, i)
                    if i > 0:
                        tf.get_variable_scope().reuse_variables()
                    output, state = cell(inp, state)
                    outputs.append(output)
                    if loop_function is not None:
                        prev = output
            return outputs, state

        @staticmethod
        def sequence_loss_by_example(logits, targets, weights):
            l = [
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=g) * w
                for g, t, w in zip(logits, targets, weights)
            ]
            return tf.add_n(l) / (tf.add_n(weights) + 1e-12)


class Model:
    def __init__(self, args, training=True):
        self.args = args
        if not training:
            args.batch_size = 1
            args.seq_length = 1
        if args.model == "rnn":
            cell_fn = rnn.BasicRNNCell
        elif args.model == "gru":
            cell_fn = rnn.GRUCell
        elif args.model == "lstm":
            cell_fn = rnn.BasicLSTMCell
        cells = []
        for _ in range(args.num_layers):
            cell = cell_fn(args.rnn_size)
            if training and (args.output_keep_prob < 1.0 or args.input_keep_prob < 1.0):
                cell = rnn.DropoutWrapper(
                    cell, input_keep_prob=args.input_keep_prob, output_keep_prob=args.output_keep_prob
                )
            cells.append(cell)
        self.cell = cell = rnn.MultiRNNCell(cells, state_is_tuple=True)
        self.input_data = tf.placeholder(tf.int32, [args.batch_size, args.seq_length])
        self.targets = tf.placeholder(tf.int32, [args.batch_size, args.seq_length])
        self.initial_state = cell.zero_state(args.batch_size, tf.float32)
        with tf.variable_scope("rnnlm"):
            softmax_w = tf.get_variable("softmax_w", [args.rnn_size, args.vocab_size])
            softmax_b = tf.get_variable("softmax_b", [args.vocab_size])
        embedding = tf.get_variable("embedding", [args.vocab_size, args.rnn_size])
        inputs = tf.nn.embedding_lookup(embedding, self.input_data)
        inputs = tf.split(inputs, args.seq_length, 1)
        inputs = [tf.squeeze(input_, [1]) for input_ in inputs]

        def loop(prev, _):
            prev = tf.matmul(prev, softmax_w) + softmax_b
            prev_symbol = tf.stop_gradient(tf.argmax(prev, 1))
            return tf.nn.embedding_lookup(embedding, prev_symbol)

        outputs, last_state = legacy_seq2seq.rnn_decoder(
            inputs, self.initial_state, cell, loop_function=loop if not training else None, scope="rnnlm"
        )
        output = tf.reshape(tf.concat(outputs, 1), [-1, args.rnn_size])
        self.logits = tf.matmul(output, softmax_w) + softmax_b
        self.probs = tf.nn.softmax(self.logits)
        loss = legacy_seq2seq.sequence_loss_by_example(
            [self.logits], [tf.reshape(self.targets, [-1])], [tf.ones([args.batch_size * args.seq_length])]
        )
        with tf.name_scope("cost"):
            self.cost = tf.reduce_sum(loss) / args.batch_size / args.seq_length
        self.final_state = last_state
        self.lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), args.grad_clip)
        with tf.name_scope("optimizer"):
            optimizer = tf.train.AdamOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(zip(grads, tvars))
        tf.summary.histogram("logits", self.logits)
        tf.summary.histogram("loss", loss)
        tf.summary.scalar("train_loss", self.cost)

    def sample(self, sess, chars, vocab, num=20, prime="the ", sampling_type=0):
        state = sess.run(self.cell.zero_state(1, tf.float32))
        for char in prime[:-1]:
            x = np.zeros((1, 1))
            x[0, 0] = vocab[char]
            [state] = sess.run([self.final_state], {self.input_data: x, self.initial_state: state})
        ret = prime
        char = prime[-1]
        for _ in range(num):
            x = np.zeros((1, 1))
            x[0, 0] = vocab[char]
            [probs, state] = sess.run([self.probs, self.final_state], {self.input_data: x, self.initial_state: state})
            char = chars[np.argmax(probs[0])]
            ret += char
        return ret


parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
parser.add_argument("--save_dir", type=str, default="save")
parser.add_argument("--log_dir", type=str, default="logs")
parser.add_argument("--save_every", type=int, default=10)
parser.add_argument("--init_from", type=str, default=None)
parser.add_argument("--model", type=str, default="lstm")
parser.add_argument("--rnn_size", type=int, default=16)
parser.add_argument("--num_layers", type=int, default=2)
parser.add_argument("--seq_length", type=int, default=8)
parser.add_argument("--batch_size", type=int, default=4)
parser.add_argument("--num_epochs", type=int, default=50)
parser.add_argument("--grad_clip", type=float, default=5.0)
parser.add_argument("--learning_rate", type=float, default=0.02)
parser.add_argument("--decay_rate", type=float, default=0.97)
parser.add_argument("--output_keep_prob", type=float, default=1.0)
parser.add_argument("--input_keep_prob", type=float, default=0.9)
args = parser.parse_args()
text = "the rain in spain stays mainly in the plain and the train is late again " * 5
counter = collections.Counter(text)
chars, _ = zip(*sorted(counter.items(), key=lambda x: (-x[1], x[0])))
vocab = dict(zip(chars, range(len(chars))))
args.vocab_size = len(chars)
tensor = np.array(list(map(vocab.get, text)))
nb = int(tensor.size / (args.batch_size * args.seq_length))
tensor = tensor[: nb * args.batch_size * args.seq_length]
ydata = np.copy(tensor)
ydata[:-1] = tensor[1:]
ydata[-1] = tensor[0]
xb = np.split(tensor.reshape(args.batch_size, -1), nb, 1)
yb = np.split(ydata.reshape(args.batch_size, -1), nb, 1)
tf.set_random_seed(5)
model = Model(args)
with tf.Session() as sess:
    summaries = tf.summary.merge_all()
    writer = tf.summary.FileWriter(os.path.join(args.log_dir, "run"))
    writer.add_graph(sess.graph)
    sess.run(tf.global_variables_initializer())
    saver = tf.train.Saver(tf.global_variables())
    for e in range(args.num_epochs):
        sess.run(tf.assign(model.lr, args.learning_rate * (args.decay_rate**e)))
        state = sess.run(model.initial_state)
        for b in range(nb):
            feed = {model.input_data: xb[b], model.targets: yb[b]}
            for i, (c, h) in enumerate(model.initial_state):
                feed[c] = state[i].c
                feed[h] = state[i].h
            summ, train_loss, state, _ = sess.run([summaries, model.cost, model.final_state, model.train_op], feed)
            writer.add_summary(summ, e * nb + b)
            if b % 5 == 0:
                print("{}/{} (epoch {}), train_loss = {:.5f}".format(e * nb + b, args.num_epochs * nb, e, train_loss))
    saver.save(sess, os.path.join(args.save_dir, "model.ckpt"), global_step=e)
tf.reset_default_graph()
model = Model(args, training=False)
with tf.Session() as sess:
    tf.global_variables_initializer().run()
    saver = tf.train.Saver(tf.global_variables())
    ckpt = tf.train.get_checkpoint_state(args.save_dir)
    if ckpt and ckpt.model_checkpoint_path:
        saver.restore(sess, ckpt.model_checkpoint_path)
        print([vocab[c] for c in model.sample(sess, chars, vocab)])
