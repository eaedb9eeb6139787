"""MorvanZhou style PPO + DDPG on a tiny hand-made env."""

import tensorflow as tf
import numpy as np

EP_MAX, EP_LEN, GAMMA = 3, 16, 0.9
A_LR, C_LR, BATCH = 0.001, 0.002, 8
A_UPDATE_STEPS, C_UPDATE_STEPS = 3, 3
S_DIM, A_DIM = 3, 1
METHOD = [dict(name="kl_pen", kl_target=0.01, lam=0.5), dict(name="clip", epsilon=0.2)][1]


class Env:
    def __init__(self):
        self.rng = np.random.RandomState(0)

    def reset(self):
        self.s = self.rng.randn(S_DIM)
        return self.s

    def step(self, a):
        self.s = 0.9 * self.s + 0.1 * np.array([a.ravel()[0], self.s[0], self.s[1]])
        return self.s, -float((self.s**2).sum()), False, {}


class PPO(object):
    def __init__(self):
        self.sess = tf.Session()
        self.tfs = tf.placeholder(tf.float32, [None, S_DIM], "state")
        with tf.variable_scope("critic"):
            l1 = tf.layers.dense(
                self.tfs, 20, tf.nn.relu, kernel_initializer=tf.random_normal_initializer(0, 0.1, seed=1)
            )
            self.v = tf.layers.dense(l1, 1, kernel_initializer=tf.random_normal_initializer(0, 0.1, seed=2))
            self.tfdc_r = tf.placeholder(tf.float32, [None, 1], "discounted_r")
            self.advantage = self.tfdc_r - self.v
            self.closs = tf.reduce_mean(tf.square(self.advantage))
            self.ctrain_op = tf.train.AdamOptimizer(C_LR).minimize(self.closs)
        pi, pi_params = self._build_anet("pi", trainable=True)
        oldpi, oldpi_params = self._build_anet("oldpi", trainable=False)
        with tf.variable_scope("sample_action"):
            self.sample_op = tf.squeeze(pi.sample(1, seed=11), axis=0)
        with tf.variable_scope("update_oldpi"):
            self.update_oldpi_op = [oldp.assign(p) for p, oldp in zip(pi_params, oldpi_params)]
        self.tfa = tf.placeholder(tf.float32, [None, A_DIM], "action")
        self.tfadv = tf.placeholder(tf.float32, [None, 1], "advantage")
        with tf.variable_scope("loss"):
            with tf.variable_scope("surrogate"):
                ratio = pi.prob(self.tfa) / (oldpi.prob(self.tfa) + 1e-5)
                surr = ratio * self.tfadv
            self.tflam = tf.placeholder(tf.float32, None, "lambda")
            kl = tf.distributions.kl_divergence(oldpi, pi)
            self.kl_mean = tf.reduce_mean(kl)
            self.aloss_pen = -(tf.reduce_mean(surr - self.tflam * kl))
            self.aloss = -tf.reduce_mean(
                tf.minimum(surr, tf.clip_by_value(ratio, 1.0 - METHOD["epsilon"], 1.0 + METHOD["epsilon"]) * self.tfadv)
            )
            self.ent = tf.reduce_mean(pi.entropy())
        with tf.variable_scope("atrain"):
            self.atrain_op = tf.train.AdamOptimizer(A_LR).minimize(self.aloss - 0.01 * self.ent)
        tf.summary.FileWriter("log/", self.sess.graph)
        self.sess.run(tf.global_variables_initializer())

    def update(self, s, a, r):
        self.sess.run(self.update_oldpi_op)
        adv = self.sess.run(self.advantage, {self.tfs: s, self.tfdc_r: r})
        [self.sess.run(self.atrain_op, {self.tfs: s, self.tfa: a, self.tfadv: adv}) for _ in range(A_UPDATE_STEPS)]
        [self.sess.run(self.ctrain_op, {self.tfs: s, self.tfdc_r: r}) for _ in range(C_UPDATE_STEPS)]
        return self.sess.run(
            [self.aloss, self.closs, self.kl_mean, self.ent, self.aloss_pen],
            {self.tfs: s, self.tfa: a, self.tfadv: adv, self.tfdc_r: r, self.tflam: 0.5},
        )

    def _build_anet(self, name, trainable):
        with tf.variable_scope(name):
            l1 = tf.layers.dense(
                self.tfs,
                20,
                tf.nn.relu,
                trainable=trainable,
                kernel_initializer=tf.random_normal_initializer(0, 0.1, seed=3),
            )
            mu = 2 * tf.layers.dense(
                l1,
                A_DIM,
                tf.nn.tanh,
                trainable=trainable,
                kernel_initializer=tf.random_normal_initializer(0, 0.1, seed=4),
            )
            sigma = tf.layers.dense(
                l1,
                A_DIM,
                tf.nn.softplus,
                trainable=trainable,
                kernel_initializer=tf.random_normal_initializer(0, 0.1, seed=5),
            )
            norm_dist = tf.distributions.Normal(loc=mu, scale=sigma)
        params = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope=name)
        return norm_dist, params

    def choose_action(self, s):
        s = s[np.newaxis, :]
        a = self.sess.run(self.sample_op, {self.tfs: s})[0]
        return np.clip(a, -2, 2)

    def get_v(self, s):
        if s.ndim < 2:
            s = s[np.newaxis, :]
        return self.sess.run(self.v, {self.tfs: s})[0, 0]


