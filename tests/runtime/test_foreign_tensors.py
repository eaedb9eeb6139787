"""A tensor or variable of TensorFlow itself, given to an operation of dtf: one line says so."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


def foreign(name, package):
    """An object of a class that has the place of TensorFlow's; the program has no TensorFlow."""

    def as_array(self, *_):
        return np.ones(2, np.float32)

    kind = type(name, (), {"__module__": package, "__array__": as_array, "__array_priority__": 100})
    return kind()


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("EagerTensor", "tensorflow.python.framework.ops"),
        ("ResourceVariable", "tensorflow.python.ops.resource_variable_ops"),
        ("KerasTensor", "keras.src.backend.common.keras_tensor"),
        ("KerasTensor", "tf_keras.src.engine.keras_tensor"),
    ],
)
def test_a_tensor_of_tensorflow_is_refused_in_one_line(name, package):
    given = foreign(name, package)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        for use in (
            tf.convert_to_tensor,
            tf.nn.relu,
            lambda t: tf.add(x, t),
            lambda t: x + t,
            lambda t: tf.stack([x, t]),
            tf.Variable,
        ):
            with pytest.raises(
                TypeError, match=rf"A {package.partition('.')[0]} {name} cannot be used with dtf: "
            ) as e:
                use(given)
            assert "\n" not in str(e.value)


def test_arrays_of_other_packages_are_constants_as_before():
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.convert_to_tensor(foreign("Array", "jaxlib.xla"))).tolist() == [1, 1]
