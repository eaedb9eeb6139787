"""Damaged files of Keras models: one ValueError that names the file and the entry."""

import copy
import json
import random

import numpy as np
import pytest

import dtf as tf

L = tf.keras.layers


@pytest.fixture(autouse=True)
def own_graph():
    tf.keras.backend.clear_session()
    with tf.Graph().as_default():
        yield
    tf.keras.backend.clear_session()


def _graph_model():
    x = L.Input((3,), name="x")
    hidden = L.Dense(2, activation="relu", kernel_regularizer=tf.keras.regularizers.l2(0.1), name="first")(x)
    return tf.keras.Model(x, L.add([L.Dense(1, name="left")(hidden), L.Dense(1, name="right")(hidden)]), name="whole")


def _stack():
    return tf.keras.Sequential([L.Dense(2, input_shape=(3,), name="first"), L.Dense(1, name="last")], name="stack")


def _paths(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _paths(each, (*path, key))


def _changed(config, path, value):
    if not path:
        return value
    changed = copy.deepcopy(config)
    *outer, last = path
    inner = changed
    for key in outer:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return changed


@pytest.mark.parametrize("make", [_graph_model, _stack])
def test_every_damaged_entry_of_a_config_is_a_value_error_that_names_it(make):
    config = json.loads(make().to_json())
    others = [None, 10**30, -1, "none", [], {}, {"class_name": "Initializer", "config": {}}, [[["x", 0, 9, {}]]]]
    cases = [(path, value) for path in _paths(config) for value in others]
    refused = 0
    for path, value in random.Random(7).sample(cases, 220):
        changed = _changed(config, path, value)
        try:
            with tf.Graph().as_default():
                tf.keras.models.model_from_json(json.dumps(changed))
        except ValueError as error:
            refused += 1
            assert str(error).startswith("The JSON of the model cannot be read: "), (path, value, error)
            assert "\n" not in str(error)
    assert refused > 90


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda c: c.pop("class_name"), "the entry 'class_name' is missing"),
        (lambda c: c.update(config=3), "config: a value of type Mapping or list is expected, not 3"),
        (lambda c: c["config"]["layers"][0].pop("config"), r"config, layers\[0\]: the entry 'config' is missing"),
        (lambda c: c["config"]["layers"][0]["config"].update(units=10**30), r"config, layers\[0\]: "),
        (lambda c: c["config"]["layers"][1]["config"].update(units="many"), r"config, layers\[1\]: .*many"),
        (lambda c: c["config"]["layers"][1].update(class_name="Nothing"), r"layers\[1\]: Unknown layer: Nothing"),
        (lambda c: c["config"]["layers"][0]["config"].update(kernel_initializer={"class_name": "Initializer"}),
         r"layers\[0\]: Unknown initializer: Initializer"),
        (lambda c: c["config"]["layers"][0]["config"].update(kernel_initializer={"config": {}}), r"layers\[0\]: "),
        (lambda c: c["config"]["layers"][0]["config"].update(colour="red"), r"layers\[0\]: .*colour"),
    ],
)  # fmt: skip
def test_a_damaged_entry_is_named(change, message):
    config = json.loads(_stack().to_json())
    change(config)
    with pytest.raises(ValueError, match=f"The JSON of the model cannot be read: .*{message}"):
        tf.keras.models.model_from_json(json.dumps(config))


@pytest.mark.parametrize("text", ["", "{", "[1", "3", "null", "[" * 20_000, None, 7, b"\xff"])
def test_a_text_that_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError, match="The JSON of the model cannot be read: "):
        tf.keras.models.model_from_json(text)


# HDF5


def _drop(path):
    def change(file):
        del file[path]

    return change


def _attribute(name, value, path="/"):
    def change(file):
        if value is None:
            del file[path].attrs[name]
        else:
            file[path].attrs[name] = value

    return change


def _array(value):
    def change(file):
        names = [each.decode() for each in file["model_weights/first"].attrs["weight_names"]]
        del file["model_weights/first"][names[0]]
        if value is not None:
            file["model_weights/first"].create_dataset(names[0], data=value)

    return change


def _group_for_an_array(file):
    _array(None)(file)
    file["model_weights/first"].create_group(file["model_weights/first"].attrs["weight_names"][0].decode())


def _huge(file):
    name = file["model_weights/first"].attrs["weight_names"][0].decode()
    _array(None)(file)
    file["model_weights/first"].create_dataset(name, (10**9, 10**6), "f8", chunks=(10, 10))


