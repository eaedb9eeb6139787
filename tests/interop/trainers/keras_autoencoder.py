"""A variational autoencoder by the functional API: Lambda, add_loss with operations, K.function, masks and an LSTM."""

import numpy as np
import tensorflow as tf

K, layers = tf.keras.backend, tf.keras.layers
random = np.random.RandomState(0)
x = random.rand(32, 8).astype(np.float32)


def start(*shape):
    return tf.keras.initializers.Constant(0.2 * np.random.RandomState(sum(shape)).normal(size=shape))


inputs = layers.Input(shape=(8,), name="pixels")
hidden = layers.Dense(6, activation="relu", kernel_initializer=start(8, 6))(inputs)
mean = layers.Dense(2, name="mean", kernel_initializer=start(6, 2))(hidden)
log_variance = layers.Dense(2, name="log_variance", kernel_initializer=start(6, 2))(hidden)
code = layers.Lambda(lambda args: args[0] + 0.1 * K.exp(0.5 * args[1]), name="code")([mean, log_variance])
decoded = layers.Dense(8, activation="sigmoid", kernel_initializer=start(2, 8))(code)
vae = tf.keras.Model(inputs, decoded, name="vae")
reconstruction = 8 * tf.keras.losses.binary_crossentropy(inputs, decoded)
divergence = -0.5 * K.sum(1 + log_variance - K.square(mean) - K.exp(log_variance), axis=-1)
vae.add_loss(K.mean(reconstruction + divergence))
vae.compile(optimizer=tf.keras.optimizers.SGD(0.05))
LOSSES = [float(v) for v in vae.fit(x, batch_size=8, epochs=4, shuffle=False, verbose=0).history["loss"]]
encoder = K.function([inputs], [mean, log_variance])
LOSSES.extend(float(np.abs(each).sum()) for each in encoder([x]))

ids = random.randint(1, 9, (16, 5))
ids[::2, 3:] = 0
words = layers.Input((5,), dtype="int32")
embedded = layers.Embedding(9, 3, mask_zero=True, embeddings_initializer=start(9, 3))(words)
last = layers.LSTM(
    4, recurrent_activation="hard_sigmoid", kernel_initializer=start(3, 16), recurrent_initializer=start(4, 16)
)(embedded)
tagger = tf.keras.Model(words, layers.Dense(1, activation="sigmoid", kernel_initializer=start(4, 1))(last))
tagger.compile(tf.keras.optimizers.RMSprop(0.02), "binary_crossentropy", metrics=["accuracy"])
labels = (ids.sum(1) % 2).astype(np.float32)
history = tagger.fit(ids, labels, batch_size=4, epochs=3, shuffle=False, verbose=0).history
LOSSES += [float(v) for v in history["loss"]]
