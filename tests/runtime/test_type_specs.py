"""Descriptions of values: those of a program's own kinds, and how TensorFlow's take values apart."""

import pickle

import numpy as np
import pytest

import dtf as tf
from dtf.as_tensorflow.historic.composite_tensor import CompositeTensor
from dtf.build import tensor_spec


class Pair:
    def __init__(self, x, y, color="red"):
        self.x, self.y, self.color = tf.convert_to_tensor(x), tf.convert_to_tensor(y), color


class PairSpec(tf.TypeSpec):
    def __init__(self, x_shape, x_dtype, y_shape, y_dtype, color="red"):
        self.x_shape, self.x_dtype = tf.TensorShape(x_shape), tf.as_dtype(x_dtype)
        self.y_shape, self.y_dtype = tf.TensorShape(y_shape), tf.as_dtype(y_dtype)
        self.color = color

    value_type = property(lambda self: Pair)

    @property
    def _component_specs(self):
        return tf.TensorSpec(self.x_shape, self.x_dtype), tf.TensorSpec(self.y_shape, self.y_dtype)

    def _to_components(self, value):
        return value.x, value.y

    def _from_components(self, components):
        return Pair(*components, color=self.color)

    def _serialize(self):
        return self.x_shape, self.x_dtype, self.y_shape, self.y_dtype, self.color


class NestSpec(tf.TypeSpec):
    def __init__(self, spec):
        self.spec = spec

    value_type = dict
    _component_specs = property(lambda self: self.spec)

    def _to_components(self, value):
        return value

    def _from_components(self, components):
        return components

    def _serialize(self):
        return (self.spec,)


WIDE, NARROW = PairSpec([None, 8], tf.int32, None, tf.bool), PairSpec([5, 8], "int32", [3], tf.bool)


def test_specs_of_a_programs_own_kind_are_equal_by_what_makes_them_again():
    assert PairSpec([5, 8], tf.int32, [3], "bool") == NARROW and NARROW != WIDE
    assert PairSpec([5, 8], tf.int32, [3], tf.bool, "blue") != NARROW and tf.TensorSpec([5, 8], tf.int32) != NARROW
    assert len({NARROW, PairSpec([5, 8], tf.int32, [3], tf.bool), WIDE}) == 2
    assert NestSpec({"a": NARROW, "b": (1, np.arange(2))}) == NestSpec({"b": (1, np.arange(2)), "a": NARROW})
    assert hash(NestSpec([np.arange(2)])) == hash(NestSpec([np.arange(2)]))


def test_a_spec_fits_narrower_ones_and_values_of_a_registered_class():
    assert WIDE.is_compatible_with(NARROW) and NARROW.is_compatible_with(WIDE)
    assert NARROW.is_subtype_of(WIDE) and not WIDE.is_subtype_of(NARROW)
    for other in (PairSpec([5, 9], tf.int32, [3], tf.bool), PairSpec([5, 8], tf.int64, [3], tf.bool),
                  PairSpec([5, 8], tf.int32, [3], tf.bool, "blue"), tf.TensorSpec([5, 8], tf.int32)):  # fmt: skip
        assert not WIDE.is_compatible_with(other)
    nested, narrower = NestSpec([WIDE, {"a": tf.TensorSpec(None)}]), NestSpec([NARROW, {"a": tf.TensorSpec([2])}])
    assert nested.is_compatible_with(narrower) and narrower.is_subtype_of(nested)
    assert not NestSpec([WIDE]).is_compatible_with(NestSpec([NARROW, NARROW]))
    assert not NestSpec([WIDE]).is_compatible_with(NestSpec((WIDE,)))


def test_values_of_a_class_get_the_registered_description_and_subclasses_only_if_wished(monkeypatch):
    class Special(Pair):
        pass

    def describe(pair):
        return PairSpec(pair.x.shape, pair.x.dtype, pair.y.shape, pair.y.dtype, pair.color)

    monkeypatch.setattr(tensor_spec, "_converters", {})
    with tf.Graph().as_default():
        pair, special = Pair([[1, 2]], [True]), Special([[1, 2]], [True])
        with pytest.raises(TypeError, match="Could not build a TypeSpec"):
            tf.type_spec_from_value(pair)
        tensor_spec.register_type_spec_from_value_converter(Pair, describe)
        assert tf.type_spec_from_value(pair) == PairSpec([1, 2], tf.int32, [1], tf.bool)
        assert PairSpec(None, tf.int32, None, tf.bool).is_compatible_with(pair)
        with pytest.raises(TypeError, match="Could not build a TypeSpec"):
            tf.type_spec_from_value(special)
        tensor_spec.register_type_spec_from_value_converter(Pair, describe, allow_subclass=True)
        assert tf.type_spec_from_value(special) == tf.type_spec_from_value(pair)


