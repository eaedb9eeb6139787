import numpy as np
import tensorflow as tf
from time import time


class BaseEstimator(object):
    pass


class DeepFM(BaseEstimator):
    def __init__(
        self,
        feature_size,
        field_size,
        embedding_size=4,
        dropout_fm=[1.0, 1.0],
        deep_layers=[8, 8],
        dropout_deep=[1.0, 1.0, 1.0],
        deep_layers_activation=tf.nn.relu,
        epoch=3,
        batch_size=16,
        learning_rate=0.01,
        optimizer_type="adam",
        batch_norm=1,
        batch_norm_decay=0.995,
        verbose=False,
        random_seed=2016,
        use_fm=True,
        use_deep=True,
        loss_type="logloss",
        l2_reg=0.01,
    ):
        self.__dict__.update(locals())
        self.train_result, self.valid_result = [], []
        self._init_graph()

    def _init_graph(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(self.random_seed)
            self.feat_index = tf.placeholder(tf.int32, shape=[None, None], name="feat_index")
            self.feat_value = tf.placeholder(tf.float32, shape=[None, None], name="feat_value")
            self.label = tf.placeholder(tf.float32, shape=[None, 1], name="label")
            self.dropout_keep_fm = tf.placeholder(tf.float32, shape=[None], name="dropout_keep_fm")
            self.dropout_keep_deep = tf.placeholder(tf.float32, shape=[None], name="dropout_keep_deep")
            self.train_phase = tf.placeholder(tf.bool, name="train_phase")
            self.weights = self._initialize_weights()
            self.embeddings = tf.nn.embedding_lookup(self.weights["feature_embeddings"], self.feat_index)
            feat_value = tf.reshape(self.feat_value, shape=[-1, self.field_size, 1])
            self.embeddings = tf.multiply(self.embeddings, feat_value)
            self.y_first_order = tf.nn.embedding_lookup(self.weights["feature_bias"], self.feat_index)
            self.y_first_order = tf.reduce_sum(tf.multiply(self.y_first_order, feat_value), 2)
            self.y_first_order = tf.nn.dropout(self.y_first_order, self.dropout_keep_fm[0])
            self.summed_features_emb = tf.reduce_sum(self.embeddings, 1)
            self.summed_features_emb_square = tf.square(self.summed_features_emb)
            self.squared_sum_features_emb = tf.reduce_sum(tf.square(self.embeddings), 1)
            self.y_second_order = 0.5 * tf.subtract(self.summed_features_emb_square, self.squared_sum_features_emb)
            self.y_second_order = tf.nn.dropout(self.y_second_order, self.dropout_keep_fm[1])
            self.y_deep = tf.reshape(self.embeddings, shape=[-1, self.field_size * self.embedding_size])
            self.y_deep = tf.nn.dropout(self.y_deep, self.dropout_keep_deep[0])
            for i in range(0, len(self.deep_layers)):
                self.y_deep = tf.add(tf.matmul(self.y_deep, self.weights["layer_%d" % i]), self.weights["bias_%d" % i])
                if self.batch_norm:
                    self.y_deep = tf.layers.batch_normalization(
                        self.y_deep, momentum=self.batch_norm_decay, training=self.train_phase, name="bn_%d" % i
                    )
                self.y_deep = self.deep_layers_activation(self.y_deep)
                self.y_deep = tf.nn.dropout(self.y_deep, self.dropout_keep_deep[1 + i])
            concat_input = tf.concat([self.y_first_order, self.y_second_order, self.y_deep], axis=1)
            self.out = tf.add(tf.matmul(concat_input, self.weights["concat_projection"]), self.weights["concat_bias"])
            self.out = tf.nn.sigmoid(self.out)
            self.loss = tf.losses.log_loss(self.label, self.out)
            if self.l2_reg > 0:
                self.loss += self.l2_reg * tf.nn.l2_loss(self.weights["concat_projection"])
                for i in range(len(self.deep_layers)):
                    self.loss += self.l2_reg * tf.nn.l2_loss(self.weights["layer_%d" % i])
            self.optimizer = tf.train.AdamOptimizer(
                learning_rate=self.learning_rate, beta1=0.9, beta2=0.999, epsilon=1e-8
            ).minimize(self.loss)
            self.saver = tf.train.Saver()
            init = tf.global_variables_initializer()
            self.sess = tf.Session(config=tf.ConfigProto(device_count={"gpu": 0}))
            self.sess.run(init)
            total_parameters = 0
            for variable in self.weights.values():
                shape = variable.get_shape()
                variable_parameters = 1
                for dim in shape:
                    variable_parameters *= dim.value if hasattr(dim, "value") else dim
                total_parameters += variable_parameters
            print("#params: %d" % total_parameters)

    def _initialize_weights(self):
        weights = dict()
        weights["feature_embeddings"] = tf.Variable(
            tf.random_normal([self.feature_size, self.embedding_size], 0.0, 0.01), name="feature_embeddings"
        )
        weights["feature_bias"] = tf.Variable(tf.random_uniform([self.feature_size, 1], 0.0, 1.0), name="feature_bias")
        num_layer = len(self.deep_layers)
        input_size = self.field_size * self.embedding_size
        for i in range(num_layer):
            prev = input_size if i == 0 else self.deep_layers[i - 1]
            glorot = np.sqrt(2.0 / (prev + self.deep_layers[i]))
            weights["layer_%d" % i] = tf.Variable(
                np.random.normal(loc=0, scale=glorot, size=(prev, self.deep_layers[i])), dtype=np.float32
            )
            weights["bias_%d" % i] = tf.Variable(
                np.random.normal(loc=0, scale=glorot, size=(1, self.deep_layers[i])), dtype=np.float32
            )
        input_size = self.field_size + self.embedding_size + self.deep_layers[-1]
        weights["concat_projection"] = tf.Variable(
            np.random.normal(loc=0, scale=0.3, size=(input_size, 1)), dtype=np.float32
        )
        weights["concat_bias"] = tf.Variable(tf.constant(0.01), dtype=np.float32)
        return weights

    def fit(self, Xi, Xv, y):
        for e in range(self.epoch):
            a = list(zip(Xi, Xv, y))
            np.random.shuffle(a)
            for i in range(0, len(a), self.batch_size):
                xi, xv, yy = zip(*a[i : i + self.batch_size])
                loss, _ = self.sess.run(
                    (self.loss, self.optimizer),
                    feed_dict={
                        self.feat_index: xi,
                        self.feat_value: xv,
                        self.label: [[v] for v in yy],
                        self.dropout_keep_fm: self.dropout_fm,
                        self.dropout_keep_deep: self.dropout_deep,
                        self.train_phase: True,
                    },
                )
                print("%.5f" % loss)
            p = self.sess.run(
                self.out,
                {
                    self.feat_index: Xi,
                    self.feat_value: Xv,
                    self.dropout_keep_fm: [1.0] * 2,
                    self.dropout_keep_deep: [1.0] * 3,
                    self.train_phase: False,
                },
            )
            print("[%d] mean %.5f" % (e + 1, p.mean()))


np.random.seed(1)
Xi = (np.random.randint(0, 5, (60, 4)) + np.arange(4) * 5).tolist()
Xv = np.random.rand(60, 4).tolist()
y = [int(r[0] % 2 == 0) for r in Xi]
DeepFM(20, 4, dropout_fm=[0.8, 1.0], dropout_deep=[1.0, 0.5, 1.0]).fit(Xi, Xv, y)
