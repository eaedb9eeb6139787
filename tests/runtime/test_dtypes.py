"""Element types: names, numbers, numpy's types, references."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dtf.wire import dtypes
from dtf.wire.dtypes import as_dtype
from dtf.wire.pb import types_pb2

ALL = [as_dtype(enum) for enum in range(1, 34)]


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_every_type_is_found_by_number_name_and_reference(dtype):
    reference = dtype._as_ref
    assert as_dtype(dtype.as_datatype_enum) is as_dtype(dtype.name) is as_dtype(dtype) is dtype
    assert as_dtype(reference.name) is reference and reference.base_dtype is dtype is dtype.base_dtype
    assert reference.as_datatype_enum == dtype.as_datatype_enum + 100
    assert reference != dtype and dtype.is_compatible_with(reference) and not reference.is_compatible_with(dtype)
    assert getattr(dtypes, dtype.name) is dtype
    assert pickle.loads(pickle.dumps(reference)) is reference
    assert types_pb2.DataType.Name(dtype.as_datatype_enum).startswith("DT_")


@pytest.mark.parametrize("dtype", [each for each in ALL if each.size and not each.is_quantized], ids=str)
def test_numpy_types_go_both_ways(dtype):
    try:
        numpy_dtype = np.dtype(dtype.as_numpy_dtype)
    except AttributeError:
        pytest.skip("this ml_dtypes does not have the type")
    assert as_dtype(numpy_dtype) is as_dtype(dtype.as_numpy_dtype) is as_dtype(np.zeros(1, numpy_dtype)) is dtype
    assert dtype == numpy_dtype and numpy_dtype.itemsize == dtype.size


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("float", "float32"),
        ("half", "float16"),
        ("double", "float64"),
        (float, "float32"),
        (bool, "bool"),
        (object, "string"),
        (np.dtype("S3"), "string"),
        (np.dtype("U3"), "string"),
        (np.dtype(">f4"), "float32"),
        (np.longlong, "int64"),
        (np.float32(3), "float32"),
        (101, "float32_ref"),
    ],
    ids=repr,
)
def test_other_words_for_types(value, name):
    assert as_dtype(value).name == name


@pytest.mark.parametrize(
    "value", [None, "foo", "str", int, str, bytes, complex, dict, (1, 2), 99, np.longdouble], ids=repr
)
def test_what_names_no_type_raises(value):
    with pytest.raises(TypeError, match="Cannot convert the argument"):
        as_dtype(value)


def test_kinds_and_ranges():
    assert dtypes.int8.is_integer and not dtypes.int8.is_unsigned and dtypes.uint8.is_unsigned
    assert dtypes.bfloat16.is_floating and dtypes.complex64.is_complex and dtypes.bool.is_bool
    assert dtypes.complex128.real_dtype is dtypes.float64
    assert not dtypes.resource.is_numpy_compatible and dtypes.qint8.is_quantized and not dtypes.qint8.is_integer
    assert (dtypes.uint8.min, dtypes.uint8.max, dtypes.uint8.limits) == (0, 255, (0, 255))
    assert dtypes.float32.max == np.finfo(np.float32).max and dtypes.float32.limits == (0, 1)
    assert dtypes.int32.limits == (0, 2**31 - 1)
    with pytest.raises(TypeError, match="minimum"):
        _ = dtypes.string.min
    with pytest.raises(ValueError, match="limits"):
        _ = dtypes.int4.limits


def test_comparison_and_text():
    assert dtypes.float32 == np.float32 == dtypes.float32 and dtypes.float32 == "float32"
    assert all(dtypes.float32 != other for other in (None, dict, "int32", dtypes.float64))
    assert {dtypes.float32: 1}[as_dtype("float")] == 1
    assert (str(dtypes.float32), repr(dtypes.float32_ref)) == ("<dtype: 'float32'>", "tf.float32_ref")
