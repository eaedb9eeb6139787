"""Ops of tensor lists and optionals. Each row builds a small program, since a variant cannot be fed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.build.apply import apply_op
from dtf.run.executor.executor import run_graph_def
from dtf.wire import errors
from tests.runtime.op_cases import Case

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def program(build: Callable[..., Any], expect: Any, gradient: Any = None) -> None:
    """Runs what `build` makes of X, and the gradient of its first result's squares with respect to X."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, X.shape, name="x")
        results = build(x)
        results = results if isinstance(results, list) else [results]
        fetches = list(results)
        if gradient is not None:
            fetches += tf.gradients(results[0] * results[0], x)
        values = run_graph_def(graph.as_graph_def(), [each.name for each in fetches], {x.name: X})
    wanted = expect if isinstance(expect, list) else [expect]
    wanted = wanted if gradient is None else [*wanted, gradient]
    for tensor, value, expected in zip(fetches, values, wanted, strict=True):
        assert tensor.shape.is_compatible_with(np.shape(value))
        np.testing.assert_array_equal(value, expected)


def list_of(x: Any) -> Any:
    return apply_op("TensorListFromTensor", None, tensor=x, element_shape=[3])


def stack(items: Any, shape: Any = (3,)) -> Any:
    return apply_op("TensorListStack", None, input_handle=items, element_shape=list(shape), element_dtype=tf.float64)


def item(items: Any, index: int) -> Any:
    return apply_op(
        "TensorListGetItem", None, input_handle=items, index=index, element_shape=[3], element_dtype=tf.float64
    )


def length(items: Any) -> Any:
    return apply_op("TensorListLength", None, input_handle=items)


def reserved(count: int = 3) -> Any:
    return apply_op("TensorListReserve", None, element_shape=[-1], num_elements=count, element_dtype=tf.float64)


def from_and_to_a_tensor(x: Any) -> Any:
    return stack(list_of(x))


def an_item(x: Any) -> Any:
    return item(list_of(x), 1)


def an_item_is_set(x: Any) -> Any:
    items = apply_op("TensorListSetItem", None, input_handle=reserved(), index=1, item=x[0] * 2.0)
    return [stack(items), length(items)]


def items_are_pushed(x: Any) -> Any:
    items = apply_op(
        "EmptyTensorList", None, element_shape=-1, max_num_elements=2, element_dtype=tf.float64
    )
    for row in (x[1], x[0]):
        items = apply_op("TensorListPushBack", None, input_handle=items, tensor=row)
    return [stack(items, [-1]), apply_op("TensorListElementShape", None, input_handle=items, shape_type=tf.int64)]


def an_item_is_popped(x: Any) -> Any:
    rest, last = apply_op(
        "TensorListPopBack", None, input_handle=list_of(x), element_shape=[-1], element_dtype=tf.float64
    )
    return [last, stack(rest)]


def a_list_is_resized(x: Any) -> Any:
    return stack(apply_op("TensorListResize", None, input_handle=list_of(x), size=3))


def items_are_gathered(x: Any) -> Any:
    return apply_op(
        "TensorListGather",
        None,
        input_handle=list_of(x),
        indices=[1, 0],
        element_shape=[3],
        element_dtype=tf.float64,
    )


def items_are_scattered(op: str, x: Any) -> Any:
    more = {"num_elements": 4} if op == "TensorListScatterV2" else {}
    return stack(apply_op(op, None, tensor=x, indices=[2, 0], element_shape=[3], **more))


def items_are_scattered_into_a_list(x: Any) -> Any:
    items = apply_op("TensorListScatterIntoExistingList", None, input_handle=list_of(x), tensor=x[:1], indices=[1])
    return stack(items)


def pieces_are_concatenated(op: str, x: Any) -> Any:
    pieces = split(x)
    if op == "TensorListConcat":
        return list(apply_op(op, None, input_handle=pieces, element_dtype=tf.float64))
    shape = {"element_shape": [-1, 3], "leading_dims": tf.constant([], tf.int64)}
    return list(apply_op(op, None, input_handle=pieces, element_dtype=tf.float64, **shape))


def split(x: Any) -> Any:
    return apply_op(
        "TensorListSplit",
        None,
        tensor=tf.concat([x, x[:1]], 0),
        element_shape=[-1, 3],
        lengths=tf.constant([1, 2], tf.int64),
    )


def lists_are_joined(x: Any) -> Any:
    first = list_of(x)
    return stack(apply_op("TensorListConcatLists", None, input_a=first, input_b=first, element_dtype=tf.float64))


