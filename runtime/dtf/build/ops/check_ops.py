"""Checks as ops: `tf.assert_equal` and similar functions, and checks of static properties.

Owns the comparisons and their messages. A statically known violation raises at once (ValueError, or
InvalidArgumentError for values). Otherwise the check is an Assert op that fails with InvalidArgumentError when it
runs: put it into `tf.control_dependencies`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/debugging
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies, get_default_graph, name_scope
from dtf.build.ops.array import check_numerics, rank, shape
from dtf.build.ops.ordering import group
from dtf.build.ops.reductions import reduce_all
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes, errors

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "add_check_numerics_ops",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_type",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
]


# -- values


def add_check_numerics_ops() -> Operation:
    """An op that fails with InvalidArgumentError if a floating-point tensor of the default graph has a NaN or an
    infinity. The message names the first such tensor in insertion order.

    Raises:
      ValueError: the graph has conditionals or loops, whose tensors are not always there.
    """
    checks: list[Tensor] = []
    for op in get_default_graph().get_operations():
        for output in op.outputs:
            if output.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
                continue
            if op._get_control_flow_context() is not None:
                raise ValueError(
                    f"add_check_numerics_ops() cannot check {op.name}, inside of a tf.cond() or tf.while_loop()."
                )
            with control_dependencies(checks[-1:]), colocate_with(output.op):
                checks.append(check_numerics(output, output.name))
    return group(*checks)


def assert_equal(
    x: TensorLike,
    y: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x == y for all elements."""
    return _compare("Equal", np.equal, "x == y", "assert_equal", x, y, data, summarize, message, name)