class DDPG(object):
    def __init__(self, a_dim, s_dim, a_bound):
        self.memory = np.zeros((50, s_dim * 2 + a_dim + 1), dtype=np.float32)
        self.pointer = 0
        self.sess = tf.Session()
        self.a_dim, self.s_dim, self.a_bound = a_dim, s_dim, a_bound
        self.S = tf.placeholder(tf.float32, [None, s_dim], "s")
        self.S_ = tf.placeholder(tf.float32, [None, s_dim], "s_")
        self.R = tf.placeholder(tf.float32, [None, 1], "r")
        self.a = self._build_a(self.S)
        q = self._build_c(self.S, self.a)
        a_params = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Actor")
        c_params = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Critic")
        ema = tf.train.ExponentialMovingAverage(decay=1 - 0.01)

        def ema_getter(getter, name, *args, **kwargs):
            return ema.average(getter(name, *args, **kwargs))

        target_update = [ema.apply(a_params), ema.apply(c_params)]
        a_ = self._build_a(self.S_, reuse=True, custom_getter=ema_getter)
        q_ = self._build_c(self.S_, a_, reuse=True, custom_getter=ema_getter)
        self.a_loss = -tf.reduce_mean(q)
        self.atrain = tf.train.AdamOptimizer(A_LR).minimize(self.a_loss, var_list=a_params)
        with tf.control_dependencies(target_update):
            q_target = self.R + GAMMA * q_
            self.td_error = tf.losses.mean_squared_error(labels=q_target, predictions=q)
            self.ctrain = tf.train.AdamOptimizer(C_LR).minimize(self.td_error, var_list=c_params)
        self.sess.run(tf.global_variables_initializer())

    def learn(self, bt):
        bs, ba, br, bs_ = (
            bt[:, : self.s_dim],
            bt[:, self.s_dim : self.s_dim + self.a_dim],
            bt[:, -self.s_dim - 1 : -self.s_dim],
            bt[:, -self.s_dim :],
        )
        self.sess.run(self.atrain, {self.S: bs})
        return self.sess.run([self.td_error, self.ctrain], {self.S: bs, self.a: ba, self.R: br, self.S_: bs_})[0]

    def _build_a(self, s, reuse=None, custom_getter=None):
        trainable = True if reuse is None else False
        with tf.variable_scope("Actor", reuse=reuse, custom_getter=custom_getter):
            net = tf.layers.dense(
                s,
                30,
                activation=tf.nn.relu,
                name="l1",
                trainable=trainable,
                kernel_initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=8),
            )
            a = tf.layers.dense(
                net,
                self.a_dim,
                activation=tf.nn.tanh,
                name="a",
                trainable=trainable,
                kernel_initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=9),
            )
            return tf.multiply(a, self.a_bound, name="scaled_a")

    def _build_c(self, s, a, reuse=None, custom_getter=None):
        trainable = True if reuse is None else False
        with tf.variable_scope("Critic", reuse=reuse, custom_getter=custom_getter):
            n_l1 = 30
            init = tf.random_uniform_initializer(-0.3, 0.3, seed=10)
            w1_s = tf.get_variable("w1_s", [self.s_dim, n_l1], trainable=trainable, initializer=init)
            w1_a = tf.get_variable("w1_a", [self.a_dim, n_l1], trainable=trainable, initializer=init)
            b1 = tf.get_variable("b1", [1, n_l1], trainable=trainable, initializer=init)
            net = tf.nn.relu(tf.matmul(s, w1_s) + tf.matmul(a, w1_a) + b1)
            return tf.layers.dense(net, 1, trainable=trainable, kernel_initializer=init)


env = Env()
ppo = PPO()
for ep in range(EP_MAX):
    s = env.reset()
    buffer_s, buffer_a, buffer_r = [], [], []
    for t in range(EP_LEN):
        a = ppo.choose_action(s)
        s_, r, done, _ = env.step(a)
        buffer_s.append(s)
        buffer_a.append(a)
        buffer_r.append((r + 8) / 8)
        s = s_
        if (t + 1) % BATCH == 0 or t == EP_LEN - 1:
            v_s_ = ppo.get_v(s_)
            discounted_r = []
            for r in buffer_r[::-1]:
                v_s_ = r + GAMMA * v_s_
                discounted_r.append(v_s_)
            discounted_r.reverse()
            bs, ba, br = np.vstack(buffer_s), np.vstack(buffer_a), np.array(discounted_r)[:, np.newaxis]
            buffer_s, buffer_a, buffer_r = [], [], []
            print("PPO", ppo.update(bs, ba, br))
tf.reset_default_graph()
ddpg = DDPG(A_DIM, S_DIM, np.array([2.0]))
rng = np.random.RandomState(1)
for i in range(5):
    print("td", ddpg.learn(rng.randn(8, 2 * S_DIM + A_DIM + 1)))