def test_the_narrowest_description_of_two_is_made_of_the_narrowest_parts():
    wider = PairSpec([5, 8], tf.int32, [4], tf.bool)
    assert NARROW.most_specific_compatible_type(wider) == PairSpec([5, 8], tf.int32, [None], tf.bool)
    nested = NestSpec({"a": [NARROW]}).most_specific_compatible_type(NestSpec({"a": [wider]}))
    assert nested == NestSpec({"a": [PairSpec([5, 8], tf.int32, [None], tf.bool)]})
    for one, other in ((NARROW, PairSpec([5, 8], tf.int32, [3], tf.bool, "blue")), (NARROW, tf.TensorSpec([5]))):
        with pytest.raises(ValueError, match="No TypeSpec is compatible with both"):
            one.most_specific_compatible_type(other)


def test_values_go_through_flat_lists_of_tensors():
    with tf.Graph().as_default():
        pair = Pair([[1, 2]], [True])
        spec = NestSpec({"b": PairSpec([1, 2], tf.int32, [1], tf.bool), "a": tf.TensorSpec([], tf.float32)})
        value = {"a": tf.constant(2.0), "b": pair}
        flat = spec._to_tensor_list(value)
        assert flat == [value["a"], pair.x, pair.y]
        assert [each.dtype for each in spec._flat_tensor_specs] == [tf.float32, tf.int32, tf.bool]
        again = spec._from_tensor_list(flat)
        assert again["a"] is value["a"] and again["b"].x is pair.x and again["b"].color == "red"
        with pytest.raises(ValueError, match="Incompatible input"):
            spec._from_tensor_list(flat[::-1])
        with pytest.raises(ValueError, match="Incompatible input"):
            spec._from_tensor_list(flat[:2])


def test_a_value_with_a_description_of_its_own_gives_it():
    class Value(CompositeTensor):
        _type_spec = NARROW

    assert tf.type_spec_from_value(Value()) is NARROW


def test_what_a_kind_does_not_give_is_named():
    class Bare(tf.TypeSpec):
        pass

    for name in ("_serialize", "_to_legacy_output_types", "_to_legacy_output_shapes"):
        with pytest.raises(NotImplementedError, match=f"Bare.{name}"):
            getattr(Bare(), name)()


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        (tf.SparseTensorSpec([5, 3], tf.int32), [([None, 2], tf.int64), ([None], tf.int32), ([2], tf.int64)]),
        (tf.SparseTensorSpec(None), [([None, None], tf.int64), ([None], tf.float32), ([None], tf.int64)]),
        (tf.RaggedTensorSpec([3, None, None], tf.float32, 1), [([None, None], tf.float32), ([4], tf.int64)]),
        (tf.RaggedTensorSpec([5, None, 7], tf.int32, 1), [([None, 7], tf.int32), ([6], tf.int64)]),
        (tf.RaggedTensorSpec(None, tf.float32, 2), [(None, tf.float32), ([None], tf.int64), ([None], tf.int64)]),
        (tf.RaggedTensorSpec([3, 4], tf.float32, 0), [([3, 4], tf.float32)]),
    ],
    ids=repr,
)
def test_the_parts_of_a_value_are_described(spec, parts):
    found = spec._component_specs
    assert [(each.dtype, repr(each.shape)) for each in found] == [
        (dtype, repr(tf.TensorShape(shape))) for shape, dtype in parts
    ]
    assert [each.dtype for each in spec._flat_tensor_specs] == [tf.variant]
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_specs_are_batched_and_unbatched():
    ragged = tf.RaggedTensorSpec([3, None], tf.int32, 1)
    assert ragged._batch(4) == tf.RaggedTensorSpec([4, 3, None], tf.int32, 2) and ragged._batch(4)._unbatch() == ragged
    assert tf.TensorSpec([2], tf.int32, "x")._batch(None) == tf.TensorSpec([None, 2], tf.int32)
    assert tf.SparseTensorSpec([2, 3])._unbatch() == tf.SparseTensorSpec([3])
    assert ragged._to_legacy_output_classes() is ragged and ragged._to_legacy_output_types() == tf.int32


def test_sparse_and_ragged_values_are_taken_apart_and_made_again():
    with tf.Graph().as_default(), tf.Session() as session:
        sparse, ragged = tf.SparseTensor([[0]], [3], [5]), tf.ragged.constant([[[1], []], [[2, 3]]])
        for value in (sparse, ragged):
            spec = tf.type_spec_from_value(value)
            again = spec._from_components(spec._to_components(value))
            assert type(again) is type(value)
            assert str(session.run(again)) == str(session.run(value))