_CHANGES = {
    "no config": (_attribute("model_config", None), "it holds no model, only weights"),
    "a config of numbers": (_attribute("model_config", 3), "model_config: "),
    "a config that is no text": (_attribute("model_config", b"\xff\xfe"), "model_config: "),
    "a config cut short": (_attribute("model_config", b'{"class_name": "Sequ'), "model_config: "),
    "a config of another kind": (_attribute("model_config", b"[]"), "model_config: a mapping"),
    "no layer names": (_attribute("layer_names", None, "model_weights"), "the attribute 'layer_names' .* is missing"),
    "layer names of numbers": (_attribute("layer_names", [1, 2], "model_weights"), "'layer_names' .* texts"),
    "other layer names": (_attribute("layer_names", [b"a", b"b"], "model_weights"), "layer 'a': its group is missing"),
    "no weight names": (_attribute("weight_names", None, "model_weights/first"), "layer 'first': .*weight_names"),
    "other weight names": (_attribute("weight_names", [b"a", b"b"], "model_weights/first"), "first/a is missing"),
    "no group": (_drop("model_weights/last"), "layer 'last': its group is missing"),
    "no array": (_array(None), "layer 'first': the array .* is missing"),
    "an array of texts": (_array([b"a"]), "layer 'first': .* is not an array of numbers"),
    "an array of another shape": (_array(np.zeros([2, 2])), r"layer 'first': weights of shapes \[\(3, 2\), \(2,\)\]"),
    "an array of 8 PB": (_huge, "layer 'first': weights of shapes"),
    "a group for an array": (_group_for_an_array, "layer 'first': .* is not an array"),
    "no loss": (_attribute("training_config", b'{"optimizer_config": null}'), "training_config: the entry 'loss'"),
    "an unknown loss": (_attribute("training_config", b'{"loss": "x", "optimizer_config": null}'), "training_config: "),
    "an unknown optimizer": (
        _attribute("training_config", b'{"loss": "mse", "optimizer_config": {"class_name": "X", "config": {}}}'),
        "training_config: Unknown optimizer: X"),
    "an optimizer with other arguments": (
        _attribute("training_config", b'{"loss": "mse", "optimizer_config": {"class_name": "SGD", "config": {"a":1}}}'),
        "training_config: .*a"),
    "a training config of numbers": (_attribute("training_config", 3), "training_config: "),
}  # fmt: skip


@pytest.mark.parametrize("name", _CHANGES)
def test_a_damaged_hdf5_file_is_named_with_the_entry(name, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    path = str(tmp_path / "model.h5")
    model = _stack()
    model.compile("sgd", "mse")
    model.save(path)
    change, message = _CHANGES[name]
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(ValueError, match=f"model.h5 cannot be read: .*{message}|model.h5 cannot be read: {message}"):
        tf.keras.models.load_model(path)


def test_weights_are_unchanged_when_the_last_layer_of_a_file_is_damaged(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    path = str(tmp_path / "w.h5")
    model = _stack()
    before = model.get_weights()
    model.save_weights(path)
    with h5py.File(path, "r+") as file:
        del file["last"]
    model.set_weights([each + 1 for each in before])
    for by_name in (False, True):
        with pytest.raises(ValueError, match="w.h5 cannot be read: layer 'last': its group is missing"):
            model.load_weights(path, by_name=by_name)
    np.testing.assert_array_equal(model.get_weights()[0], before[0] + 1)


def test_changed_bytes_of_a_file_are_read_or_refused(tmp_path):
    pytest.importorskip("h5py", reason="h5py is not installed")
    path, damaged = tmp_path / "w.h5", tmp_path / "damaged.h5"
    model = _stack()
    model.save_weights(str(path))
    whole, chance, refused = path.read_bytes(), random.Random(3), 0
    for number in range(60):
        data = bytearray(whole)
        for _ in range(3):
            data[chance.randrange(min(len(data), 2048))] = chance.randrange(256)
        damaged.write_bytes(bytes(data[: chance.randrange(len(data))] if number % 6 == 0 else data))
        try:
            model.load_weights(str(damaged))
        except (ValueError, OSError) as error:
            refused += 1
            assert "damaged.h5" in str(error)
    assert refused > 10


def test_names_beyond_the_size_of_an_attribute_lie_in_several(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    from dtf.keras import hdf5

    names = [f"{number}_{'n' * 100}" for number in range(1500)]
    with h5py.File(tmp_path / "names.h5", "w") as file:
        hdf5.write_arrays(file, names, [np.float32(0)] * len(names))
        assert "weight_names" not in file.attrs and "weight_names2" in file.attrs
        assert hdf5.attribute(file, "weight_names") == names
