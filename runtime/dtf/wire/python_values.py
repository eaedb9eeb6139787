"""Python values as arrays with a dtype, as `tf.constant` and feeds take them: dtypes inferred, checked and cast."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtf.wire import dtypes, errors
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import tensor_pb2
from dtf.wire.tensor_shape import Dimension, TensorShape
from dtf.wire.variants import is_variant

__all__ = ["ResourceHandle", "as_bytes", "no_tensor", "object_array", "value_and_dtype", "values_to_array"]


@dataclass(frozen=True)
class ResourceHandle:
    """The value of a tensor of dtype resource: which object, on which device.

    dtypes_and_shapes: one (DType, shape tuple or None) per tensor that the resource holds; empty when unknown.
    hash_code: of the type, as TensorFlow's own handles carry it; passed on unchanged.
    """

    device: str
    container: str
    name: str
    type_name: str
    dtypes_and_shapes: tuple[tuple[DType, tuple[int | None, ...] | None], ...] = ()
    hash_code: int = 0



def values_to_array(values: Any, dtype: Any = None) -> tuple[np.ndarray, DType]:
    """The array and the element type of Python values; see make_tensor_proto for the rules and errors."""
    if values is None:
        raise ValueError("None values not supported.")
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    if isinstance(values, ResourceHandle) or hasattr(values, "maybe_type_name"):
        return object_array([values], ()), dtypes.resource
    if is_variant(values) or isinstance(values, tensor_pb2.VariantTensorDataProto):
        return object_array([values], ()), dtypes.variant
    if isinstance(values, TensorShape):
        values = values.as_list()
    elif not isinstance(values, (np.ndarray, np.generic)) and hasattr(values, "__array__"):
        values = np.asarray(values)
    # An array of one of numpy's own strings would have lost its trailing zeros; they are Python's strings, too.
    if isinstance(values, (np.ndarray, np.generic)) and not isinstance(values, (bytes, str)):
        return _from_numpy(np.asarray(values), wanted)
    return _from_python(values, wanted)



def _from_numpy(array: np.ndarray, wanted: DType | None) -> tuple[np.ndarray, DType]:
    if wanted is None:
        wanted = as_dtype(array.dtype)
        if wanted is dtypes.string and array.size and isinstance(array.flat[0], ResourceHandle):
            wanted = dtypes.resource
        elif wanted is dtypes.string and array.size and is_variant(array.flat[0]):
            wanted = dtypes.variant
    if wanted is dtypes.string:
        return _string_array(array), wanted
    if not wanted.size:
        return array, wanted
    return _cast(array, wanted), wanted



def _from_python(values: Any, wanted: DType | None) -> tuple[np.ndarray, DType]:
    try:
        array = np.asarray(values)
    except OverflowError:
        array = np.asarray(values, object)
    if array.dtype.kind in "OSU":
        array = np.asarray(values, object)  # numpy's own byte strings would lose trailing zeros
        leaves = array.ravel().tolist()
        if all(isinstance(each, (str, bytes)) for each in leaves):
            if wanted not in (None, dtypes.string):
                raise _expected(wanted, values)
            return _string_array(array), dtypes.string
        array = _index_array(array, leaves, values, wanted)
    if wanted is None:
        wanted = _default_dtype(array)
    elif array.size and array.dtype.kind not in _TAKES[wanted._kind]:
        raise _expected(wanted, values)
    if wanted is dtypes.string:
        return np.empty(array.shape, object), wanted
    return _cast(array, wanted), wanted



# Which kinds of numpy arrays (made from Python numbers) each kind of DType takes.
_TAKES = {"f": "fiub", "i": "iub", "u": "iub", "c": "cfiub", "b": "b", "q": "iu", "Q": "iu", "s": "", "h": ""}



def _default_dtype(array: np.ndarray) -> DType:
    if array.dtype.kind == "f":
        return dtypes.float32
    if array.dtype == np.int64:
        fits = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
        return dtypes.int32 if fits else dtypes.int64
    return as_dtype(array.dtype)



def _index_array(array: np.ndarray, leaves: list[Any], values: Any, wanted: DType | None) -> np.ndarray:
    """Integers of objects that stand for one (Dimensions); a TypeError for all other objects."""
    try:
        if any(isinstance(each, Dimension) for each in leaves):
            return np.array([operator.index(each) for each in leaves], np.int64).reshape(array.shape)
    except TypeError:
        pass
    if wanted is not None:
        raise _expected(wanted, values)
    raise TypeError(
        f"Failed to convert object of type {type(values)} to Tensor. Contents: {values!r}. "
        "Consider casting elements to a supported type."
    )



def _cast(array: np.ndarray, dtype: DType) -> np.ndarray:
    if array.dtype == dtype.as_numpy_dtype:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype.as_numpy_dtype)



def _string_array(array: np.ndarray) -> np.ndarray:
    leaves = array.ravel().tolist()
    return object_array([each if type(each) is bytes else as_bytes(each) for each in leaves], array.shape)



def as_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"Expected binary or unicode string, got {value!r}")



def _expected(dtype: DType, values: Any) -> TypeError:
    offender = next((each for each in _leaves(values) if not _fits(each, dtype)), values)
    return TypeError(f"Expected {dtype.name}, but got {offender} of type {type(offender).__name__!r}.")



def _fits(value: Any, dtype: DType) -> bool:
    if isinstance(value, (str, bytes)):
        return dtype is dtypes.string
    return np.asarray(value).dtype.kind in _TAKES[dtype._kind]



def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, (list, tuple)):
        for each in values:
            yield from _leaves(each)
    else:
        yield values



def value_and_dtype(value: Any, dtype: Any) -> tuple[np.ndarray, DType]:
    if dtype is None:
        if type(value) is np.ndarray and value.dtype.kind in "fiubc":
            return value, as_dtype(value.dtype)
        return values_to_array(value)
    dtype = as_dtype(dtype).base_dtype
    if not isinstance(value, (np.ndarray, np.generic)):
        return values_to_array(value, dtype)
    return _from_numpy(np.asarray(value), dtype)



def object_array(elements: list[Any], sizes: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(sizes)


def no_tensor(value: Any) -> errors.OpError:
    """The error for a value of a step that no tensor can hold, such as the queue behind a reference."""
    kind = type(value).__name__
    return errors.InvalidArgumentError.of(f"A value of the type {kind} cannot leave its task: it is not a tensor")