def assert_none_equal(
    x: TensorLike,
    y: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x != y for all elements."""
    return _compare("NotEqual", np.not_equal, "x != y", "assert_none_equal", x, y, data, summarize, message, name)


def assert_less(
    x: TensorLike,
    y: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x < y for all elements."""
    return _compare("Less", np.less, "x < y", "assert_less", x, y, data, summarize, message, name)


def assert_less_equal(
    x: TensorLike,
    y: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x <= y for all elements."""
    return _compare("LessEqual", np.less_equal, "x <= y", "assert_less_equal", x, y, data, summarize, message, name)


def assert_greater(
    x: TensorLike,
    y: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x > y for all elements."""
    return _compare("Greater", np.greater, "x > y", "assert_greater", x, y, data, summarize, message, name)


def assert_greater_equal(
    x: TensorLike,
    y: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x >= y for all elements."""
    return _compare(
        "GreaterEqual", np.greater_equal, "x >= y", "assert_greater_equal", x, y, data, summarize, message, name
    )


def assert_negative(
    x: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x < 0 for all elements."""
    return _compare("Less", np.less, "x < 0", "assert_negative", x, None, data, summarize, message, name)


def assert_positive(
    x: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x > 0 for all elements."""
    return _compare("Greater", np.greater, "x > 0", "assert_positive", x, None, data, summarize, message, name)


def assert_non_negative(
    x: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x >= 0 for all elements."""
    return _compare(
        "GreaterEqual", np.greater_equal, "x >= 0", "assert_non_negative", x, None, data, summarize, message, name
    )


def assert_non_positive(
    x: TensorLike,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x <= 0 for all elements."""
    return _compare(
        "LessEqual", np.less_equal, "x <= 0", "assert_non_positive", x, None, data, summarize, message, name
    )


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: Any = None,
    atol: Any = None,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """|x - y| <= atol + rtol * |y| for all elements; both tolerances are ten times the dtype's epsilon by default."""
    with name_scope(name, "assert_near", _tensors(x, y)):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        epsilon = 10 * np.finfo(x.dtype.real_dtype.base_dtype.as_numpy_dtype).eps
        rtol = convert_to_tensor(epsilon if rtol is None else rtol, x.dtype.base_dtype)
        atol = convert_to_tensor(epsilon if atol is None else atol, x.dtype.base_dtype)
        room = apply_op("AddV2", x=atol, y=apply_op("Mul", x=rtol, y=apply_op("Abs", x=y)))
        distance = apply_op("Abs", x=apply_op("Sub", x=x, y=y))
        words = [*_said(message), "x and y not equal to tolerance", f"x ({x.name}) = ", x, f"y ({y.name}) = ", y]
        holds = reduce_all(apply_op("LessEqual", x=distance, y=room))
        return _assert(holds, data if data is not None else words, summarize)


def _compare(
    op_type: str,
    static: Callable[..., Any],
    words: str,
    default_name: str,
    x: Any,
    y: Any,
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    """An Assert that `op_type` holds between x and y (zero: None) everywhere, or an error now when it is known not
    to.
    """
    with name_scope(name, default_name, _tensors(x, y)):
        x = convert_to_tensor(x, name="x")
        texts: list[Any] = [f"Condition {words} did not hold element-wise:", f"x ({x.name}) = ", x]
        if y is None:
            y = constant(0, x.dtype.base_dtype)
        else:
            y = convert_to_tensor(y, None if isinstance(y, Tensor) else x.dtype.base_dtype, name="y")
            texts += [f"y ({y.name}) = ", y]
        compared = apply_op(op_type, x=x, y=y)  # refuses shapes that do not broadcast
        known_x, known_y = constant_value(x), constant_value(y)
        if known_x is not None and known_y is not None and not np.all(static(known_x, known_y)):
            where = f" x ({x.name}) = {known_x.tolist()}, y ({y.name}) = {known_y.tolist()}"
            raise errors.InvalidArgumentError.of("\n".join([*_said(message), f"{texts[0]}{where}"]))
        holds = reduce_all(compared)
        return _assert(holds, data if data is not None else [*_said(message), *texts], summarize)


def _said(message: str | None) -> list[str]:
    return [message] if message else []


def _tensors(*values: Any) -> list[Tensor]:
    return [value for value in values if isinstance(value, Tensor)]


def _assert(condition: Tensor, data: Sequence[Any], summarize: int | None) -> Operation:
    from dtf.build.ops.control_flow import Assert

    return Assert(condition, list(data), summarize=summarize)


# -- static properties


def assert_rank(
    x: TensorLike,
    rank: Any,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x has that many dimensions. ValueError when it is known not to."""
    return _check_rank(
        x, [rank], "Equal", lambda have, want: have == want, "must have rank", data, summarize, message, name
    )


def assert_rank_at_least(
    x: TensorLike,
    rank: Any,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x has that many dimensions or more. ValueError when it is known not to."""
    return _check_rank(
        x,
        [rank],
        "GreaterEqual",
        lambda have, want: have >= want,
        "must have rank at least",
        data,
        summarize,
        message,
        name,
    )


def assert_rank_in(
    x: TensorLike,
    ranks: Sequence[Any],
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """x has one of these numbers of dimensions. ValueError when it is known not to."""
    return _check_rank(
        x, list(ranks), "Equal", lambda have, want: have == want, "must have rank in", data, summarize, message, name
    )


def _check_rank(
    x: Any,
    ranks: list[Any],
    op_type: str,
    static: Callable[[int, int], bool],
    words: str,
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    with name_scope(name, "assert_rank", _tensors(x)):
        x = convert_to_tensor(x, name="x")
        tensors = [convert_to_tensor(each) for each in ranks]
        for each in tensors:
            if not each.dtype.base_dtype.is_integer:
                raise TypeError(f"{message or ''}Rank {each.name} must be of type int32, not {each.dtype.name}.")
        if any(each.shape.ndims not in (None, 0) for each in tensors):
            raise ValueError("Rank must be a scalar.")
        known = [constant_value(each) for each in tensors]
        wanted = " or ".join("?" if each is None else str(int(each)) for each in known)
        if x.shape.ndims is not None and all(each is not None for each in known):
            if not any(static(x.shape.ndims, int(each)) for each in known if each is not None):
                raise ValueError(
                    f"{message or ''} Tensor {x.name} {words} {wanted}.  Received rank {x.shape.ndims}, shape {x.shape}"
                )
            return apply_op("NoOp")
        holds = None
        for each in tensors:
            if each.shape.ndims is None:
                is_scalar = apply_op("Equal", x=rank(each), y=0)
                with control_dependencies([_assert(is_scalar, ["Rank must be a scalar, got:", each], summarize)]):
                    each = apply_op("Identity", input=each)
            one = reduce_all(apply_op(op_type, x=rank(x), y=each))
            holds = one if holds is None else apply_op("LogicalOr", x=holds, y=one)
        assert holds is not None
        texts = [*_said(message), f"Tensor {x.name} {words} {wanted}", "Received shape: ", shape(x)]
        return _assert(holds, data if data is not None else texts, summarize)


def assert_scalar(tensor: TensorLike, name: str | None = None, message: str | None = None) -> Tensor:
    """The tensor itself. ValueError when it is known not to be a scalar."""
    tensor = convert_to_tensor(tensor, name=name)
    if tensor.shape.ndims not in (None, 0):
        raise ValueError(f"{message or ''}Expected scalar shape for {tensor.name}, saw shape: {tensor.shape}.")
    return tensor


def assert_type(tensor: TensorLike, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """TypeError unless the tensor is of that dtype."""
    tensor = convert_to_tensor(tensor)
    if tensor.dtype.base_dtype != dtypes.as_dtype(tf_type):
        raise TypeError(
            f"{message or ''}{tensor.name} must be of type {dtypes.as_dtype(tf_type)!r}; got {tensor.dtype!r}"
        )
    return apply_op("NoOp", name)


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> Operation:
    """TypeError unless `x` is of an integer dtype."""
    x = convert_to_tensor(x)
    if not x.dtype.base_dtype.is_integer:
        raise TypeError(f'{message or ""}Expected "x" to be integer type.  Found: {x.dtype!r}')
    return apply_op("NoOp", name)


def assert_proper_iterable(values: Any) -> None:
    """TypeError for a tensor, an array or a string, which are iterable but not lists of values."""
    if isinstance(values, (Tensor, np.ndarray, str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: DTypeLike | None = None) -> Any:
    """The one floating dtype of the tensors, float32 without any. ValueError if the dtype does not exist."""
    found = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    for tensor in tensors or ():
        own = tensor.dtype.base_dtype
        if found is not None and own != found:
            raise ValueError(
                f"Tensor {tensor.name} must be of the same type as the others: {own.name} against {found.name}."
            )
        found = own
    found = found or dtypes.float32
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found!r}.")
    return found


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a Tensor of numbers."""
    if not isinstance(tensor, Tensor):
        return False
    dtype = tensor.dtype.base_dtype
    return dtype.is_floating or dtype.is_integer or dtype.is_complex


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether no element is smaller than the one before it (row-major); a bool scalar."""
    return _monotonic(x, "LessEqual", name, "is_non_decreasing")


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is larger than the one before it (row-major); a bool scalar."""
    return _monotonic(x, "Less", name, "is_strictly_increasing")


def _monotonic(x: Any, op_type: str, name: str | None, default_name: str) -> Tensor:
    with name_scope(name, default_name, _tensors(x)):
        flat = apply_op("Reshape", tensor=convert_to_tensor(x, name="x"), shape=constant([-1]))
        return reduce_all(apply_op(op_type, x=flat[:-1], y=flat[1:]))
