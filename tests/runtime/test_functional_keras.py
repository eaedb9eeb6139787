"""Functional Keras models: graphs of layers, common weights, callbacks, sessions, Estimators, and mistakes."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import dtf as tf

K, L = tf.keras.backend, tf.keras.layers
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(40, 3).astype(np.float32)
Y = X @ np.float32([[1.0], [-2.0], [0.5]]) + 0.25
CLASSES = (X[:, 0] > X[:, 1]).astype(np.int64) + (X[:, 2] > 0.5)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph
        K.set_session(None)


def linear(rate=0.1):
    x = L.Input((3,), name="x")
    model = tf.keras.Model(x, L.Dense(1, kernel_initializer="zeros", name="y")(x))
    model.compile(tf.keras.optimizers.SGD(rate), "mse", metrics=["mae"])
    return model


def test_a_model_trains_as_the_same_stack_does():
    model = linear()
    stack = tf.keras.Sequential([L.Dense(1, kernel_initializer="zeros", input_shape=(3,))])
    stack.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    given = {"batch_size": 16, "epochs": 4, "shuffle": False, "verbose": 0, "validation_split": 0.25}
    history, expected = (each.fit(X, Y, **given) for each in (model, stack))
    assert set(history.history) == {"loss", "mae", "val_loss", "val_mae"}
    for name, values in expected.history.items():
        np.testing.assert_allclose(history.history[name], values, rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(X, Y, verbose=0), stack.evaluate(X, Y, verbose=0), rtol=1e-5)
    np.testing.assert_allclose(model.predict(X, batch_size=7), stack.predict(X), rtol=1e-5)
    assert model.train_on_batch(X, Y) == pytest.approx(stack.train_on_batch(X, Y))


def test_several_inputs_and_outputs():
    one, other = L.Input((3,), name="one"), L.Input((3,), name="other")
    shared = L.Dense(4, activation="tanh")
    joined = L.concatenate([shared(one), shared(other)])
    number = L.Dense(1, name="number")(joined)
    kind = L.Dense(3, activation="softmax", name="kind")(L.Dropout(0.5)(joined))
    model = tf.keras.Model([one, other], [number, kind])
    model.compile(
        "adam", {"number": "mse", "kind": "sparse_categorical_crossentropy"}, {"kind": ["accuracy"]},
        loss_weights=[0.5, 2.0],
    )  # fmt: skip
    assert [layer.name for layer in model.layers][:3] == ["one", "other", "dense"] and len(model.weights) == 6
    assert model.input_shape == [(None, 3), (None, 3)] and model.output_names == ["number", "kind"]
    history = model.fit({"one": X, "other": X}, {"number": Y, "kind": CLASSES}, epochs=2, verbose=0).history
    assert set(history) == {"loss", "number_loss", "kind_loss", "kind_accuracy"}
    loss, of_number, of_kind, accuracy = model.evaluate([X, X], [Y, CLASSES], verbose=0)
    assert loss == pytest.approx(0.5 * of_number + 2 * of_kind, rel=1e-5)
    numbers, chances = model.predict([X, X])
    assert accuracy == pytest.approx((chances.argmax(1) == CLASSES).mean())
    assert of_number == pytest.approx(np.square(numbers - Y).mean(), rel=1e-4)
    lines = []
    model.summary(print_fn=lines.append)
    assert any("one (InputLayer)" in line for line in lines) and lines[-1] == "Total params: 52"


def test_models_with_common_layers_have_common_weights():
    x = L.Input((3,))
    code = L.Dense(2, name="code")(x)
    whole, encoder = tf.keras.Model(x, L.Dense(3)(code)), tf.keras.Model(x, code)
    whole.compile(tf.keras.optimizers.SGD(0.1), "mse")
    before = encoder.predict(X)
    whole.fit(X, X, epochs=3, verbose=0)
    assert (encoder.predict(X) != before).any()
    np.testing.assert_array_equal(encoder.get_weights()[0], K.get_value(whole.get_layer("code").kernel))


def test_a_frozen_part_of_a_model_is_not_trained():
    """As adversarial networks: the judge trains by itself, the generator through the frozen judge."""
    judge = tf.keras.Sequential([L.Dense(4, input_shape=(3,)), L.LeakyReLU(0.2), L.Dense(1, activation="sigmoid")])
    judge.compile(tf.keras.optimizers.SGD(0.1), "binary_crossentropy", metrics=["accuracy"])
    held = judge.get_weights()
    generator = tf.keras.Sequential([L.Dense(3, input_dim=2), L.BatchNormalization(momentum=0.8)])
    noise = L.Input(shape=(2,))
    image = generator(noise)
    judge.trainable = False
    both = tf.keras.Model(noise, judge(image))
    both.compile(tf.keras.optimizers.SGD(0.1), "binary_crossentropy")
    for one, other in zip(held, judge.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    generated = generator.get_weights()
    both.train_on_batch(X[:, :2], np.ones(40))
    for one, other in zip(held, judge.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all((one != other).any() for one, other in zip(generated[2:4], generator.get_weights()[2:4], strict=True))
    loss, _ = judge.train_on_batch(generator.predict(X[:, :2]), np.zeros(40))
    assert np.isfinite(loss) and (held[0] != judge.get_weights()[0]).any()


def test_layers_are_called_on_tensors_of_any_program():
    image = tf.placeholder(tf.float32, [None, 3])
    outputs = L.Dense(3, activation="softmax")(L.Dropout(0.5)(L.Dense(8, activation="relu")(image)))
    loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(CLASSES, outputs))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        K.set_session(session)
        session.run(tf.global_variables_initializer())
        first = session.run(loss, {image: X})
        for _ in range(40):
            session.run(step, {image: X, K.learning_phase(): True})
        assert session.run(loss, {image: X}) < first
        one, two = session.run(outputs, {image: X}), outputs.eval({image: X, K.learning_phase(): 0})
        np.testing.assert_array_equal(one, two)


def test_layers_of_ones_own_and_functions():
    class Scale(L.Layer):
        def __init__(self, factor, **kwargs):
            self.factor = factor
            super().__init__(**kwargs)

        def build(self, input_shape):
            self.kernel = self.add_weight(name="kernel", shape=(int(input_shape[1]),), initializer="ones")
            super().build(input_shape)

        def call(self, x):
            return x * self.kernel * self.factor

    x = L.Input((3,))
    model = tf.keras.Model(x, L.Lambda(lambda t: t + 1.0)(Scale(2.0)(x)))
    np.testing.assert_allclose(model.predict(X), 2 * X + 1, rtol=1e-6)
    assert [weight.op.name for weight in model.trainable_weights] == ["scale/kernel"]
    two = [X, X + 1]
    a, b = L.Input((3,)), L.Input((3,))
    for layer, expected in (
        (L.Add(), two[0] + two[1]), (L.Subtract(), two[0] - two[1]), (L.Multiply(), two[0] * two[1]),
        (L.Average(), (two[0] + two[1]) / 2), (L.Maximum(), two[1]), (L.Concatenate(), np.concatenate(two, 1)),
        (L.Dot(1), (two[0] * two[1]).sum(1, keepdims=True)),
    ):  # fmt: skip
        np.testing.assert_allclose(tf.keras.Model([a, b], layer([a, b])).predict(two), expected, rtol=1e-5, atol=1e-6)


def test_shapes_of_images_and_sequences():
    images = RANDOM.rand(2, 2, 3, 1).astype(np.float32)
    x = L.Input((2, 3, 1))
    for layer, expected in (
        (L.UpSampling2D((2, 3)), images.repeat(2, 1).repeat(3, 2)),
        (L.ZeroPadding2D(((1, 0), (0, 2))), np.pad(images, ((0, 0), (1, 0), (0, 2), (0, 0)))),
        (L.GlobalMaxPooling2D(), images.max((1, 2))),
        (L.Permute((2, 1, 3)), images.transpose(0, 2, 1, 3)),
    ):
        np.testing.assert_allclose(tf.keras.Model(x, layer(x)).predict(images), expected, rtol=1e-6)
    vector = L.Input((3,))
    repeated = L.RepeatVector(4)(vector)
    assert tf.keras.Model(vector, L.GlobalMaxPooling1D()(repeated)).predict(X).tolist() == X.tolist()


def test_a_sequence_is_encoded_and_decoded():
    source, target = L.Input((None, 3)), L.Input((None, 2))
    _, hidden, kept = L.LSTM(4, return_state=True)(source)
    decoded, _, _ = L.LSTM(4, return_sequences=True, return_state=True)(target, initial_state=[hidden, kept])
    model = tf.keras.Model([source, target], L.Dense(2, activation="softmax")(decoded))
    model.compile("rmsprop", "categorical_crossentropy")
    arrays = [RANDOM.rand(5, 6, 3), np.eye(2)[RANDOM.randint(0, 2, [5, 4])]]
    losses = model.fit(arrays, arrays[1], epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0] and model.predict(arrays).shape == (5, 4, 2)
    encoder = tf.keras.Model(source, [hidden, kept])
    assert [each.shape for each in encoder.predict(arrays[0])] == [(5, 4), (5, 4)]


# Callbacks


def test_callbacks_are_called_in_order(tmp_path):
    calls = []
    log = tf.keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: calls.append("begin"),
        on_epoch_begin=lambda epoch, logs: calls.append(f"epoch {epoch}"),
        on_batch_end=lambda batch, logs: calls.append(f"batch {batch} of {logs['size']}"),
        on_epoch_end=lambda epoch, logs: calls.append(sorted(logs)),
        on_train_end=lambda logs: calls.append("end"),
    )
    kept = tf.keras.callbacks.History()
    table = tf.keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    history = linear().fit(X, Y, batch_size=32, epochs=2, verbose=0, callbacks=[log, kept, table])
    epoch = ["batch 0 of 32", "batch 1 of 8", ["loss", "mae"]]
    assert calls == ["begin", "epoch 0", *epoch, "epoch 1", *epoch, "end"]
    assert kept.history == history.history
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert [float(row["loss"]) for row in rows] == pytest.approx(history.history["loss"])


@pytest.mark.parametrize("is_stack", [False, True])
def test_training_ends_early_with_the_best_weights(is_stack, tmp_path):
    model = linear(rate=3.0)  # diverges
    if is_stack:
        model = tf.keras.Sequential([L.Dense(1, kernel_initializer="zeros", input_shape=(3,))])
        model.compile(tf.keras.optimizers.SGD(3.0), "mse", metrics=["mae"])
    stop = tf.keras.callbacks.EarlyStopping("loss", patience=2, restore_best_weights=True)
    path = str(tmp_path / "best-{epoch:02d}")
    save = tf.keras.callbacks.ModelCheckpoint(path, "loss", save_best_only=True, save_weights_only=True)
    board = tf.keras.callbacks.TensorBoard(str(tmp_path / "logs"))
    history = model.fit(X, Y, epochs=10, batch_size=40, verbose=0, callbacks=[stop, save, board])
    assert history.epoch == [0, 1, 2] and stop.stopped_epoch == 2
    best = model.get_weights()
    model.load_weights(str(tmp_path / "best-01"))
    np.testing.assert_array_equal(model.get_weights()[0], best[0])
    events = next((tmp_path / "logs" / "train").iterdir())
    tags = {v.tag: v.simple_value for e in tf.train.summary_iterator(str(events)) for v in e.summary.value}
    assert tags["epoch_loss"] == pytest.approx(history.history["loss"][-1], rel=1e-5)


# Sessions and Estimators


def test_the_session_is_the_programs_own(graph):
    assert K.get_session() is K.get_session() and K.get_session().graph is graph
    session = tf.Session()
    K.set_session(session)
    v = K.variable([1.0, 2.0])
    K.set_value(v, [3.0, 4.0])
    assert K.get_session() is session and K.get_value(v).tolist() == [3, 4]
    assert K.int_shape(K.placeholder((None, 3))) == (None, 3) and K.ndim(K.placeholder(ndim=2)) == 2
    assert K.get_value(K.mean(K.square(v))) == 12.5
    with tf.Session() as other:
        assert K.get_session() is other and K.get_value(v).tolist() == [1, 2]
    K.set_learning_phase(1)
    assert K.learning_phase() is True


def test_a_functional_model_becomes_an_estimator(tmp_path):
    tf.set_random_seed(1)
    x = L.Input((3,), name="x")
    hidden = L.BatchNormalization()(L.Dense(8, activation="relu")(x))
    model = tf.keras.Model(x, L.Dense(1, name="y")(L.Dropout(0.1)(L.add([hidden, hidden]))))
    model.compile(tf.train.AdamOptimizer(0.02), "mse", metrics=["mae"])
    config = tf.estimator.RunConfig(tf_random_seed=1)
    estimator = tf.keras.estimator.model_to_estimator(model, str(tmp_path), config=config)

    def inputs():
        return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(3).batch(40)

    before = model.evaluate(X, Y, verbose=0)
    estimator.train(lambda: inputs().repeat(16))
    after = estimator.evaluate(inputs, steps=1)
    assert after["global_step"] == 48 and after["loss"] < before[0] and "mae" in after
    assert next(estimator.predict(inputs))["y"].shape == (1,)


def test_weights_are_saved_and_read(tmp_path, graph):
    model = linear()
    model.fit(X, Y, verbose=0)
    expected = model.get_weights()
    model.save_weights(str(tmp_path / "weights"))
    model.fit(X, Y, verbose=0)
    model.load_weights(str(tmp_path / "weights"))
    np.testing.assert_array_equal(model.get_weights()[0], expected[0])


def test_mistakes_are_named(tmp_path):
    model, x = linear(), L.Input((3,), name="in")
    y = L.Dense(2)(x)
    plain = tf.keras.Model(x, y)
    called = tf.keras.Sequential([L.Dense(1)])
    called(x)
    save = tf.keras.callbacks.ModelCheckpoint
    for error, words, make in (
        (TypeError, "needs inputs and outputs; or write a subclass", lambda: tf.keras.Model()),
        (ValueError, "operation Const, not from a layer; put .*Lambda", lambda: tf.keras.Model(x, tf.constant(1.0))),
        (ValueError, "need the Input in:0", lambda: tf.keras.Model(L.Input((3,)), y)),
        (RuntimeError, "must be compiled", lambda: plain.fit(X, Y)),
        (ValueError, "needs a loss", lambda: plain.compile("sgd")),
        (ValueError, r"takes examples of shape \(3,\), not \(1,\)", lambda: plain.predict(Y)),
        (ValueError, r"The inputs lack \['in'\]", lambda: plain.predict({"out": X})),
        (ValueError, "No such layer: none; the layers are", lambda: plain.get_layer("none")),
        (ValueError, "takes 1 inputs, not 2", lambda: plain([x, x])),
        (ValueError, "do not fit the model", lambda: plain.set_weights([X])),
        (ValueError, "the same number of examples", lambda: model.fit(X, Y[1:])),
        (ValueError, r"Targets of shape \(3,\) differ from", lambda: model.fit(X, X)),
        (ValueError, "no examples", lambda: plain.predict(X[:0])),
        (ValueError, "needs a shape", lambda: L.Input()),
        (ValueError, "Sparse inputs", lambda: L.Input((3,), sparse=True)),
        (ValueError, "save_freq=5 is not supported", lambda: save(str(tmp_path / "m"), save_freq=5)),
        (ValueError, "must be 0 or 1", lambda: K.set_learning_phase(2)),
        (ValueError, "reset_after", lambda: L.GRU(3, reset_after=True)),
        (TypeError, "must be a tf.keras.callbacks.Callback", lambda: model.fit(X, Y, callbacks=[1])),
        (AttributeError, "tf.keras.layers|no attribute 'ConvLSTM3D'", lambda: L.ConvLSTM3D),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            make()
