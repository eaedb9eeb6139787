# ARGS: --metatrain_iterations=4
"""cbfinn/maml style: map_fn over tasks, gradients of gradients, stop_grad flag"""

import numpy as np, sys, pickle, random
import tensorflow as tf
from tensorflow.python.platform import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("datasource", "sinusoid", "sinusoid or omniglot or miniimagenet")
flags.DEFINE_integer("metatrain_iterations", 15000, "number of metatraining iterations.")
flags.DEFINE_integer("meta_batch_size", 3, "number of tasks sampled per meta-update")
flags.DEFINE_float("meta_lr", 0.01, "the base learning rate of the generator")
flags.DEFINE_float("update_lr", 1e-2, "step size alpha for inner gradient update.")
flags.DEFINE_bool("stop_grad", False, "if True, do not use second derivatives in meta-optimization (for speed)")
flags.DEFINE_string("norm", "batch_norm", "batch_norm, layer_norm, or None")


def mse(pred, label):
    pred = tf.reshape(pred, [-1])
    label = tf.reshape(label, [-1])
    return tf.reduce_mean(tf.square(pred - label))


class MAML:
    def __init__(self, dim_input=1, dim_output=1, test_num_updates=3):
        self.dim_input, self.dim_output = dim_input, dim_output
        self.update_lr = FLAGS.update_lr
        self.meta_lr = tf.placeholder_with_default(FLAGS.meta_lr, ())
        self.dim_hidden = [10, 10]
        self.loss_func = mse
        self.test_num_updates = test_num_updates

    def construct_fc_weights(self):
        weights = {}
        weights["w1"] = tf.Variable(tf.truncated_normal([self.dim_input, 10], stddev=0.3, seed=1))
        weights["b1"] = tf.Variable(tf.zeros([10]))
        weights["w2"] = tf.Variable(tf.truncated_normal([10, 10], stddev=0.3, seed=2))
        weights["b2"] = tf.Variable(tf.zeros([10]))
        weights["w3"] = tf.Variable(tf.truncated_normal([10, 1], stddev=0.3, seed=3))
        weights["b3"] = tf.Variable(tf.zeros([1]))
        return weights

    def forward_fc(self, inp, weights, reuse=False):
        hidden = tf.nn.relu(tf.matmul(inp, weights["w1"]) + weights["b1"])
        hidden = tf.tanh(tf.matmul(hidden, weights["w2"]) + weights["b2"])
        return tf.matmul(hidden, weights["w3"]) + weights["b3"]

    def construct_model(self, input_tensors=None, prefix="metatrain_"):
        self.inputa = tf.placeholder(tf.float32)
        self.inputb = tf.placeholder(tf.float32)
        self.labela = tf.placeholder(tf.float32)
        self.labelb = tf.placeholder(tf.float32)
        with tf.variable_scope("model", reuse=None) as training_scope:
            if "weights" in dir(self):
                training_scope.reuse_variables()
                weights = self.weights
            else:
                self.weights = weights = self.construct_fc_weights()
            num_updates = self.test_num_updates

            def task_metalearn(inp, reuse=True):
                inputa, inputb, labela, labelb = inp
                task_outputbs, task_lossesb = [], []
                task_outputa = self.forward_fc(inputa, weights, reuse=reuse)
                task_lossa = self.loss_func(task_outputa, labela)
                grads = tf.gradients(task_lossa, list(weights.values()))
                if FLAGS.stop_grad:
                    grads = [tf.stop_gradient(grad) for grad in grads]
                gradients = dict(zip(weights.keys(), grads))
                fast_weights = dict(
                    zip(weights.keys(), [weights[key] - self.update_lr * gradients[key] for key in weights.keys()])
                )
                output = self.forward_fc(inputb, fast_weights, reuse=True)
                task_outputbs.append(output)
                task_lossesb.append(self.loss_func(output, labelb))
                for j in range(num_updates - 1):
                    loss = self.loss_func(self.forward_fc(inputa, fast_weights, reuse=True), labela)
                    grads = tf.gradients(loss, list(fast_weights.values()))
                    gradients = dict(zip(fast_weights.keys(), grads))
                    fast_weights = dict(
                        zip(
                            fast_weights.keys(),
                            [fast_weights[key] - self.update_lr * gradients[key] for key in fast_weights.keys()],
                        )
                    )
                    output = self.forward_fc(inputb, fast_weights, reuse=True)
                    task_outputbs.append(output)
                    task_lossesb.append(self.loss_func(output, labelb))
                return [task_outputa, task_outputbs, task_lossa, task_lossesb]

            out_dtype = [tf.float32, [tf.float32] * num_updates, tf.float32, [tf.float32] * num_updates]
            result = tf.map_fn(
                task_metalearn,
                elems=(self.inputa, self.inputb, self.labela, self.labelb),
                dtype=out_dtype,
                parallel_iterations=FLAGS.meta_batch_size,
            )
            outputas, outputbs, lossesa, lossesb = result
        self.total_loss1 = total_loss1 = tf.reduce_sum(lossesa) / tf.to_float(FLAGS.meta_batch_size)
        self.total_losses2 = total_losses2 = [
            tf.reduce_sum(lossesb[j]) / tf.to_float(FLAGS.meta_batch_size) for j in range(num_updates)
        ]
        self.pretrain_op = tf.train.AdamOptimizer(self.meta_lr).minimize(total_loss1)
        optimizer = tf.train.AdamOptimizer(self.meta_lr)
        self.gvs = gvs = optimizer.compute_gradients(self.total_losses2[-1])
        gvs = [(tf.clip_by_value(grad, -10, 10), var) for grad, var in gvs]
        self.metatrain_op = optimizer.apply_gradients(gvs)
        tf.summary.scalar(prefix + "Pre-update loss", total_loss1)
        for j in range(num_updates):
            tf.summary.scalar(prefix + "Post-update loss, step " + str(j + 1), total_losses2[j])


def main():
    rng = np.random.RandomState(0)
    model = MAML()
    model.construct_model()
    model.summ_op = tf.summary.merge_all()
    saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES), max_to_keep=10)
    sess = tf.InteractiveSession()
    tf.global_variables_initializer().run()
    tf.train.start_queue_runners()
    for itr in range(FLAGS.metatrain_iterations):
        amp = rng.uniform(0.1, 5.0, (3, 1, 1))
        ph = rng.uniform(0, np.pi, (3, 1, 1))
        x = rng.uniform(-5, 5, (3, 10, 1))
        yv = amp * np.sin(x - ph)
        fd = {model.inputa: x[:, :5], model.inputb: x[:, 5:], model.labela: yv[:, :5], model.labelb: yv[:, 5:]}
        r = sess.run([model.metatrain_op, model.summ_op, model.total_loss1] + model.total_losses2, fd)
        print("Iteration " + str(itr) + ": " + ", ".join("%.4f" % v for v in r[2:]))
    s = tf.Summary.FromString(r[1])
    print([v.tag for v in s.value])


if __name__ == "__main__":
    main()
