# ARGS: --steps=120 --double_q
import collections, random
import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("steps", 200, "number of steps")
flags.DEFINE_boolean("double_q", False, "Whether to use double Q-learning")
flags.DEFINE_boolean("dueling", True, "Whether to use dueling deep q-network")
flags.DEFINE_string("model_dir", "dqn_dueling_ck", "")
FLAGS = flags.FLAGS
random.seed(123)
tf.set_random_seed(123)
np.random.seed(123)


def clipped_error(x):
    try:
        return tf.select(tf.abs(x) < 1.0, 0.5 * tf.square(x), tf.abs(x) - 0.5)
    except:
        return tf.where(tf.abs(x) < 1.0, 0.5 * tf.square(x), tf.abs(x) - 0.5)


def conv2d(
    x,
    output_dim,
    kernel_size,
    stride,
    initializer=tf.truncated_normal_initializer(0, 0.02),
    activation_fn=tf.nn.relu,
    data_format="NHWC",
    padding="VALID",
    name="conv2d",
):
    with tf.variable_scope(name):
        stride = [1, stride[0], stride[1], 1]
        kernel_shape = [kernel_size[0], kernel_size[1], x.get_shape()[-1], output_dim]
        w = tf.get_variable("w", kernel_shape, tf.float32, initializer=initializer)
        conv = tf.nn.conv2d(x, w, stride, padding, data_format=data_format)
        b = tf.get_variable("biases", [output_dim], initializer=tf.constant_initializer(0.0))
        out = tf.nn.bias_add(conv, b, data_format)
    if activation_fn != None:
        out = activation_fn(out)
    return out, w, b


def linear(input_, output_size, stddev=0.02, bias_start=0.0, activation_fn=None, name="linear"):
    shape = input_.get_shape().as_list()
    with tf.variable_scope(name):
        w = tf.get_variable("Matrix", [shape[1], output_size], tf.float32, tf.random_normal_initializer(stddev=stddev))
        b = tf.get_variable("bias", [output_size], initializer=tf.constant_initializer(bias_start))
        out = tf.nn.bias_add(tf.matmul(input_, w), b)
        if activation_fn != None:
            return activation_fn(out), w, b
        return out, w, b


