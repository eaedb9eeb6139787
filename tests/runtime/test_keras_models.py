"""Layers and models as classes: subclasses, inner layers, metrics, masks, files, learning rates, all kinds of data."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dtf as tf

K, L = tf.keras.backend, tf.keras.layers
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(40, 3).astype(np.float32)
Y = X @ np.float32([[1.0], [-2.0], [0.5]]) + 0.25
CLASSES = (X[:, 0] > X[:, 1]).astype(np.int64)


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield
        K.set_session(None)


class Block(L.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.inner = [L.Dense(units, activation="tanh"), L.Dense(1)]

    def call(self, inputs):
        for layer in self.inner:
            inputs = layer(inputs)
        return inputs

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__(name="net")
        self.hidden = L.Dense(8, activation="relu")
        self.drop = L.Dropout(0.5)
        self.last = L.Dense(2, activation="softmax")

    def call(self, inputs, training=None):
        return self.last(self.drop(self.hidden(inputs), training=training))


def test_a_subclass_of_model_trains_on_the_first_arrays_that_it_gets(tmp_path):
    model = Net()
    model.compile(tf.keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(X, CLASSES, epochs=15, verbose=0, validation_data=(X, CLASSES)).history
    assert history["val_accuracy"][-1] > 0.8 and history["loss"][-1] < history["loss"][0]
    assert [each.name for each in model.layers] == ["dense", "dropout", "dense_1"] and len(model.weights) == 4
    np.testing.assert_allclose(model.predict(X).sum(1), 1, rtol=1e-5)
    model.save_weights(str(tmp_path / "w"))
    before = model.predict(X)
    model.set_weights([each * 0 for each in model.get_weights()])
    model.load_weights(str(tmp_path / "w"))
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(NotImplementedError, match="call save_weights"):
        model.save(str(tmp_path / "whole.h5"))


def test_inner_layers_belong_to_their_layer():
    layer = Block(4)
    outputs = layer(tf.constant(X))
    assert len(layer.trainable_weights) == 4 and outputs.shape.as_list() == [40, 1]
    layer.trainable = False
    assert not layer.trainable_weights and len(layer.non_trainable_weights) == 4
    assert len(layer.get_weights()) == 4 and layer.count_params() == 3 * 4 + 4 + 4 + 1


def test_layers_are_classes_with_weights_and_places():
    class Wide(L.Dense):
        def call(self, inputs):
            return super().call(inputs) * 2

    x = L.Input((3,))
    layer = Wide(2, kernel_initializer="ones", kernel_regularizer=tf.keras.regularizers.l2(0.1))
    y = layer(x)
    assert isinstance(layer, L.Dense) and layer.output is y and layer.input is x and layer.name == "wide"
    assert layer.output_shape == (None, 2) and layer.kernel.shape.as_list() == [3, 2] and layer.units == 2
    np.testing.assert_array_equal(layer.get_weights()[0], np.ones((3, 2)))
    config = layer.get_config()
    assert config["kernel_initializer"] == {"class_name": "Ones", "config": {"dtype": "float32"}}
    assert Wide.from_config(json.loads(json.dumps(config))).kernel_regularizer.l2 == pytest.approx(0.1)
    function = K.function([x], [y])
    np.testing.assert_allclose(function([X])[0], 2 * X.sum(1, keepdims=True) * np.ones(2), rtol=1e-5)


@pytest.mark.parametrize("kind", ["stack", "graph"])
def test_a_model_is_saved_with_its_optimizer_and_read_again(kind, tmp_path):
    pytest.importorskip("h5py", reason="h5py is not installed")
    if kind == "stack":
        model = tf.keras.Sequential([L.Dense(4, activation="relu", input_shape=(3,)), L.BatchNormalization(), Block(3)])
    else:
        x = L.Input((3,), name="x")
        hidden = L.Dense(4, activation="relu")(x)
        model = tf.keras.Model(x, L.concatenate([L.Dense(2)(hidden), Block(3)(L.LeakyReLU(0.1)(hidden))]))
    model.compile(tf.keras.optimizers.Adam(0.02), "mse", metrics=["mae"])
    targets = Y if kind == "stack" else np.concatenate([Y] * 3, 1)
    model.fit(X, targets, epochs=2, verbose=0)
    path = str(tmp_path / "model.h5")
    model.save(path)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="Unknown layer: Block; pass it in custom_objects"):
        tf.keras.models.load_model(path)
    with tf.Graph().as_default():
        again = tf.keras.models.load_model(path, custom_objects={"Block": Block})
        np.testing.assert_allclose(again.predict(X), expected, rtol=1e-6)
        assert K.get_value(again.optimizer.lr) == pytest.approx(0.02)
        assert np.isfinite(again.fit(X, targets, verbose=0).history["mae"]).all()
        copied = tf.keras.models.model_from_json(again.to_json(), {"Block": Block})
        copied.load_weights(path)
        assert copied.predict(X).shape == expected.shape


def test_an_unreadable_file_is_named(tmp_path):
    pytest.importorskip("h5py", reason="h5py is not installed")
    model = tf.keras.Sequential([L.Dense(1, input_shape=(3,))])
    model.save_weights(str(tmp_path / "w.h5"))
    with pytest.raises(ValueError, match="w.h5 cannot be read: it holds no model, only weights"):
        tf.keras.models.load_model(str(tmp_path / "w.h5"))
    with pytest.raises(OSError, match="none.h5"):
        model.load_weights(str(tmp_path / "none.h5"))
    with pytest.raises(ValueError, match="weights of 1 layers, and the model has 2"):
        tf.keras.Sequential([L.Dense(2, input_shape=(3,)), L.Dense(1)]).load_weights(str(tmp_path / "w.h5"))


def test_metrics_keep_their_state_over_an_epoch():
    model = tf.keras.Sequential([L.Dense(1, activation="sigmoid", input_shape=(3,))])
    metrics = [tf.keras.metrics.AUC(name="auc"), tf.keras.metrics.Precision(), tf.keras.metrics.BinaryAccuracy()]
    model.compile("sgd", "binary_crossentropy", metrics=metrics)
    figures = model.evaluate(X, CLASSES, batch_size=7, verbose=0)
    chances = model.predict(X)[:, 0]
    assert figures[3] == pytest.approx(((chances > 0.5) == CLASSES).mean(), rel=1e-5)
    right = ((chances > 0.5) & (CLASSES == 1)).sum()
    assert figures[2] == pytest.approx(right / max(1, (chances > 0.5).sum()), rel=1e-5)
    pairs = (chances[CLASSES == 1][:, None] - chances[CLASSES == 0][None]) > 0
    assert figures[1] == pytest.approx(pairs.mean(), abs=0.02)
    assert model.metrics_names == ["loss", "auc", "precision", "binary_accuracy"]


def test_weights_of_examples_and_classes_count():
    model = tf.keras.Sequential([L.Dense(1, kernel_initializer="zeros", input_shape=(3,))])
    model.compile("sgd", "mse")
    weights = np.arange(40) / 10
    expected = (np.square(Y[:, 0]) * weights).mean()
    assert model.evaluate(X, Y, sample_weight=weights, verbose=0) == pytest.approx(expected, rel=1e-4)
    labels = CLASSES.astype(np.float32)
    loss = model.train_on_batch(X, labels, class_weight={0: 1.0, 1: 3.0})
    assert loss == pytest.approx((np.square(labels) * np.where(CLASSES, 3, 1)).mean(), rel=1e-5)


def test_masked_steps_do_not_count():
    ids = np.int32([[0, 0, 3, 4], [5, 6, 7, 0], [1, 2, 3, 4]])
    x = L.Input((4,), dtype="int32")
    masked = L.LSTM(3)(L.Embedding(10, 2, mask_zero=True)(x))
    model = tf.keras.Model(x, masked)
    whole = model.predict(ids)
    short = model.predict(np.int32([[3, 4, 0, 0], [0, 5, 6, 7], [1, 2, 3, 4]]))
    np.testing.assert_allclose(whole, short, rtol=1e-5)
    values = np.float32([[[1], [2], [0]], [[4], [0], [0]]])
    mean = tf.keras.Sequential([L.Masking(input_shape=(3, 1)), L.GlobalAveragePooling1D()])
    np.testing.assert_allclose(mean.predict(values), [[1.5], [4.0]])


def test_the_learning_rate_follows_callbacks_and_schedules():
    model = tf.keras.Sequential([L.Dense(1, input_shape=(3,))])
    model.compile(tf.keras.optimizers.SGD(lr=0.1), "mse")
    falling = tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))
    history = model.fit(X, Y, epochs=3, verbose=0, callbacks=[falling]).history
    np.testing.assert_allclose(history["lr"], [0.1, 0.05, 0.1 / 3], rtol=1e-6)
    model.optimizer.lr = 1e-8
    plateau = tf.keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1)
    model.fit(X, Y, epochs=4, verbose=0, callbacks=[plateau])
    assert K.get_value(model.optimizer.lr) < 1e-8
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
    model.compile(tf.keras.optimizers.SGD(schedule), "mse")
    w = model.get_weights()[0]
    for rate in (0.5, 0.25):
        error = X @ w + model.get_weights()[1] - Y
        model.train_on_batch(X, Y)
        np.testing.assert_allclose(model.get_weights()[0], w - rate * 2 * X.T @ error / 40, rtol=1e-3, atol=1e-5)
        w = model.get_weights()[0]


@pytest.mark.parametrize("name", ["adadelta", "adagrad", "adam", "adamax", "ftrl", "nadam", "rmsprop", "sgd"])
def test_each_optimizer_makes_the_loss_smaller(name):
    model = tf.keras.Sequential([L.Dense(1, input_shape=(3,))])
    optimizer = tf.keras.optimizers.deserialize({"class_name": name, "config": {"learning_rate": 0.05}})
    model.compile(optimizer, "mse")
    losses = model.fit(X, Y, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < losses[0] and optimizer.get_config()["learning_rate"] == pytest.approx(0.05)


def test_examples_come_from_datasets_iterators_sequences_and_tensors():
    class Halves(tf.keras.utils.Sequence):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return X[index * 20 : index * 20 + 20], Y[index * 20 : index * 20 + 20]

    model = tf.keras.Sequential([L.Dense(1, kernel_initializer="zeros", input_shape=(3,))])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(20)
    expected = model.evaluate(X, Y, verbose=0)
    for given, steps in (
        (data, None), (data.repeat(), 2), (Halves(), None), (data.make_one_shot_iterator(), 2),
    ):  # fmt: skip
        assert model.evaluate(given, steps=steps, verbose=0) == pytest.approx(expected, rel=1e-5)
    assert model.evaluate(tf.constant(X), tf.constant(Y), steps=1, verbose=0) == pytest.approx(expected, rel=1e-5)
    history = model.fit(data, epochs=2, verbose=0, validation_data=data)
    assert len(history.history["val_loss"]) == 2
    assert model.predict(data).shape == (40, 1)
    model.fit(data.repeat(), epochs=2, steps_per_epoch=3, verbose=0)
    with pytest.raises(ValueError, match="need the number of steps"):
        model.evaluate(tf.constant(X), tf.constant(Y))


def test_losses_of_layers_and_of_programs_are_added():
    x = L.Input((3,))
    mean, spread = L.Dense(2)(x), L.Dense(2)(x)
    sampled = L.Lambda(lambda each: each[0] + K.exp(each[1]) * 0.1)([mean, spread])
    outputs = L.Dense(3)(sampled)
    model = tf.keras.Model(x, outputs)
    divergence = -0.5 * K.mean(1 + spread - K.square(mean) - K.exp(spread))
    model.add_loss(K.mean(tf.keras.losses.mean_squared_error(x, outputs)) + divergence)
    model.compile("adam")
    losses = model.fit(X, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_tables_and_attention_have_the_shapes_of_keras():
    images = RANDOM.rand(2, 6, 6, 3).astype(np.float32)
    for layer, shape in (
        (L.DepthwiseConv2D(3, depth_multiplier=2), (2, 4, 4, 6)), (L.Cropping2D(1), (2, 4, 4, 3)),
        (L.PReLU(), (2, 6, 6, 3)), (L.LayerNormalization(), (2, 6, 6, 3)), (L.ReLU(0.5, 0.1, 0.2), (2, 6, 6, 3)),
        (L.UpSampling2D(2, interpolation="bilinear"), (2, 12, 12, 3)), (L.SpatialDropout2D(0.5), (2, 6, 6, 3)),
    ):  # fmt: skip
        x = L.Input((6, 6, 3))
        assert tf.keras.Model(x, layer(x)).predict(images).shape == shape
    q, v = L.Input((4, 3)), L.Input((5, 3))
    model = tf.keras.Model([q, v], [L.Attention()([q, v]), L.Dot((2, 2))([q, v])])
    attended, products = model.predict([RANDOM.rand(2, 4, 3), RANDOM.rand(2, 5, 3)])
    assert attended.shape == (2, 4, 3) and products.shape == (2, 4, 5)


def test_a_cell_of_ones_own_runs_along_sequences():
    class Sum(L.Layer):
        state_size = 2

        def build(self, input_shape):
            self.kernel = self.add_weight("kernel", (3, 2), initializer="ones")
            super().build(input_shape)

        def call(self, inputs, states):
            total = states[0] + K.dot(inputs, self.kernel)
            return total, [total]

    x = L.Input((4, 3))
    model = tf.keras.Model(x, L.RNN(Sum(), return_sequences=True)(x))
    values = RANDOM.rand(2, 4, 3).astype(np.float32)
    np.testing.assert_allclose(model.predict(values)[..., 0], values.sum(2).cumsum(1), rtol=1e-5)
    assert len(model.trainable_weights) == 1
