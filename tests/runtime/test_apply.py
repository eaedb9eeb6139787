"""apply_op: from a contract and Python values to an operation."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.build.apply import apply_op


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_python_values_get_the_dtype_of_the_tensor_beside_them():
    x = tf.placeholder(tf.float64, [2])
    assert apply_op("AddV2", x=1, y=x).op.inputs[0].dtype == tf.float64
    assert apply_op("Pack", values=[1, x[0]]).dtype == tf.float64


def test_type_and_length_attributes_follow_from_the_inputs():
    op = apply_op("Pack", values=[1, 2, 3]).op
    assert op.get_attr("N") == 3
    assert op.get_attr("T") == tf.int32
    assert op.get_attr("axis") == 0
    assert apply_op("IdentityN", input=[1, 2.0])[0].op.get_attr("T") == [tf.int32, tf.float32]


def test_the_result_has_the_form_of_the_contract():
    assert isinstance(apply_op("NoOp"), tf.Operation)
    assert isinstance(apply_op("Shape", input=[1]), tf.Tensor)
    assert len(apply_op("Split", split_dim=0, value=[1, 2], num_split=2)) == 2
    both = apply_op("TopKV2", input=[1.0, 2.0], k=1)
    assert both.values.dtype == tf.float32 and both.indices.dtype == tf.int32


def test_inputs_of_different_types_are_refused_by_name():
    with pytest.raises(TypeError, match="Input 'y' of 'AddV2' Op has type int32 that does not match type float32"):
        apply_op("AddV2", x=tf.constant(1.0), y=tf.constant(1))
    with pytest.raises(TypeError, match="Input 'dims' of 'Fill' Op"):
        apply_op("Fill", dims=tf.constant([1.0]), value=1, index_type=tf.int32)


def test_types_that_an_op_does_not_take_are_refused():
    with pytest.raises(TypeError, match="has DataType string not in list of allowed values: .*float32"):
        apply_op("MatMul", a=[["x"]], b=[["y"]])


def test_attribute_values_are_checked():
    x = tf.zeros([1, 4, 4, 1])
    arguments = {"input": x, "filter": tf.zeros([2, 2, 1, 1]), "strides": [1, 1, 1, 1]}
    with pytest.raises(ValueError, match="Attr 'padding' of 'Conv2D' Op passed string 'FULL' not in: .*\"SAME\""):
        apply_op("Conv2D", padding="FULL", **arguments)
    with pytest.raises(TypeError, match="Expected int"):
        apply_op("Conv2D", padding="SAME", **{**arguments, "strides": [1.5, 1, 1, 1]})
    with pytest.raises(TypeError, match="Expected list"):
        apply_op("Conv2D", padding="SAME", **{**arguments, "strides": 1})
    with pytest.raises(TypeError, match="No argument found for attr padding"):
        apply_op("Conv2D", **arguments)
    with pytest.raises(ValueError, match="shorter than minimum length 1"):
        apply_op("Pack", values=[])


def test_missing_and_unknown_arguments_are_named():
    with pytest.raises(TypeError, match="No argument for input y"):
        apply_op("AddV2", x=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        apply_op("AddV2", x=1, y=2, z=3)
    with pytest.raises(KeyError, match="Did you mean .*MatMul"):
        apply_op("Matmul", a=1, b=2)
    with pytest.raises(ValueError, match="None values not supported"):
        apply_op("Neg", x=None)


def test_a_reference_is_asked_for_where_the_contract_says_so():
    with pytest.raises(TypeError, match="be a mutable tensor"):
        apply_op("Assign", ref=tf.constant(1.0), value=2.0)
    variable = tf.Variable(1.0, name="v")
    with tf.device("/job:worker"):
        assigned = apply_op("Assign", ref=variable, value=2.0)
    assert assigned.op.get_attr("_class") == [b"loc:@v"]


def test_lists_with_tensors_in_them_are_packed():
    x = tf.placeholder(tf.float32, [])
    packed = tf.convert_to_tensor([[x, 1.0], [2.0, 3.0]])
    assert packed.op.type == "Pack" and packed.shape.as_list() == [2, 2]


def test_conversion_keeps_to_the_wanted_dtype():
    assert tf.convert_to_tensor(1, tf.float64).dtype == tf.float64
    assert tf.convert_to_tensor(1, preferred_dtype=tf.float32).dtype == tf.float32
    assert tf.convert_to_tensor("x", preferred_dtype=tf.float32).dtype == tf.string
    assert tf.convert_to_tensor(np.zeros(2, np.int64)).dtype == tf.int64
    assert tf.convert_to_tensor(tf.TensorShape([2, 3])).dtype == tf.int32
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float32"):
        tf.convert_to_tensor(tf.constant(1.0), tf.int32)
    with pytest.raises(ValueError, match="partially known TensorShape"):
        tf.convert_to_tensor(tf.TensorShape([None]))
    with pytest.raises(ValueError, match="None values not supported"):
        tf.convert_to_tensor(None)


def test_a_registered_function_converts_its_type():
    class Celsius:
        def __init__(self, degrees):
            self.degrees = degrees

    tf.register_tensor_conversion_function(
        Celsius, lambda value, dtype=None, name=None, as_ref=False: tf.constant(value.degrees, dtype, name=name or "t")
    )
    assert (tf.constant(1.0) + Celsius(20.0)).op.inputs[1].op.type == "Const"
