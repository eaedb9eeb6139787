"""The same models, stacks and graphs of layers, trained on the same batches, in dtf and in TensorFlow's legacy Keras.

    python -m tests.interop.keras_programs tensorflow FILE    (or dtf)

writes the figures and weights as arrays into FILE (npz).
"""

from __future__ import annotations

import os
import sys

import numpy as np

RANDOM = np.random.RandomState(3)
IMAGES = RANDOM.rand(50, 8, 8, 2).astype(np.float32)
VECTORS = RANDOM.randn(50, 4).astype(np.float32)
IDS = RANDOM.randint(0, 20, [50, 5])
CLASSES = RANDOM.randint(0, 3, 50)
NUMBERS = (VECTORS @ RANDOM.randn(4, 2)).astype(np.float32)
SIGNS = np.where(NUMBERS > 0, 1.0, -1.0).astype(np.float32)


def models(keras):
    """{name: (layers, inputs, targets, optimizer, loss, metrics)}."""
    layers, optimizers, losses = keras.layers, keras.optimizers, keras.losses
    one_hot = keras.utils.to_categorical(CLASSES, 3)

    def dense(*widths, last=None):
        return lambda: [
            layers.Dense(widths[0], activation="tanh", input_shape=(4,)),
            *[layers.Dense(width, activation="elu") for width in widths[1:-1]],
            layers.Dense(widths[-1], activation=last),
        ]

    def convolutional():
        return [
            layers.Conv2D(4, 3, padding="same", activation="relu", input_shape=(8, 8, 2)),
            layers.MaxPooling2D(),
            layers.Conv2D(3, (2, 3), strides=2, use_bias=False),  # what is normalised next has no use for one
            layers.BatchNormalization(momentum=0.8),
            layers.Activation("selu"),
            layers.Flatten(),
            layers.Dropout(0.0),
            layers.Dense(3, activation="softmax", kernel_regularizer=keras.regularizers.l2(0.01)),
        ]

    def embedding():
        return [
            layers.Embedding(20, 3, input_length=5),
            layers.Reshape((15,)),
            layers.Dense(3),
        ]

    adam = optimizers.Adam(0.01)
    nesterov = optimizers.SGD(0.05, momentum=0.9, nesterov=True)
    momentum, steady = optimizers.SGD(0.05, momentum=0.9), optimizers.SGD(0.02, momentum=0.8)
    classes = losses.SparseCategoricalCrossentropy(from_logits=True)
    return {
        "convolutional": (convolutional, IMAGES, CLASSES, steady, "sparse_categorical_crossentropy", ["accuracy"]),
        "embedding": (embedding, IDS, CLASSES, adam, classes, ["accuracy"]),
        "one_hot": (dense(6, 5, 3, last="softmax"), VECTORS, one_hot, momentum, "categorical_crossentropy", ["acc"]),
        "regression": (dense(5, 2), VECTORS, NUMBERS, nesterov, "mse", ["mae"]),
        "sizes": (dense(5, 2), VECTORS, NUMBERS, optimizers.SGD(0.05), "mae", ["mse"]),
        "binary": (dense(5, 1, last="sigmoid"), VECTORS, SIGNS[:, 0] > 0, "sgd", "binary_crossentropy", ["accuracy"]),
        "hinge": (dense(5, 2), VECTORS, SIGNS, "sgd", "hinge", ["squared_hinge"]),
        "poisson": (dense(5, 2, last="softplus"), VECTORS, np.abs(NUMBERS), "sgd", "poisson", None),
        "divergence": (dense(6, 3, last="softmax"), VECTORS, one_hot, "sgd", "kullback_leibler_divergence", None),
        # Probabilities that do not come straight from the function that makes them.
        "clipped": (
            lambda: [*dense(6, 3, last="softmax")(), layers.Activation("hard_sigmoid")],
            VECTORS, CLASSES, "sgd", "sparse_categorical_crossentropy", ["sparse_top_k_categorical_accuracy"],
        ),
        "clipped binary": (
            lambda: [*dense(6, 1, last="sigmoid")(), layers.Activation("hard_sigmoid")],
            VECTORS, SIGNS[:, 0] > 0, "sgd", "binary_crossentropy", ["binary_accuracy"],
        ),
    }  # fmt: skip


