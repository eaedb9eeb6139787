"""Input pipelines of queues: producers of names, numbers and slices, and batches that threads keep ready.

Owns what makes the queue, its enqueue operations, the QueueRunner that a session's threads run, and the summary that
says how full the queue is. Names of nodes are TensorFlow's. The queues themselves belong to
`build.ops.data_flow`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/batch and neighbouring pages
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build import variables
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, name_scope
from dtf.build.graph import GraphKeys
from dtf.build.ops import array, control_flow, gathering, io, math, random, summary_ops
from dtf.build.ops.data_flow import FIFOQueue
from dtf.build.tensor import Tensor
from dtf.train.queue_runner import QueueRunner, add_queue_runner
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "input_producer", "limit_epochs", "match_filenames_once", "range_input_producer", "slice_input_producer",
    "string_input_producer",
]  # fmt: skip


def match_filenames_once(pattern: TensorLike, name: str | None = None) -> Any:
    """The files that match a pattern (or any of several) when local variables are initialized: a local variable."""
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return variables.Variable(
            name=scope,
            initial_value=io.matching_files(pattern),
            trainable=False,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )


def limit_epochs(tensor: TensorLike, num_epochs: int | None = None, name: str | None = None) -> Any:
    """`tensor`, which can be read `num_epochs` times and then raises OutOfRangeError.

    The count is a local variable, `epochs`, that must be initialized.

    Raises:
      ValueError: `num_epochs` is not positive.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        epochs = variables.Variable(
            constant(0, dtypes.int64), name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES]
        )
        with control_dependencies([epochs.count_up_to(num_epochs)]):
            return array.identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue of the rows of `input_tensor`, filled again and again by a QueueRunner.

    Args:
      element_shape: of a row, if the tensor does not say it.
      num_epochs: how often all rows go in; then the queue is closed. For ever if None.
      shuffle: another order each time; `seed` fixes them.
      summary_name: of a scalar summary of how full the queue is.
      cancel_op: the op that the QueueRunner runs when its coordinator stops.

    Raises:
      ValueError: the shape of a row is not known.
    """
    with name_scope(name, "input_producer", [input_tensor]) as scope:
        input_tensor = convert_to_tensor(input_tensor, name="input_tensor")
        row = input_tensor.shape[1:].merge_with(element_shape)
        if not row.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            input_tensor = random.random_shuffle(input_tensor, seed=seed)
        input_tensor = limit_epochs(input_tensor, num_epochs)
        queue = FIFOQueue(
            capacity, dtypes=[input_tensor.dtype.base_dtype], shapes=[row], shared_name=shared_name, name=scope
        )
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([input_tensor])], cancel_op=cancel_op))
        if summary_name is not None:
            fullness(summary_name, queue.size(), capacity)
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue of strings, such as names of files for a reader. Arguments as `input_producer`.

    Raises:
      ValueError: `string_tensor` is an empty list.
      InvalidArgumentError (when it runs): the tensor is empty.
    """
    message = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, Tensor) and not hasattr(string_tensor, "op") and not len(string_tensor):
        raise ValueError(message)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        string_tensor = convert_to_tensor(string_tensor, dtypes.string)
        check = control_flow.Assert(math.greater(array.size(string_tensor), 0), [message])
        with control_dependencies([check]):
            string_tensor = array.identity(string_tensor)
        return input_producer(
            string_tensor, [], num_epochs, shuffle, seed, capacity, shared_name, _full(capacity), scope, cancel_op
        )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of the numbers below `limit`. Arguments as `input_producer`."""
    with name_scope(name, "input_producer", [limit]) as scope:
        numbers = math.range(limit)
        return input_producer(numbers, [], num_epochs, shuffle, seed, capacity, shared_name, _full(capacity), scope)


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Takes one row of each tensor, all at the same index; each run takes another row. Arguments as
    `input_producer`.

    Raises:
      ValueError: the list is empty.
    """
    with name_scope(name, "input_producer", tensor_list):
        tensors = [convert_to_tensor(each) for each in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        count = array.shape(tensors[0])[0]
        queue = range_input_producer(count, num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [gathering.gather(each, index) for each in tensors]


def fullness(name: str, size: Tensor, capacity: int) -> None:
    """A scalar summary of the fraction of `capacity` that `size` fills."""
    summary_ops.scalar(name, math.cast(size, dtypes.float32) * (1.0 / capacity))


def _full(capacity: int) -> str:
    return f"fraction_of_{capacity}_full"


