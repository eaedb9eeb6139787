"""Wide and deep: a linear model of categories beside a network of embeddings and numbers, two optimizers."""

import numpy as np
import tensorflow as tf

AGES = np.array([[23.0], [41.0], [67.0], [35.0]], np.float32)
JOBS = np.array([["clerk"], ["nurse"], ["cook"], ["clerk"]])
LABELS = np.array([[0.0], [1.0], [1.0], [0.0]], np.float32)
features = {"age": tf.constant(AGES), "job": tf.constant(JOBS)}
age = tf.feature_column.numeric_column("age")
job = tf.feature_column.categorical_column_with_vocabulary_list("job", ["clerk", "nurse", "cook"])
ages = tf.feature_column.bucketized_column(age, [30.0, 50.0])
start = tf.constant_initializer(np.linspace(-1, 1, 6).reshape(3, 2))
embedded = tf.feature_column.embedding_column(job, 2, initializer=start)
with tf.variable_scope("wide"):
    wide = tf.feature_column.linear_model(features, [job, ages])
with tf.variable_scope("deep"):
    inputs = tf.feature_column.input_layer(features, [age, embedded, tf.feature_column.indicator_column(job)])
    kernel = tf.constant_initializer(np.linspace(-0.05, 0.05, 24).reshape(6, 4))
    hidden = tf.layers.dense(inputs, 4, tf.nn.relu, kernel_initializer=kernel)
    deep = tf.layers.dense(hidden, 1, kernel_initializer=tf.ones_initializer())
logits = wide + deep
loss = tf.losses.sigmoid_cross_entropy(LABELS, logits)
train = tf.group(
    tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01).minimize(
        loss, var_list=tf.trainable_variables("wide")
    ),
    tf.train.AdagradOptimizer(0.05).minimize(loss, var_list=tf.trainable_variables("deep")),
)
LOSSES = []
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for _ in range(5):
        LOSSES.append(float(session.run([loss, train])[0]))