def results(keras) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for name, (layers, x, y, optimizer, loss, metrics) in models(keras).items():
        model = keras.Sequential(layers())
        model.compile(optimizer=optimizer, loss=loss, metrics=metrics)
        model.build((None, *x.shape[1:]))
        weights = np.random.RandomState(7)
        model.set_weights([np.abs(weights.normal(0, 0.3, weight.shape)) for weight in model.get_weights()])
        history = model.fit(x, y, batch_size=16, epochs=4, shuffle=False, verbose=0, validation_split=0.2)
        found |= {f"{name}|{key}": np.array(values) for key, values in history.history.items()}
        found[f"{name}|evaluated"] = np.array(model.evaluate(x, y, batch_size=16, verbose=0))
        found[f"{name}|predicted"] = model.predict(x, verbose=0)
        found[f"{name}|parameters"] = np.array(model.count_params())
        found |= {f"{name}|weight {index}": weight for index, weight in enumerate(model.get_weights())}
    for name, (model, x, y, loss, metrics) in functional_models(keras).items():
        model.compile(optimizer="sgd", loss=loss, metrics=metrics)
        weights = np.random.RandomState(7)
        model.set_weights([np.abs(weights.normal(0, 0.3, weight.shape)) for weight in model.get_weights()])
        history = model.fit(x, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
        found |= {f"{name}|{key}": np.array(values) for key, values in history.history.items()}
        found[f"{name}|evaluated"] = np.array(model.evaluate(x, y, batch_size=16, verbose=0))
        predicted = model.predict(x, verbose=0)
        parts = predicted if isinstance(predicted, list) else [predicted]
        found |= {f"{name}|predicted {index}": part for index, part in enumerate(parts)}
        found |= {f"{name}|weight {index}": weight for index, weight in enumerate(model.get_weights())}
    return found


def functional_models(keras):
    """{name: (model, inputs, targets, losses, metrics)}."""
    layers = keras.layers
    steps = np.random.RandomState(5).randn(50, 6, 4).astype(np.float32)

    def recurrent(layer):
        x = layers.Input((6, 4))
        return keras.Model(x, layers.Dense(2)(layer(x)))

    lstm = {"recurrent_activation": "hard_sigmoid"}
    gru = {**lstm, "reset_after": False}
    several, image = layers.Input((4,)), layers.Input((8, 8, 2))
    shared = layers.Dense(4, activation="tanh")
    one = shared(several)
    two = layers.BatchNormalization(momentum=0.7)(layers.Dense(4, activation="relu")(layers.add([one, several])))
    branch = layers.Flatten()(layers.MaxPooling2D()(layers.Conv2D(3, 3, activation="relu")(image)))
    joined = layers.concatenate([layers.multiply([two, shared(one)]), layers.Dense(4)(branch)])
    many = keras.Model(
        [several, image],
        [layers.Dense(2, name="numbers")(joined), layers.Dense(3, activation="softmax", name="classes")(joined)],
    )
    inner = keras.Sequential([layers.Dense(3, activation="tanh", input_shape=(4,)), layers.LeakyReLU(0.1)])
    outer = layers.Input((4,))
    nested = keras.Model(outer, layers.Dense(2)(layers.average([inner(outer), inner(inner_of(layers, outer))])))
    sequence = layers.LSTM(3, return_sequences=True, go_backwards=True, **lstm)
    return {
        "lstm": (recurrent(layers.LSTM(3, **lstm)), steps, NUMBERS, "mse", ["mae"]),
        "gru": (recurrent(layers.GRU(3, **gru)), steps, NUMBERS, "mse", None),
        "simple rnn": (recurrent(layers.SimpleRNN(3)), steps, NUMBERS, "mse", None),
        "backwards": (recurrent(sequence), steps, np.repeat(NUMBERS[:, None], 6, 1), "mse", None),
        "many": (
            many, [VECTORS, IMAGES], [NUMBERS, CLASSES],
            {"numbers": "mse", "classes": "sparse_categorical_crossentropy"}, {"classes": ["accuracy"]},
        ),
        "nested": (nested, VECTORS, NUMBERS, "mse", None),
    }  # fmt: skip


def inner_of(layers, tensor):
    return layers.Lambda(lambda x: x * 2.0 - 1.0)(tensor)


def main(runtime: str, path: str) -> None:
    if runtime == "dtf":
        import dtf

        keras = dtf.keras
    else:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        import tensorflow

        keras = tensorflow.keras
    np.savez(path, **results(keras))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
