"""Keras models that go on: states of recurrent layers over batches, and the optimizer's state in files."""

import numpy as np
import pytest

import dtf as tf

L, K = tf.keras.layers, tf.keras.backend


@pytest.fixture(autouse=True)
def own_graph():
    K.clear_session()
    with tf.Graph().as_default():
        yield
    K.clear_session()


def _arrays(*shapes):
    chance = np.random.RandomState(0)
    return [chance.uniform(-0.5, 0.5, shape).astype("f") for shape in shapes]


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
def test_a_stateful_layer_begins_with_the_states_of_the_batch_before(kind):
    (x,) = _arrays((4, 6, 3))
    whole = tf.keras.Sequential([getattr(L, kind)(2, return_sequences=True, input_shape=(6, 3))])
    parts = tf.keras.Sequential([
        getattr(L, kind)(2, return_sequences=True, stateful=True, batch_input_shape=(4, 2, 3))
    ])  # fmt: skip
    parts.set_weights(whole.get_weights())
    assert parts.stateful and not whole.stateful and len(parts.weights) == len(whole.weights)
    expected = whole.predict(x)
    for _ in range(2):
        found = [parts.predict(x[:, begin : begin + 2]) for begin in (0, 2, 4)]
        np.testing.assert_allclose(np.concatenate(found, 1), expected, atol=1e-6)
        parts.reset_states()


def test_the_states_of_a_stateful_model_move_in_training_and_evaluation():
    x, y = _arrays((8, 3, 2), (8, 1))
    model = tf.keras.Sequential([L.LSTM(3, stateful=True, batch_input_shape=(4, 3, 2)), L.Dense(1)])
    model.compile("sgd", "mse")
    layer = model.layers[0]
    seen = [np.concatenate(layer.get_states())]
    model.fit(x, y, epochs=2, shuffle=False, verbose=0)
    seen.append(np.concatenate(layer.get_states()))
    model.evaluate(x, y, verbose=0)
    seen.append(np.concatenate(layer.get_states()))
    assert not seen[0].any()
    assert np.abs(seen[1] - seen[0]).max() > 1e-4 and np.abs(seen[2] - seen[1]).max() > 1e-4
    layer.reset_states([np.ones((4, 3)), np.zeros((4, 3))])
    np.testing.assert_array_equal(layer.get_states()[0], np.ones((4, 3)))
    assert layer.get_config()["stateful"] is True


def test_a_stateful_convolutional_layer_keeps_its_states():
    (x,) = _arrays((2, 4, 3, 3, 1))
    whole = tf.keras.Sequential([L.ConvLSTM2D(2, 2, input_shape=(4, 3, 3, 1))])
    parts = tf.keras.Sequential([L.ConvLSTM2D(2, 2, stateful=True, batch_input_shape=(2, 2, 3, 3, 1))])
    parts.set_weights(whole.get_weights())
    parts.predict(x[:, :2])
    np.testing.assert_allclose(parts.predict(x[:, 2:]), whole.predict(x), atol=1e-6)


def test_misuse_of_states_is_named():
    with pytest.raises(ValueError, match="is stateful and must know the shape of its states"):
        L.GRU(2, stateful=True)(L.Input((3, 2)))
    layer = L.GRU(2, stateful=True)
    with pytest.raises(ValueError, match="has no states before it is called"):
        layer.reset_states()
    layer(L.Input(batch_shape=(4, 3, 2)))
    with pytest.raises(ValueError, match=r"states of shapes \[\(4, 2\)\], not \[\(3, 2\)\]"):
        layer.reset_states(np.zeros((3, 2)))
    with pytest.raises(AttributeError, match="must be stateful"):
        L.GRU(2).reset_states()
    model = tf.keras.Sequential([L.GRU(2, stateful=True, batch_input_shape=(4, 3, 2))])
    with pytest.raises(ValueError, match="takes batches of 4 examples, a multiple in all, not 6"):
        model.predict(np.zeros((6, 3, 2)))


# Optimizers in files


_OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "clipnorm": 0.1}, "Adam": {}, "Adamax": {"decay": 0.1}, "Nadam": {},
    "RMSprop": {"momentum": 0.5, "centered": True}, "Adagrad": {}, "Adadelta": {}, "Ftrl": {},
}  # fmt: skip


