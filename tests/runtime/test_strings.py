"""Strings must keep the NULs at their ends: kernels hand on arrays of bytes objects, never numpy's own strings."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.build.constant_value import constant_value
from dtf.run import kernels
from dtf.wire import codec, dtypes, errors, opdef
from dtf.wire.strings import filled, string_scalar
from tests.interop import string_programs
from tests.runtime.op_cases import Case, all_cases
from tests.runtime.string_values import check_strings, checked_strings
from tests.runtime.test_ops import build, run


def test_strings_keep_their_nuls_wherever_they_come_from(tmp_path):
    with checked_strings() as seen:
        found = string_programs.outcomes(tf, str(tmp_path))
    assert len(found) > 160 and len(seen) > 60
    for name, value in found.items():
        assert value == string_programs.expected(name), name


def test_strings_keep_their_nuls_on_their_way_to_a_server_and_back():
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        values = string_programs.producers(tf)
        values = {name: value for name, value in values.items() if not name.startswith("py_func")}
        fed = tf.placeholder(tf.string, [])
        found = session.run([*values.values(), tf.identity(fed)], {fed: string_programs.NULS})
    for name, value in zip([*values, "fed"], found, strict=True):
        assert value == string_programs.NULS, name


# -- every kernel that may give strings

PARTS = [b"a\0", b"", b"\0\0", b"bc", b"d\0\0", b"e"]


def strings(shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, object)
    array.reshape(-1)[:] = [PARTS[number % len(PARTS)] for number in range(array.size)]
    return array


def string_attributes(op: str) -> set[str]:
    """The type attributes of the op that its outputs have, and that may be strings."""
    contract = opdef.get(op)
    found = {argument.type_attr or argument.type_list_attr for argument in contract.outputs} - {None}
    attributes = (contract.attr_by_name[name] for name in found)
    return {each.name for each in attributes if each.allowed is None or dtypes.string in each.allowed}


def with_strings(case: Case, attribute: str, scalars: bool) -> Case:
    """The row with strings for everything of the type `attribute`."""
    inputs: list[Any] = []
    for argument, value in zip(opdef.get(case.op).inputs, case.inputs, strict=True):
        if attribute not in (argument.type_attr, argument.type_list_attr):
            inputs.append(value)
        elif isinstance(value, list):
            inputs.append([strings(() if scalars else np.shape(each)) for each in value])
        else:
            inputs.append(strings(() if scalars else np.shape(value)))
    attrs = dict(case.attrs)
    if attribute in attrs:
        attrs[attribute] = [tf.string] * len(attrs[attribute]) if isinstance(attrs[attribute], list) else tf.string
    return dataclasses.replace(case, inputs=inputs, attrs=attrs)


def test_a_kernel_of_any_type_gives_strings_as_arrays_of_bytes():
    ops = set()
    for case in all_cases():
        if case.run is not None:
            continue
        for attribute in string_attributes(case.op):
            for scalars in (False, True):
                changed = with_strings(case, attribute, scalars)
                graph = tf.Graph()
                try:
                    placeholders, outputs, arrays = build(changed, graph)
                except Exception:
                    continue  # of another type or shape than the op takes
                with checked_strings() as seen:
                    try:
                        run(graph, outputs, zip(placeholders, arrays, strict=True))
                    except errors.InternalError:
                        raise  # what the check says, among others
                    except errors.OpError:
                        continue  # an op that does not take them
                ops |= seen
    assert len(ops) > 80


@pytest.mark.parametrize("op", ["SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad"])
def test_strings_are_not_added_up_as_gradients(op: str):
    with pytest.raises(errors.InvalidArgumentError, match="strings have no sum"):
        node = kernels.KernelNode("n", op, "", {"T": tf.string}, 2, {})
        kernels.bind(node)


def test_what_is_missing_is_an_empty_string():
    with tf.Graph().as_default(), tf.Session() as session:
        spaced = tf.space_to_batch_nd([["a\0"]], [2], [[1, 0]])
        held = tf.raw_ops.TensorListFromTensor(tensor=["a", "b"], element_shape=tf.constant([], tf.int32))
        zeros = tf.raw_ops.TensorListStack(
            input_handle=tf.zeros_like(held), element_shape=tf.constant([], tf.int32), element_dtype=tf.string
        )
        assert session.run(spaced).tolist() == [[b""], [b"a\0"]]
        assert session.run(zeros).tolist() == [b"", b""]


# -- the constructors, and values from outside


@pytest.mark.parametrize("value", [b"a\0\0", "a\0\0", np.bytes_(b"a\0\0"), np.str_("a\0\0"), bytearray(b"a\0\0")])
def test_a_scalar_is_an_array_of_bytes(value: Any):
    check_strings("string_scalar", string_scalar(value))
    assert string_scalar(value).shape == () and string_scalar(value).item() == b"a\0\0"


def test_an_array_is_filled_with_whole_strings():
    check_strings("filled", filled((2, 3), b"a\0\0", object))
    assert filled(2, b"a\0\0", object).tolist() == [b"a\0\0"] * 2
    assert filled((2, 1), 3, np.int32).tolist() == [[3], [3]] and filled((), 3, np.int32).dtype == np.int32


@pytest.mark.parametrize("value", [np.bytes_(b"a\0"), [np.bytes_(b"a\0")], np.str_("a\0"), ["a\0"], [[b"a\0"]]])
def test_values_of_python_keep_their_nuls(value: Any):
    proto = codec.make_tensor_proto(value)
    assert list(proto.string_val) == [b"a\0"]
    array = codec.make_ndarray(proto)
    check_strings("make_ndarray", array)
    assert array.shape == np.shape(value)


def test_what_a_constant_is_known_to_be_keeps_its_nuls():
    with tf.Graph().as_default():
        vector = tf.constant([b"x", b"a\0"])
        for known in (tf.constant(b"a\0"), vector[1], tf.fill([], tf.constant(b"a\0"))):
            value = constant_value(known)
            assert value is not None and value.item() == b"a\0"


def test_a_python_function_is_given_bytes_and_numbers_for_scalars():
    given = []

    def remember(*values):
        given.extend(values)
        return values[0]

    with tf.Graph().as_default(), tf.Session() as session:
        result = tf.py_func(remember, [b"a\0", 1.5, 3, [b"b\0"], [1.5]], tf.string)
        assert session.run(result) == b"a\0"
    assert [type(value) for value in given] == [bytes, np.float32, np.int32, np.ndarray, np.ndarray]
    assert given[0] == b"a\0" and given[3].tolist() == [b"b\0"]


def test_a_vocabulary_keeps_words_that_differ_in_their_nuls():
    column = tf.feature_column.categorical_column_with_vocabulary_list("word", [b"a", b"a\0"])
    with tf.Graph().as_default(), tf.Session() as session:
        dense = tf.feature_column.input_layer(
            {"word": tf.constant([[b"a\0"], [b"a"]])}, [tf.feature_column.indicator_column(column)]
        )
        session.run(tf.tables_initializer())
        assert session.run(dense).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("value", [5, True])
def test_precision_is_for_floating_numbers_only(value):
    refusal = pytest.raises(tf.errors.InvalidArgumentError, match="precision not supported for datatype")
    with tf.Graph().as_default(), tf.Session() as session, refusal:
        session.run(tf.as_string(value, precision=2))
