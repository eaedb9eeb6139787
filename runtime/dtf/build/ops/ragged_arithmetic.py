"""Functions of each element of ragged tensors: `map_flat_values`, broadcasting, and the operators of RaggedTensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtf.build.composite import Composite
from dtf.build.conversion import convert_to_tensor, is_dense_tensor_like
from dtf.build.ops import array, check_ops, filling, gathering, joining, reductions
from dtf.build.ops import math as math_ops
from dtf.build.ragged import RaggedTensor, ragged_or_dense
from dtf.build.tensor import Tensor
from dtf.wire import dtypes


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op` of the flat values of ragged arguments, in the rows of these.

    Args:
      op: a function of tensors whose result has the first dimension of the ragged arguments' flat values.
      *args: arguments of `op`; ragged ones, in lists too, must have the same rows.
      **kwargs: named arguments of `op`.

    Returns:
      A RaggedTensor; the plain result of `op` if no argument is ragged.

    Raises:
      ValueError: the ragged arguments differ in their number of ragged dimensions, or the result has another first
        dimension.
    """
    found: list[RaggedTensor] = []
    for each in [*args, *kwargs.values()]:
        found += [one for one in (each if isinstance(each, (list, tuple)) else [each]) if isinstance(one, RaggedTensor)]
    if not found:
        return op(*args, **kwargs)
    wide = len({each.row_splits.dtype for each in found}) > 1
    if wide:
        found = [each.with_row_splits_dtype(dtypes.int64) for each in found]
    ranks = {each.ragged_rank for each in found}
    if len(ranks) != 1:
        raise ValueError("All inputs must have the same ragged_rank.")

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return value.flat_values
        if isinstance(value, (list, tuple)) and any(isinstance(each, RaggedTensor) for each in value):
            return [flat(each) for each in value]
        return value

    first = found[0]
    with_checks = _same_rows(found)
    arguments = [flat(each) for each in args]
    named = {key: flat(each) for key, each in kwargs.items()}
    if with_checks:
        from_graph = first.flat_values.graph
        with from_graph.control_dependencies(with_checks):
            result = op(*arguments, **named)
    else:
        result = op(*arguments, **named)
    return first.with_flat_values(result)


def _same_rows(values: Sequence[RaggedTensor]) -> list[Any]:
    """Checks that ragged tensors have the same rows; none for those made of the same splits."""
    first, checks = values[0], []
    for other in values[1:]:
        for mine, its in zip(first.nested_row_splits, other.nested_row_splits, strict=True):
            if mine is not its:
                checks.append(
                    check_ops.assert_equal(mine, its, message="Inputs must have identical ragged splits")
                )
    return checks


