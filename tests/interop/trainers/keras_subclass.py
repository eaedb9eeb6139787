"""A subclass of tf.keras.Model with a layer of its own, callbacks, class weights, and data that a generator gives."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
x = random.normal(size=(48, 6)).astype(np.float32)
y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)


def start(*shape):
    return tf.keras.initializers.Constant(0.1 * np.random.RandomState(sum(shape)).normal(size=shape))


class Gate(tf.keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super(Gate, self).__init__(**kwargs)
        self.units = units
        self.inner = tf.keras.layers.Dense(units, activation="tanh", kernel_initializer=start(6, units))

    def build(self, input_shape):
        self.scale = self.add_weight(name="scale", shape=(self.units,), initializer="ones", trainable=True)
        super(Gate, self).build(input_shape)

    def call(self, inputs):
        return self.inner(inputs) * self.scale


class Classifier(tf.keras.Model):
    def __init__(self):
        super(Classifier, self).__init__(name="classifier")
        self.gate = Gate(5)
        self.norm = tf.keras.layers.BatchNormalization(momentum=0.8)
        self.out = tf.keras.layers.Dense(2, activation="softmax", kernel_initializer=start(5, 2))

    def call(self, inputs, training=None):
        return self.out(self.norm(self.gate(inputs), training=training))


def batches():
    while True:
        for first in range(0, 48, 16):
            yield x[first : first + 16], y[first : first + 16]


model = Classifier()
model.compile(
    optimizer=tf.keras.optimizers.SGD(lr=0.2, momentum=0.9), loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)  # fmt: skip
slower = tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.2 * 0.7**epoch)
history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0, callbacks=[slower])
LOSSES = [float(value) for value in history.history["loss"] + history.history["lr"]]
history = model.fit_generator(batches(), steps_per_epoch=3, epochs=2, verbose=0, validation_data=(x, y))
LOSSES += [float(value) for value in history.history["loss"] + history.history["val_loss"]]
LOSSES.append(float(model.train_on_batch(x, y, class_weight={0: 1.0, 1: 2.0})[0]))
LOSSES.append(float(np.square(model.predict(x)).sum()))
