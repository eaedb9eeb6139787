"""DeepFM in plain tf.keras layers: embeddings of several fields, crossed by sums and squares, wide and deep."""

import numpy as np
import tensorflow as tf

Dense, Embedding, Flatten = tf.keras.layers.Dense, tf.keras.layers.Embedding, tf.keras.layers.Flatten
Input, Model, l2 = tf.keras.layers.Input, tf.keras.models.Model, tf.keras.regularizers.l2
random = np.random.RandomState(0)
SIZES = {"user": 12, "item": 9, "city": 5}
columns = {name: random.randint(0, size, 64) for name, size in SIZES.items()}
price = random.rand(64, 1).astype(np.float32)
clicks = ((columns["user"] + columns["item"]) % 2).astype(np.float32)


def start(*shape):
    return tf.keras.initializers.Constant(0.2 * np.random.RandomState(sum(shape)).normal(size=shape))


class Crossed(tf.keras.layers.Layer):
    def call(self, inputs):
        joined = tf.concat(inputs, axis=1)
        square_of_sum = tf.square(tf.reduce_sum(joined, axis=1))
        sum_of_square = tf.reduce_sum(tf.square(joined), axis=1)
        return 0.5 * tf.reduce_sum(square_of_sum - sum_of_square, axis=1, keepdims=True)

    def compute_output_shape(self, input_shape):
        return (None, 1)


fields = {name: Input(shape=(1,), name=name, dtype="int32") for name in SIZES}
number = Input(shape=(1,), name="price")
embedded = [
    Embedding(size, 4, embeddings_initializer=start(size, 4), embeddings_regularizer=l2(1e-4))(fields[name])
    for name, size in SIZES.items()
]
linear = [
    Flatten()(Embedding(size, 1, embeddings_initializer=start(size, 1))(fields[name])) for name, size in SIZES.items()
]
deep = tf.keras.layers.concatenate([Flatten()(each) for each in embedded] + [number])
deep = Dense(8, activation="relu", kernel_initializer=start(13, 8))(deep)
deep = Dense(1, use_bias=False, kernel_initializer=start(8, 1))(deep)
logit = tf.keras.layers.add([Crossed()(embedded), deep] + linear)
chance = Dense(1, activation="sigmoid", kernel_initializer="ones")(logit)
model = Model(inputs=list(fields.values()) + [number], outputs=chance)
model.compile(tf.keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["binary_crossentropy"])
given = dict(columns, price=price)
history = model.fit(given, clicks, batch_size=16, epochs=4, shuffle=False, verbose=0, validation_split=0.25)
LOSSES = [float(v) for v in history.history["loss"] + history.history["val_loss"]]
LOSSES.append(float(model.predict(given, batch_size=32).sum()))
