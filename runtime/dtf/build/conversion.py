"""From Python values to tensors: `convert_to_tensor` and the registry of conversion functions.

Owns the order in which the functions are called and the check of their results. Each convertible type registers in
its own module: numbers, arrays and shapes in `constant`, lists in `packing`, IndexedSlices in `sparse`.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.composite import Composite
from dtf.build.tensor import Operation, Tensor
from dtf.wire.dtypes import DType, as_dtype

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

Converter = Callable[..., Any]

_registry: list[tuple[int, int, type | tuple[type, ...], Converter]] = []
_by_type: dict[type, list[Converter]] = {}
_FOREIGN = ("tensorflow", "keras", "tf_keras")


def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
    as_ref: bool = False,
) -> Tensor:
    """The tensor for a value in the default graph.

    Args:
      value: a Tensor, variable, number, string, (nested) sequence, numpy array, or an object of a registered type.
      dtype: the element type it must have.
      name: the name of the constant, if one is made.
      preferred_dtype: the element type to use if `dtype` is None and `value` can be of it.
      dtype_hint: the newer name of `preferred_dtype`.
      as_ref: give the reference to a variable's buffer rather than its value.

    Returns:
      A Tensor; `value` itself if it is one.

    Raises:
      ValueError: `value` is None, a tensor of another dtype than `dtype`, or ragged.
      TypeError: no function converts `value`, or not to `dtype`.
      RuntimeError: a registered function returned an object that is not a tensor.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/convert_to_tensor
    """
    # Programs pass `variable.dtype`, a reference type; values are of its base type.
    wanted = None if dtype is None else as_dtype(dtype) if as_ref else as_dtype(dtype).base_dtype
    if isinstance(value, Tensor):
        return _checked(value, wanted)
    if isinstance(value, Operation):
        raise TypeError(f"Can't convert Operation '{value.name}' to Tensor (target dtype={wanted!r}, name={name!r}, "
                        f"as_ref={as_ref!r})")  # fmt: skip
    hint = preferred_dtype if preferred_dtype is not None else dtype_hint
    for convert in _converters(type(value)):
        if wanted is None and hint is not None and _fits(value, as_dtype(hint)):
            try:
                result = convert(value, dtype=as_dtype(hint), name=name, as_ref=as_ref)
            except (TypeError, ValueError, OverflowError):
                result = NotImplemented
            if isinstance(result, Tensor) and result.dtype.base_dtype == as_dtype(hint).base_dtype:
                return result
        result = convert(value, dtype=wanted, name=name, as_ref=as_ref)
        if result is NotImplemented:
            continue
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"Conversion function {convert!r} for type {type(value)} returned non-Tensor: {result!r}"
            )
        if wanted is not None and not wanted.is_compatible_with(result.dtype) and not is_dense_tensor_like(value):
            raise RuntimeError(
                f"Conversion function {convert!r} for type {type(value)} returned incompatible dtype: requested = "
                f"{wanted.name}, actual = {result.dtype.name}"
            )
        return _checked(result, wanted)
    raise TypeError(f"Cannot convert {value!r} with type {type(value).__name__} to Tensor: no conversion function.")


def composite_of(value: Any) -> Composite | None:
    """The value made of tensors that a registered function converts `value` to; None where it becomes a tensor."""
    for convert in () if isinstance(value, Tensor) else _converters(type(value)):
        if (getattr(convert, "__module__", None) or "").partition(".")[0] == "dtf":
            return None  # it would add a constant to the graph
        result = convert(value, dtype=None, name=None, as_ref=False)
        if result is not NotImplemented:
            return result if isinstance(result, Composite) else None
    return None


def convert_n_to_tensor(values: Sequence[Any], dtype: DTypeLike | None = None, name: str | None = None) -> list[Tensor]:
    """`convert_to_tensor` of each value; constants are named "<name>_<index>"."""
    return [
        convert_to_tensor(value, dtype, name=None if name is None else f"{name}_{index}")
        for index, value in enumerate(values)
    ]


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Converter, priority: int = 100
) -> None:
    """Makes `convert_to_tensor` use a function for values of a type.

    Args:
      base_type: the type, or a tuple of types.
      conversion_func: called as `(value, dtype=None, name=None, as_ref=False)`; returns a Tensor or NotImplemented.
      priority: smaller ones are asked first; of equal ones, the one registered first.

    Raises:
      TypeError: `base_type` is not a type, or `conversion_func` cannot be called.
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not types or not all(isinstance(each, type) for each in types):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    bisect.insort(_registry, (priority, len(_registry), base_type, conversion_func), key=lambda entry: entry[:2])
    _by_type.clear()


def is_dense_tensor_like(value: Any) -> bool:
    """Whether `value` is a Tensor or a variable."""
    return isinstance(value, Tensor) or hasattr(value, "_as_graph_element") and isinstance(
        getattr(value, "dtype", None), DType
    )


def is_foreign(kind: type) -> bool:
    """Whether a class is TensorFlow's own; numpy would make constants of its eager tensors."""
    return kind.__module__.partition(".")[0] in _FOREIGN


def _converters(kind: type) -> list[Converter]:
    if kind not in _by_type:
        if is_foreign(kind):
            package = kind.__module__.partition(".")[0]
            raise TypeError(
                f"A {package} {kind.__name__} cannot be used with dtf: a program cannot mix tensors of TensorFlow "
                "and of dtf; make all of them with dtf, or pass the value as a numpy array."
            )
        _by_type[kind] = [convert for _, _, base, convert in _registry if issubclass(kind, base)]
    return _by_type[kind]


def _checked(tensor: Tensor, wanted: DType | None) -> Tensor:
    if wanted is not None and not wanted.is_compatible_with(tensor.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {tensor.dtype.name}: {tensor!r}"
        )
    return tensor


def _fits(value: Any, dtype: DType) -> bool:
    """Whether the Python integers in `value`, if any, fit an integer type without wrapping round."""
    if not dtype.is_integer:
        return True
    if isinstance(value, int):
        return dtype.min <= value <= dtype.max
    return not isinstance(value, (list, tuple)) or all(_fits(each, dtype) for each in value)