class Agent(object):
    def __init__(self, sess, n_actions):
        self.sess, self.n = sess, n_actions
        with tf.variable_scope("step"):
            self.step_op = tf.Variable(0, trainable=False, name="step")
            self.step_input = tf.placeholder("int32", None, name="step_input")
            self.step_assign_op = self.step_op.assign(self.step_input)
        self.w, self.t_w = {}, {}
        with tf.variable_scope("prediction"):
            self.s_t = tf.placeholder("float32", [None, 20, 20, 4], name="s_t")
            self.q = self.net(self.s_t, self.w, "")
            self.q_action = tf.argmax(self.q, dimension=1)
            q_summary = []
            avg_q = tf.reduce_mean(self.q, 0)
            for idx in range(n_actions):
                q_summary.append(tf.summary.histogram("q/%s" % idx, avg_q[idx]))
            self.q_summary = tf.summary.merge(q_summary, "q_summary")
        with tf.variable_scope("target"):
            self.target_s_t = tf.placeholder("float32", [None, 20, 20, 4], name="target_s_t")
            self.target_q = self.net(self.target_s_t, self.t_w, "target_")
            self.target_q_idx = tf.placeholder("int32", [None, None], "outputs_idx")
            self.target_q_with_idx = tf.gather_nd(self.target_q, self.target_q_idx)
        with tf.variable_scope("pred_to_target"):
            self.t_w_input, self.t_w_assign_op = {}, {}
            for name in self.w.keys():
                self.t_w_input[name] = tf.placeholder("float32", self.t_w[name].get_shape().as_list(), name=name)
                self.t_w_assign_op[name] = self.t_w[name].assign(self.t_w_input[name])
        with tf.variable_scope("optimizer"):
            self.target_q_t = tf.placeholder("float32", [None], name="target_q_t")
            self.action = tf.placeholder("int64", [None], name="action")
            action_one_hot = tf.one_hot(self.action, n_actions, 1.0, 0.0, name="action_one_hot")
            q_acted = tf.reduce_sum(self.q * action_one_hot, reduction_indices=1, name="q_acted")
            self.delta = self.target_q_t - q_acted
            self.global_step = tf.Variable(0, trainable=False)
            self.loss = tf.reduce_mean(clipped_error(self.delta), name="loss")
            self.learning_rate_step = tf.placeholder("int64", None, name="learning_rate_step")
            self.learning_rate_op = tf.maximum(
                0.00025, tf.train.exponential_decay(0.01, self.learning_rate_step, 5, 0.96, staircase=True)
            )
            self.optim = tf.train.RMSPropOptimizer(self.learning_rate_op, momentum=0.95, epsilon=0.01).minimize(
                self.loss
            )
        with tf.variable_scope("summary"):
            tags = ["average.reward", "average.loss", "episode.max reward"]
            self.summary_placeholders, self.summary_ops = {}, {}
            for tag in tags:
                self.summary_placeholders[tag] = tf.placeholder("float32", None, name=tag.replace(" ", "_"))
                self.summary_ops[tag] = tf.summary.scalar("%s-%s" % ("env", tag), self.summary_placeholders[tag])
        self.writer = tf.summary.FileWriter("./%s/logs" % FLAGS.model_dir, self.sess.graph)
        tf.initialize_all_variables().run()
        self._saver = tf.train.Saver(list(self.w.values()) + [self.step_op], max_to_keep=30)

    def net(self, s, w, p):
        l1, w["l1_w"], w["l1_b"] = conv2d(s, 8, [8, 8], [4, 4], name=p + "l1")
        l2, w["l2_w"], w["l2_b"] = conv2d(l1, 16, [3, 3], [1, 1], name=p + "l2")
        shape = l2.get_shape().as_list()
        flat = tf.reshape(l2, [-1, reduce_(lambda x, y: x * y, shape[1:])])
        if FLAGS.dueling:
            v_h, w["l4_val_w"], w["l4_val_b"] = linear(flat, 32, activation_fn=tf.nn.relu, name=p + "value_hid")
            a_h, w["l4_adv_w"], w["l4_adv_b"] = linear(flat, 32, activation_fn=tf.nn.relu, name=p + "adv_hid")
            value, w["val_w_out"], w["val_w_b"] = linear(v_h, 1, name=p + "value_out")
            adv, w["adv_w_out"], w["adv_w_b"] = linear(a_h, self.n, name=p + "adv_out")
            return value + (adv - tf.reduce_mean(adv, reduction_indices=1, keep_dims=True))
        return linear(flat, self.n, name=p + "q")[0]

    def update_target(self):
        for name in self.w.keys():
            self.t_w_assign_op[name].eval({self.t_w_input[name]: self.w[name].eval()})

    def learn(self, s, a, r, s1, term, step):
        if FLAGS.double_q:
            pred = self.q_action.eval({self.s_t: s1})
            q1 = self.target_q_with_idx.eval(
                {self.target_s_t: s1, self.target_q_idx: [[i, p] for i, p in enumerate(pred)]}
            )
            target = (1.0 - term) * 0.99 * q1 + r
        else:
            target = (1.0 - term) * 0.99 * np.max(self.target_q.eval({self.target_s_t: s1}), axis=1) + r
        _, q, loss, s_ = self.sess.run(
            [self.optim, self.q, self.loss, self.q_summary],
            {self.target_q_t: target, self.action: a, self.s_t: s, self.learning_rate_step: step},
        )
        self.writer.add_summary(s_, step)
        return q.mean(), loss

    def inject(self, d, step):
        lists = self.sess.run(
            [self.summary_ops[t] for t in d.keys()], {self.summary_placeholders[t]: v for t, v in d.items()}
        )
        for s in lists:
            self.writer.add_summary(s, step)


def reduce_(f, xs):
    r = 1
    for x in xs:
        r = f(r, x)
    return r


def main(_):
    gpu_options = tf.GPUOptions(per_process_gpu_memory_fraction=0.5)
    with tf.Session(config=tf.ConfigProto(gpu_options=gpu_options)) as sess:
        agent = Agent(sess, 3)
        mem = collections.deque(maxlen=60)
        s = np.random.rand(20, 20, 4)
        for step in range(FLAGS.steps // 4):
            a = random.randrange(3) if random.random() < 0.3 else agent.q_action.eval({agent.s_t: [s]})[0]
            s1 = np.roll(s, a, 0)
            mem.append((s, a, float(a == 1), s1, step % 9 == 8))
            s = s1
            if len(mem) > 8 and step % 4 == 0:
                b = random.sample(list(mem), 8)
                q, l = agent.learn(
                    *[np.array(x, dtype=np.float32 if i != 1 else np.int64) for i, x in enumerate(zip(*b))], step=step
                )
                print("step %d q %.5f loss %.5f" % (step, q, l))
            if step % 10 == 9:
                agent.update_target()
                agent.step_assign_op.eval({agent.step_input: step + 1})
                agent.inject({"average.reward": 0.3, "episode.max reward": 1}, step)
        agent._saver.save(sess, FLAGS.model_dir + "/m", global_step=agent.step_op)
        print(tf.train.latest_checkpoint(FLAGS.model_dir))


if __name__ == "__main__":
    tf.app.run()