def elementwise(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """A function of one tensor, or of several whose shapes broadcast."""
    values = [*arguments, *named.values()]
    ragged = [each for each in values if isinstance(each, RaggedTensor)]
    if len(ragged) == 1 and not any(_may_broadcast(each) for each in values if each is not ragged[0]):
        return map_flat_values(function, *arguments, **named)
    ranks = [each.shape.ndims for each in ragged]
    if all(rank is not None for rank in ranks) and len(set(ranks)) == 1 and len(ragged) == len(
        [each for each in values if _may_broadcast(each) or isinstance(each, RaggedTensor)]
    ) and len({each.ragged_rank for each in ragged}) == 1:
        return map_flat_values(function, *arguments, **named)
    shape_of = max(ragged, key=lambda each: (each.shape.ndims or 0, each.ragged_rank))

    def fitting(value: Any) -> Any:
        if value is shape_of:
            return value
        if isinstance(value, RaggedTensor) or _may_broadcast(value):
            return _broadcast(value, shape_of)
        return value

    return map_flat_values(
        function, *[fitting(each) for each in arguments], **{key: fitting(each) for key, each in named.items()}
    )


def _may_broadcast(value: Any) -> bool:
    if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
        return bool(value.shape.ndims != 0)
    return isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0


def _broadcast(value: Any, wanted: RaggedTensor) -> Any:
    """`value` with an element for each flat value of `wanted`, in its rows."""
    value = ragged_or_dense(value) if isinstance(value, Composite) else convert_to_tensor(value, wanted.dtype)
    rank, size = wanted.shape.ndims, value.shape.ndims
    if rank is None or size is None or size > rank:
        raise ValueError(f"Unable to broadcast: the shapes {value.shape} and {wanted.shape} are not compatible")
    depth = wanted.ragged_rank + 1
    outer = depth - (rank - size)  # how many dimensions of `value` lie among the rows of `wanted`
    if outer <= 0:
        return value
    coordinates = _coordinates(wanted)[depth - outer :]
    taken: Any = value
    index, level = coordinates[0], 0
    checks: list[Any] = []
    while isinstance(taken, RaggedTensor):
        rows = taken.nrows(dtypes.int64)
        index = math_ops.minimum(index, rows - 1)
        starts = math_ops.cast(gathering.gather(taken.row_starts(), index), dtypes.int64)
        lengths = math_ops.cast(gathering.gather(taken.row_lengths(), index), dtypes.int64)
        level += 1
        if level >= outer:
            raise ValueError(f"Unable to broadcast: the shapes {value.shape} and {wanted.shape} are not compatible")
        wide = coordinates[level]
        fits = math_ops.logical_or(math_ops.equal(lengths, 1), math_ops.less(wide, lengths))
        checks.append(check_ops.assert_equal(reductions.reduce_all(fits), True, message="Unable to broadcast"))
        index = starts + math_ops.minimum(wide, lengths - 1)
        taken = taken.values
    sizes = array.shape(taken, out_type=dtypes.int64)
    columns = [index]
    columns += coordinates[level + 1 : outer]
    lengths_of = wanted.nested_row_lengths()
    bounded = []
    for place, column in enumerate(columns):
        if place == 0 and level:
            bounded.append(column)
            continue
        dimension = depth - outer + level + place
        width = sizes[place]
        if dimension > 0:
            rows_width = math_ops.cast(lengths_of[dimension - 1], dtypes.int64)
            exact = math_ops.logical_or(math_ops.equal(width, 1), reductions.reduce_all(
                math_ops.equal(rows_width, width)))  # fmt: skip
        else:
            exact = math_ops.logical_or(math_ops.equal(width, 1), math_ops.equal(wanted.nrows(dtypes.int64), width))
        checks.append(check_ops.assert_equal(exact, True, message="Unable to broadcast: dimension size mismatch"))
        bounded.append(math_ops.minimum(column, width - 1))
    with taken.graph.control_dependencies(checks):
        flat = gathering.gather_nd(taken, joining.stack(bounded, axis=1))
    flat.set_shape(wanted.flat_values.shape[:1].concatenate(flat.shape[1:]))
    return wanted.with_flat_values(flat)


def _coordinates(value: RaggedTensor) -> list[Tensor]:
    """For each flat value, its places in the outermost dimension and in the ragged ones, as int64 vectors."""
    below: Tensor | None = None
    places: list[Tensor] = []
    levels: list[RaggedTensor] = []
    level: Any = value
    while isinstance(level, RaggedTensor):
        levels.append(level)
        level = level.values
    for each in reversed(levels):
        ids = math_ops.cast(each.value_rowids(), dtypes.int64)
        starts = math_ops.cast(gathering.gather(each.row_starts(), ids), dtypes.int64)
        column = math_ops.range(array.shape(ids, out_type=dtypes.int64)[0]) - starts
        places.insert(0, column if below is None else gathering.gather(column, below))
        below = ids if below is None else gathering.gather(ids, below)
    assert below is not None
    return [below, *places]


def _of_lists(function: Callable[..., Any], inputs: Any, *arguments: Any, **named: Any) -> Any:
    """A function of a list of tensors of one shape."""
    return map_flat_values(function, list(inputs), *arguments, **named)


def _embedding_lookup(
    original: Any, params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None,
    validate_indices: bool = True, max_norm: Any = None,
) -> Any:  # fmt: skip
    if not isinstance(params, (list, tuple)) or not any(map(is_dense_tensor_like, params)):
        params = params if is_dense_tensor_like(params) else convert_to_tensor(params)

    def lookup(flat: Any) -> Any:
        return original(params, flat, partition_strategy, name, validate_indices, max_norm)

    return map_flat_values(lookup, ids)


def _one_hot(original: Any, indices: Any, *arguments: Any, **named: Any) -> Any:
    return map_flat_values(lambda flat: original(flat, *arguments, **named), indices)


def _like(fill: Callable[..., Any]) -> Callable[..., Any]:
    def handler(original: Any, tensor: Any = None, *arguments: Any, **named: Any) -> Any:
        named.pop("name", None)
        tensor = named.pop("input", tensor)
        dtype = arguments[0] if arguments else named.get("dtype")
        return tensor.with_flat_values(fill(tensor.flat_values, dtype))

    return handler


_ELEMENTWISE = """
abs acos acosh angle asin asinh atan atanh cast ceil conj cos cosh digamma erf erfc exp expm1 floor imag is_finite
is_inf is_nan lgamma log log1p log_sigmoid logical_not negative real reciprocal rint round rsqrt saturate_cast sigmoid
sign sin sinh sqrt square tan tanh invert identity stop_gradient check_numerics clip_by_value relu relu6 leaky_relu
elu selu softplus softsign dropout string_length string_lower string_upper string_strip string_to_number
string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong regex_full_match regex_replace substr
as_string decode_base64 encode_base64 unicode_transcode decode_compressed
add atan2 bitwise_and bitwise_or bitwise_xor complex div div_no_nan divide equal floordiv floormod floor_div greater
greater_equal left_shift less less_equal logical_and logical_or logical_xor maximum minimum mod multiply not_equal pow
realdiv right_shift squared_difference subtract truediv truncatediv truncatemod xdivy xlogy
""".split()


#: The handlers of `build.dispatch` that this module has.
HANDLERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_ELEMENTWISE, elementwise),
    **dict.fromkeys(("add_n", "string_join"), _of_lists),
    "embedding_lookup": _embedding_lookup,
    "one_hot": _one_hot,
    "zeros_like": _like(filling.zeros_like),
    "ones_like": _like(filling.ones_like),
}


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: function(x, y)


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda y, x: function(x, y)


def _install_operators() -> None:
    logical = {"and": math_ops.logical_and, "or": math_ops.logical_or, "xor": math_ops.logical_xor}
    numeric = {
        "add": math_ops.add, "sub": math_ops.subtract, "mul": math_ops.multiply, "truediv": math_ops.truediv,
        "floordiv": math_ops.floordiv, "mod": math_ops.floormod, "pow": math_ops.pow,
    }  # fmt: skip
    for name, function in {**numeric, **logical}.items():
        setattr(RaggedTensor, f"__{name}__", _operator(function))
        setattr(RaggedTensor, f"__r{name}__", _reflected(function))
    compared = {
        "lt": math_ops.less, "le": math_ops.less_equal, "gt": math_ops.greater, "ge": math_ops.greater_equal,
    }  # fmt: skip
    for name, function in compared.items():
        setattr(RaggedTensor, f"__{name}__", _operator(function))
    for name, one in {"abs": math_ops.abs, "neg": math_ops.negative, "invert": math_ops.logical_not}.items():
        setattr(RaggedTensor, f"__{name}__", (lambda of: lambda x: of(x))(one))


_install_operators()