@pytest.mark.parametrize(
    "kind, name", [*[(kind, "model.h5") for kind in _OPTIMIZERS], ("Adam", "folder"), ("Ftrl", "folder")]
)
def test_training_goes_on_with_equal_losses_after_a_file(kind, name, tmp_path):
    pytest.importorskip("h5py", reason="h5py is not installed")
    x, y = _arrays((8, 3), (8, 2))
    model = tf.keras.Sequential([L.Dense(3, activation="tanh", input_shape=(3,)), L.Dense(2)])
    model.compile(getattr(tf.keras.optimizers, kind)(0.05, **_OPTIMIZERS[kind]), "mse")
    given = {"epochs": 2, "batch_size": 4, "shuffle": False, "verbose": 0}
    model.fit(x, y, **given)
    path = str(tmp_path / name)
    model.save(path, save_format="h5" if name.endswith("h5") else "tf")
    expected = model.fit(x, y, **given).history["loss"]
    with tf.Graph().as_default():
        again = tf.keras.models.load_model(path)
        assert again.fit(x, y, **given).history["loss"] == pytest.approx(expected, rel=1e-5)


def test_a_folder_of_a_model_serves_and_makes_the_model_again(tmp_path):
    (x,) = _arrays((5, 3))
    given = L.Input((3,), name="given")
    model = tf.keras.Model(given, [L.Dense(2, name="one")(given), L.BatchNormalization(name="two")(given)])
    path = str(tmp_path / "model")
    for _ in range(2):  # the second replaces the first
        model.set_weights([each + 1 for each in model.get_weights()])
        tf.keras.models.save_model(model, path, save_format="tf")
    expected = model.predict(x)
    with tf.Graph().as_default():
        again = tf.keras.models.load_model(path)
        for mine, other in zip(again.predict(x), expected, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-6)
        assert again.optimizer is None
        assert tf.keras.experimental.load_from_saved_model(path).output_names == ["one", "two"]
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.loader.load(session, ["serve"], path).signature_def["serving_default"]
        found = session.run(signature.outputs["one"].name, {signature.inputs["given"].name: x})
        np.testing.assert_allclose(found, expected[0], rtol=1e-6)


def test_a_folder_that_is_no_keras_model_is_named_and_kept(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("kept")
    with pytest.raises(ValueError, match="other has no assets/saved_model.json"):
        tf.keras.models.load_model(str(tmp_path / "other"))
    model = tf.keras.Sequential([L.Dense(1, input_shape=(3,))])
    with pytest.raises(AssertionError, match="isn't empty"):
        model.save(str(tmp_path / "other"), save_format="tf")
    assert (tmp_path / "other" / "notes.txt").read_text() == "kept"
    model.save(str(tmp_path / "model"), save_format="tf")
    config = tmp_path / "model" / "assets" / "saved_model.json"
    config.write_text(config.read_text().replace('"units": 1', '"units": 2'))
    with pytest.raises(ValueError, match="saved_model.json cannot be read: .*shapes"):
        tf.keras.models.load_model(str(tmp_path / "model"))
    config.write_text("{")
    with pytest.raises(ValueError, match="saved_model.json cannot be read: "):
        tf.keras.models.load_model(str(tmp_path / "model"))


def test_the_state_of_another_optimizer_is_left_out_and_a_damaged_one_is_named(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    x, y = _arrays((4, 3), (4, 1))
    model = tf.keras.Sequential([L.Dense(1, input_shape=(3,))])
    model.compile(tf.keras.optimizers.Adam(0.05), "mse")
    model.fit(x, y, verbose=0)
    path = str(tmp_path / "model.h5")
    model.save(path)
    with h5py.File(path, "r+") as file:
        names = list(file["optimizer_weights"].attrs["weight_names"])
        assert names[0] == b"training/Adam/iter:0" and names[1].endswith(b"kernel/m:0")
        file["optimizer_weights"].attrs["weight_names"] = names[:-1]
    assert np.isfinite(tf.keras.models.load_model(path).evaluate(x, y, verbose=0))
    with h5py.File(path, "r+") as file:
        file["optimizer_weights"].attrs["weight_names"] = [*names[:-1], b"none"]
    with pytest.raises(ValueError, match="model.h5 cannot be read: optimizer_weights: the array .* is missing"):
        tf.keras.models.load_model(path)