def each_list_of_a_batch_gets_an_item() -> None:
    with tf.Graph().as_default() as graph:
        lists = tf.stack([list_of(tf.constant(X)), reserved(1)])
        pushed = apply_op("TensorListPushBackBatch", None, input_handles=lists, tensor=tf.constant(X))
        values = run_graph_def(graph.as_graph_def(), [pushed.name])[0]
    assert [len(each.values) for each in values] == [3, 2]
    np.testing.assert_array_equal(values[1].values[1], X[1])


def a_place_that_does_not_exist_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Trying to access element 7 in a list with 2 elements"):
        program(lambda x: item(list_of(x), 7), None)
    with pytest.raises(errors.InvalidArgumentError, match="element_shape is not fully defined"):
        program(
            lambda x: apply_op(
                "TensorListGetItem",
                None,
                input_handle=reserved(),
                index=0,
                element_shape=-1,
                element_dtype=tf.float64,
            ),
            None,
        )


def lists_add_up_place_by_place(x: Any) -> Any:
    unset = apply_op("TensorListResize", None, input_handle=list_of(x), size=2)
    return stack(apply_op("AddN", None, inputs=[list_of(x), unset, apply_op("ZerosLike", None, x=unset)]))


def through_an_optional(x: Any) -> Any:
    optional = apply_op("OptionalFromValue", None, components=[x])
    [value] = apply_op("OptionalGetValue", None, optional=optional, output_types=[tf.float64], output_shapes=[[2, 3]])
    nothing = apply_op("OptionalNone", None)
    return [value * 3.0, *(apply_op("OptionalHasValue", None, optional=each) for each in (optional, nothing))]


def row(op: str, build: Callable[..., Any], expect: Any, gradient: Any = None, name: str = "") -> Case:
    return Case(op, run=partial(program, build, expect, gradient), name=name)


ZERO = np.zeros(3)
TWICE = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])

CASES = [
    row("TensorListFromTensor", from_and_to_a_tensor, X, 2 * X),
    row("TensorListStack", from_and_to_a_tensor, X, 2 * X),
    row("TensorListGetItem", an_item, X[1], np.stack([ZERO, 2 * X[1]])),
    Case("TensorListGetItem", run=a_place_that_does_not_exist_is_refused, name="outside"),
    row(
        "TensorListSetItem",
        an_item_is_set,
        [np.stack([ZERO, 2 * X[0], ZERO]), 3],
        np.stack([8 * X[0], ZERO]),
    ),
    row("TensorListReserve", lambda x: length(reserved(5)), 5),
    row("TensorListLength", lambda x: length(list_of(x)), 2),
    row("TensorListPushBack", items_are_pushed, [X[::-1], -1], 2 * X),
    row("EmptyTensorList", items_are_pushed, [X[::-1], -1]),
    row("TensorListElementShape", items_are_pushed, [X[::-1], -1]),
    row("TensorListPopBack", an_item_is_popped, [X[1], X[:1]], np.stack([ZERO, 2 * X[1]])),
    row("TensorListResize", a_list_is_resized, np.stack([*X, ZERO]), 2 * X),
    row("TensorListGather", items_are_gathered, X[::-1], 2 * X),
    row(
        "TensorListScatter",
        partial(items_are_scattered, "TensorListScatter"),
        np.stack([X[1], ZERO, X[0]]),
        2 * X,
    ),
    row(
        "TensorListScatterV2",
        partial(items_are_scattered, "TensorListScatterV2"),
        np.stack([X[1], ZERO, X[0], ZERO]),
        2 * X,
    ),
    row(
        "TensorListScatterIntoExistingList",
        items_are_scattered_into_a_list,
        TWICE,
        np.stack([4 * X[0], ZERO]),
    ),
    *[
        row(
            op,
            partial(pieces_are_concatenated, op),
            [np.stack([*X, X[0]]), [1, 2]],
            np.stack([4 * X[0], 2 * X[1]]),
        )
        for op in ("TensorListConcat", "TensorListConcatV2")
    ],
    row("TensorListSplit", lambda x: length(split(x)), 2),
    row("TensorListConcatLists", lists_are_joined, np.concatenate([X, X])),
    Case("TensorListPushBackBatch", run=each_list_of_a_batch_gets_an_item),
    row("AddN", lists_add_up_place_by_place, 2 * X, name="of lists"),
    row("ZerosLike", lambda x: stack(apply_op("ZerosLike", None, x=list_of(x))), 0 * X, name="of lists"),
    *[
        row(op, through_an_optional, [3 * X, True, False], 18 * X)
        for op in ("OptionalFromValue", "OptionalGetValue", "OptionalHasValue", "OptionalNone")
    ],
]
