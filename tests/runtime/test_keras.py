"""Sequential models: trained, evaluated, asked; their weights; in a cluster; as Estimators; what is wrong with them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dtf as tf
from tests.ports import free_ports

L = tf.keras.layers
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(40, 3).astype(np.float32)
Y = X @ np.float32([[1.0], [-2.0], [0.5]]) + 0.25
CLASSES = (X[:, 0] > X[:, 1]).astype(np.int64) + (X[:, 2] > 0.5)


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield
        tf.keras.backend.set_session(None)


def linear(optimizer=None, **arguments):
    model = tf.keras.Sequential([L.Dense(1, kernel_initializer="zeros", input_shape=(3,), **arguments)])
    model.compile(optimizer or tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    return model


def classifier():
    model = tf.keras.Sequential([L.Dense(16, "relu", input_shape=(3,)), L.Dense(3, activation="softmax")])
    model.compile(tf.train.AdamOptimizer(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def gradient_descent(epochs, batch_size=16, rate=0.1):
    """Weights, and the losses of the epochs as Keras reports them."""
    w, b, losses = np.zeros((3, 1), np.float32), np.zeros(1, np.float32), []
    for _ in range(epochs):
        total = 0.0
        for start in range(0, len(X), batch_size):
            x, y = X[start : start + batch_size], Y[start : start + batch_size]
            error = x @ w + b - y
            total += len(x) * np.square(error).mean()
            w, b = w - rate * 2 * x.T @ error / len(x), b - rate * 2 * error.mean(0)
        losses.append(total / len(X))
    return w, b, losses


# Training


def test_training_is_what_numpy_computes(capsys):
    model = linear()
    history = model.fit(X, Y, batch_size=16, epochs=4, shuffle=False, verbose=2)
    w, b, losses = gradient_descent(4)
    np.testing.assert_allclose(history.history["loss"], losses, rtol=1e-4)
    assert history.epoch == [0, 1, 2, 3] and set(history.history) == {"loss", "mae"}
    kernel, bias = model.get_weights()
    np.testing.assert_allclose(kernel, w, rtol=1e-4)
    np.testing.assert_allclose(bias, b, rtol=1e-4)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and lines[0].startswith(f"Epoch 1/4 - loss: {losses[0]:.4f} - mae: ")
    loss, mae = model.evaluate(X, Y, batch_size=7, verbose=0)
    np.testing.assert_allclose([loss, mae], [np.square(X @ w + b - Y).mean(), np.abs(X @ w + b - Y).mean()], rtol=1e-3)
    np.testing.assert_allclose(model.predict(X, batch_size=7), X @ w + b, rtol=1e-3, atol=1e-5)
    again = model.fit(X, Y[:, 0], epochs=6, initial_epoch=4, verbose=0)
    assert again.epoch == [4, 5] and again.history["loss"][-1] < losses[-1]


def test_examples_are_held_out_by_part_or_given():
    model = linear()
    split = model.fit(X, Y, validation_split=0.25, verbose=0, shuffle=False).history
    with_data = linear()
    given = with_data.fit(X[:30], Y[:30], validation_data=(X[30:], Y[30:]), verbose=0, shuffle=False).history
    assert split == given and set(split) == {"loss", "mae", "val_loss", "val_mae"}
    np.testing.assert_allclose(split["val_loss"], [model.evaluate(X[30:], Y[30:], verbose=0)[0]], rtol=1e-5)


def test_the_order_is_drawn_by_numpys_generator():
    results = []
    for seed in (1, 1, 2):
        np.random.seed(seed)
        results.append(linear().fit(X, Y, epochs=2, verbose=0).history["loss"])
    assert results[0] == results[1] != results[2]


def test_classes_are_learned_and_told():
    model = classifier()
    history = model.fit(X, CLASSES, epochs=60, verbose=0).history
    assert history["accuracy"][-1] > 0.9
    assert (model.predict_classes(X) == CLASSES).mean() == pytest.approx(model.evaluate(X, CLASSES, verbose=0)[1])
    np.testing.assert_allclose(model.predict(X).sum(1), 1, rtol=1e-5)


def test_every_layer_takes_part_and_dropout_only_while_training():
    layers = [
        L.InputLayer((8, 8, 1)),
        L.Conv2D(4, 3, padding="same", activation="relu", kernel_regularizer=tf.keras.regularizers.l2(0.01)),
        L.MaxPooling2D(),
        L.Conv2D(2, (2, 2), strides=(1, 1)),
        L.BatchNormalization(),
        L.Activation("tanh"),
        L.AveragePooling2D(2, 1),
        L.Reshape((4, -1)),
        L.Reshape((2, 4)),
        L.Flatten(),
        L.Dropout(0.5),
        L.Dense(2, kernel_initializer=tf.keras.initializers.he_normal(seed=1), name="last"),
    ]
    model = tf.keras.models.Sequential(layers)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), ["acc"])
    images = RANDOM.rand(12, 8, 8, 1)
    before = model.get_weights()
    history = model.fit(images, np.arange(12) % 2, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    after = model.get_weights()
    assert [weight.shape for weight in after] == [(3, 3, 1, 4), (4,), (2, 2, 4, 2), (2,), *[(2,)] * 4, (8, 2), (2,)]
    assert all((one != other).any() for one, other in zip(before, after, strict=True))
    np.testing.assert_array_equal(model.predict(images), model.predict(images))


def test_a_mean_over_images_and_sequences():
    model = tf.keras.Sequential([L.GlobalAveragePooling2D(input_shape=(None, None, 3))])
    images = RANDOM.rand(2, 5, 4, 3).astype(np.float32)
    np.testing.assert_allclose(model.predict(images), images.mean((1, 2)), rtol=1e-5)
    convolved = tf.keras.Sequential([L.Conv1D(2, 3, input_shape=(7, 4))])
    assert convolved.predict(np.zeros((1, 7, 4))).shape == (1, 5, 2)


def test_ids_are_embedded():
    model = tf.keras.Sequential([L.Embedding(50, 4, input_length=6), L.Flatten(), L.Dense(1, "sigmoid")])
    ids = RANDOM.randint(0, 50, [64, 6])
    labels = ids[:, 0] < 25
    model.compile(tf.keras.optimizers.Adam(0.05), "binary_crossentropy", metrics=["accuracy"])
    assert model.fit(ids, labels, epochs=20, verbose=0).history["accuracy"][-1] > 0.95
    assert model.predict_classes(ids).shape == (64, 1)


def test_a_layer_of_tf_layers_serves_in_models():
    class Scale(tf.layers.Layer):
        def build(self, input_shape):
            self.factor = self.add_variable("factor", [input_shape[-1].value], initializer=tf.ones_initializer())
            super().build(input_shape)

        def call(self, inputs):
            return inputs * self.factor

    own = Scale()
    for _ in range(2):
        model = tf.keras.Sequential([own])
        model.compile("sgd", "mse")
        model.fit(X, X * 2, epochs=40, verbose=0)
        assert [weight.op.name for weight in model.weights] == ["scale/factor"]
        assert model.evaluate(X, X * 2, verbose=0) < 1.0
    assert own.built


def test_one_batch_at_a_time():
    model = linear()
    first = model.train_on_batch(X, Y)
    np.testing.assert_allclose(first[0], np.square(Y).mean(), rtol=1e-5)
    assert model.test_on_batch(X, Y)[0] < first[0]
    np.testing.assert_array_equal(model.predict_on_batch(X), model.predict(X))


# Weights


def test_weights_can_be_taken_put_and_kept(tmp_path):
    model, other = classifier(), classifier()
    model.fit(X, CLASSES, verbose=0)
    assert model.count_params() == 3 * 16 + 16 + 16 * 3 + 3
    assert [layer.name for layer in model.layers] == ["dense", "dense_1"]
    other.set_weights(model.get_weights())
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    path = str(tmp_path / "weights")
    model.save_weights(path)
    assert [name for name, _ in tf.train.list_variables(path)] == [
        "dense/bias", "dense/kernel", "dense_1/bias", "dense_1/kernel",
    ]  # fmt: skip
    third = classifier()
    third.load_weights(path)
    np.testing.assert_array_equal(third.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="not a valid checkpoint"):
        third.load_weights(str(tmp_path / "nowhere"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="shapes"):
        linear().load_weights(path)
    linear().save_weights(path + "-of-one-layer")
    with pytest.raises(tf.errors.NotFoundError, match="dense_1"):
        third.load_weights(path + "-of-one-layer")
    with pytest.raises(ValueError, match=r"Weights of shapes \[\(1,\)\] do not fit the model"):
        third.set_weights([np.zeros(1)])


def test_compiling_again_keeps_the_weights_and_adding_begins_anew():
    model = linear()
    model.fit(X, Y, verbose=0)
    before = model.get_weights()
    model.compile("adam", "mae")
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    assert isinstance(model.evaluate(X, Y, verbose=0), float)
    model.add(L.Dense(2))
    assert model.predict(X).shape == (40, 2)
    model.pop()
    assert model.predict(X).shape == (40, 1)


def test_a_summary_tells_layers_shapes_and_numbers():
    lines = []
    model = tf.keras.Sequential([L.Dense(4, input_dim=3), L.Activation("relu"), L.Dense(1000)], name="mine")
    model.summary(lines.append)
    assert lines[0] == 'Model: "mine"' and lines[-1] == "Total params: 5,016"
    assert [line.split()[0] for line in lines[2:-1]] == ["dense", "activation", "dense_1"]
    assert lines[4].split()[-3:] == ["(None,", "1000)", "5,000"]


def test_a_model_is_exported_for_serving(tmp_path):
    model, folder = classifier(), str(tmp_path / "model")
    model.fit(X, CLASSES, verbose=0)
    tf.keras.experimental.export_saved_model(model, folder)
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        outputs = session.run(signature.outputs["output"].name, {signature.inputs["input"].name: X})
    np.testing.assert_allclose(outputs, model.predict(X), rtol=1e-5)


# In a cluster


def test_workers_of_a_cluster_train_one_model(tmp_path):
    ps, *workers = [f"localhost:{port}" for port in free_ports(3)]
    cluster = {"ps": [ps], "worker": workers}
    folder = str(tmp_path / "checkpoints")
    chief = linear()
    chief.set_weights([np.float32([[1], [1], [1]]), np.float32([1])])

    def work(index, model):
        with tf.train.Server(cluster, "worker", index) as server:
            arguments = {"checkpoint_dir": folder, "save_checkpoint_steps": 10} if index == 0 else {}
            history = model.fit(
                X[index::2], Y[index::2], 10, epochs=15, validation_data=(X, Y), verbose=0, server=server, **arguments
            )
        return history, model

    with tf.train.Server(cluster, "ps", 0), ThreadPoolExecutor(2) as pool:
        done = [future.result(60) for future in [pool.submit(work, 0, chief), pool.submit(work, 1, linear())]]
    for history, model in done:
        assert len(history.history["loss"]) == 15
        assert model.evaluate(X, Y, verbose=0)[0] < 0.01
    first = tf.train.load_checkpoint(tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths[0])
    assert tf.train.load_variable(folder, "global_step") >= 30
    assert first.get_variable_to_shape_map()["dense/kernel"] == [3, 1]
    restored = linear()
    restored.load_weights(tf.train.latest_checkpoint(folder))
    assert restored.evaluate(X, Y, verbose=0)[0] < 0.01


def test_a_ps_does_not_fit_and_checkpoints_are_for_clusters(tmp_path):
    address = f"localhost:{free_ports(1)[0]}"
    with tf.train.Server({"ps": [address]}, "ps", 0) as server, pytest.raises(ValueError, match="call server.join"):
        linear().fit(X, Y, server=server)
    with pytest.raises(ValueError, match="checkpoint_dir is for training in a cluster"):
        linear().fit(X, Y, checkpoint_dir=str(tmp_path))


def test_a_model_becomes_an_estimator(tmp_path):
    model = linear()
    model.set_weights([np.float32([[1], [1], [1]]), np.float32([1])])
    config = tf.estimator.RunConfig(str(tmp_path / "model"), save_checkpoints_steps=50)
    estimator = tf.keras.estimator.model_to_estimator(model, config=config)
    x = {"x": X}

    def train_input():
        return tf.data.Dataset.from_tensor_slices((x, Y)).repeat().batch(8)

    def eval_input():
        return tf.data.Dataset.from_tensor_slices((x, Y)).batch(16)

    estimator.train(train_input, max_steps=1)
    assert estimator.evaluate(eval_input, checkpoint_path=f"{estimator.model_dir}/model.ckpt-0")[
        "mae"
    ] == pytest.approx(np.abs(X.sum(1, keepdims=True) + 1 - Y).mean(), rel=1e-4)
    estimator.train(train_input, max_steps=100)
    assert estimator.evaluate(eval_input)["mae"] < 0.01
    outputs = [row["output"] for row in estimator.predict(eval_input)]
    np.testing.assert_allclose(outputs, Y, atol=0.05)
    model.load_weights(estimator.latest_checkpoint())
    np.testing.assert_allclose(model.predict(X), outputs, rtol=1e-4)
    classes = tf.keras.estimator.model_to_estimator(classifier(), str(tmp_path / "classes"))
    classes.train(tf.estimator.inputs.numpy_input_fn(X, CLASSES, 40, shuffle=False), steps=1)
    assert "accuracy" in classes.evaluate(tf.estimator.inputs.numpy_input_fn(X, CLASSES, 40, shuffle=False))


# What is wrong


def test_mistakes_are_named():
    model = linear()
    uncompiled = tf.keras.Sequential([L.Dense(1)])
    to_estimator = tf.keras.estimator.model_to_estimator
    for error, words, make in (
        (RuntimeError, "must be compiled", lambda: uncompiled.fit(X, Y)),
        (ValueError, "input shape is not known", lambda: uncompiled.get_weights()),
        (ValueError, "has no layers", lambda: tf.keras.Sequential().predict(X)),
        (ValueError, "no layers in the model", lambda: tf.keras.Sequential().pop()),
        (ValueError, "needs a loss", lambda: tf.keras.Sequential().compile("adam")),
        (ValueError, "Unknown loss 'msee'. Did you mean one of .*'mse'", lambda: uncompiled.compile("sgd", "msee")),
        (ValueError, "Unknown optimizer 'sdg'", lambda: uncompiled.compile("sdg", "mse")),
        (TypeError, "optimizer must be a name", lambda: uncompiled.compile(1, "mse")),
        (TypeError, "loss must be a name or a function", lambda: uncompiled.compile("sgd", 1)),
        (ValueError, "Unknown activation 'rulu'", lambda: L.Dense(1, "rulu")),
        (ValueError, "Unknown initializer", lambda: L.Dense(1, kernel_initializer="random")),
        (TypeError, r"Unknown arguments of a layer: \['unit'\]", lambda: L.Dense(1, unit=2)),
        (ValueError, "needs a function or its name", lambda: L.Activation(None)),
        (TypeError, "this is a int: 1", lambda: uncompiled.add(1)),
        (ValueError, r"takes examples of shape \(3,\), not \(2,\)", lambda: model.predict(X[:, :2])),
        (ValueError, "the same number of examples; x is .40, 3. and y .39, 1.", lambda: model.fit(X, Y[1:])),
        (ValueError, r"Targets of shape \(2,\) differ from .* shape: \(1,\)", lambda: model.fit(X, X[:, :2])),
        (ValueError, "leaves one of the two parts empty", lambda: model.fit(X, Y, validation_split=0.999)),
        (ValueError, "batch_size must be positive", lambda: model.fit(X, Y, batch_size=-1)),
        (ValueError, "no examples", lambda: model.evaluate(X[:0], Y[:0])),
        (ValueError, "no examples", lambda: model.predict(X[:0])),
        (ValueError, "needs a keras_model", lambda: to_estimator()),
        (ValueError, "must be compiled before it becomes", lambda: to_estimator(tf.keras.Sequential([L.Dense(1)]))),
    ):
        with pytest.raises(error, match=words):
            make()
    with pytest.raises(ValueError, match=r"several are called \['a'\]"):
        tf.keras.Sequential([L.Dense(1, name="a", input_shape=(3,)), L.Dense(1, name="a")])


def test_labels_become_vectors():
    np.testing.assert_array_equal(tf.keras.utils.to_categorical([[0], [2]]), [[1, 0, 0], [0, 0, 1]])
    assert tf.keras.utils.to_categorical([1], 5).shape == (1, 5)
