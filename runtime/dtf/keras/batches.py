"""Batches for models: from arrays, generators, Sequences, datasets and tensors to arrays of one step.

Owns the forms in which programs give examples; `training` feeds the batches. An iterator of tf.data and tensors are
run in the model's session, and their values are fed.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Model#fit
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtf.build.default_graph import get_default_graph
from dtf.build.tensor import Tensor
from dtf.keras.arrays import mini_batches
from dtf.wire import errors

__all__ = ["Batch", "Stream", "in_arrays", "stream_of"]


@dataclass(frozen=True)
class Batch:
    """The examples of one step, as the program gave them.

    Attributes:
      x: inputs: an array, or a list or dict of them.
      y: targets in the same forms, or None.
      weights: one number for each example, or None; a list for several outputs.
      size: the number of examples.
    """

    x: Any
    y: Any
    weights: Any
    size: int


@dataclass
class Stream:
    """Batches, epoch by epoch.

    Attributes:
      batches: gives the batches of one epoch.
      steps: their number, None where only the end shows it.
      examples: the number of examples, if it is known.
    """

    batches: Callable[[], Iterator[Batch]]
    steps: int | None
    examples: int | None = None


def stream_of(
    x: Any, y: Any, weights: Any, batch_size: int | None, steps: int | None, shuffle: bool, session: Any
) -> Stream:
    """The batches of what a program gives to `fit`, `evaluate` or `predict`.

    Args:
      batch_size: of arrays; 32 by default.
      steps: batches in an epoch; needed where there is no end.
      session: runs tensors and iterators.

    Raises:
      ValueError: the number of steps is not known, or the arrays do not fit each other.
    """
    if hasattr(x, "make_one_shot_iterator") or hasattr(x, "get_next") or hasattr(x, "_as_variant_tensor"):
        return _of_dataset(x, steps, session)
    if any(isinstance(each, Tensor) for each in in_arrays(x, raw=True)):
        return _of_tensors(x, y, weights, steps, session)
    if hasattr(x, "__getitem__") and hasattr(x, "__len__") and hasattr(x, "on_epoch_end"):
        return _of_sequence(x, steps)
    if hasattr(x, "__next__"):
        return _of_generator(x, steps)
    return _of_arrays(x, y, weights, batch_size, steps, shuffle)


def in_arrays(value: Any, raw: bool = False) -> list[Any]:
    """The arrays of an array, a list or a dict."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple) and value and (raw or _are_arrays(value)):
        return list(value)
    return [value]


def _are_arrays(value: Sequence[Any]) -> bool:
    return all(hasattr(each, "shape") or isinstance(each, list | tuple) for each in value) and any(
        hasattr(each, "shape") for each in value
    )


def _taken(value: Any, rows: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {key: _array(each)[rows] for key, each in value.items()}
    if isinstance(value, list | tuple) and _are_arrays(value):
        return [None if each is None else _array(each)[rows] for each in value]
    return _array(value)[rows]


def _array(value: Any) -> Any:
    return value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)


def _of_arrays(x: Any, y: Any, weights: Any, batch_size: int | None, steps: int | None, shuffle: bool) -> Stream:
    size = 32 if batch_size is None else batch_size
    if size <= 0:
        raise ValueError(f"batch_size must be positive, but is {size}")
    first = in_arrays(x)
    if not first:
        raise ValueError("The input has no examples")
    arrays = [_array(each) for each in [*first, *in_arrays(y)]]
    count = len(arrays[0]) if arrays[0].ndim else 0
    if any(each.ndim == 0 or len(each) != count for each in arrays):
        of_x, of_y = (", ".join(str(np.shape(each)) for each in in_arrays(each)) for each in (x, y))
        raise ValueError(f"x and y must have the same number of examples; x is {of_x} and y {of_y}")
    if not count:
        raise ValueError("The input has no examples")

    def batches() -> Iterator[Batch]:
        order = np.random.permutation(count) if shuffle else np.arange(count)
        for rows in mini_batches(order, size):
            yield Batch(_taken(x, rows), _taken(y, rows), _taken(weights, rows), len(rows))

    if steps is None:
        return Stream(batches, -(-count // size), count)
    forever = itertools.chain.from_iterable(batches() for _ in itertools.count())
    return Stream(lambda: itertools.islice(forever, steps), steps)


def _of_sequence(sequence: Any, steps: int | None) -> Stream:
    def batches() -> Iterator[Batch]:
        for index in range(len(sequence)):
            yield _batch_of(sequence[index])
        sequence.on_epoch_end()

    if steps is None:
        return Stream(batches, len(sequence))
    return Stream(lambda: itertools.islice(batches(), steps), steps)


def _of_generator(generator: Any, steps: int | None) -> Stream:
    if steps is None:
        if not hasattr(generator, "__len__"):
            raise ValueError("a generator without a length needs the number of its steps")
        steps = len(generator)
    count = steps
    return Stream(lambda: (_batch_of(each) for each in itertools.islice(generator, count)), count)


def _batch_of(given: Any) -> Batch:
    parts = given if isinstance(given, tuple) else (given,)
    x, y, weights = (*parts, None, None)[:3]
    arrays = in_arrays(x)
    return Batch(x, y, weights, len(arrays[0]) if arrays else 0)


def _of_dataset(data: Any, steps: int | None, session: Any) -> Stream:
    """A dataset begins anew in each epoch, without `steps`; an iterator goes on."""
    graph = get_default_graph()
    with graph.as_default():
        restart = None
        if hasattr(data, "get_next"):
            iterator = data
        else:
            iterator = data.make_initializable_iterator() if hasattr(data, "make_initializable_iterator") else None
            if iterator is None:
                from dtf.data import make_initializable_iterator

                iterator = make_initializable_iterator(data)
            restart = iterator.initializer
        following = iterator.get_next()
    begun: list[bool] = []

    def batches() -> Iterator[Batch]:
        if restart is not None and (steps is None or not begun):
            session().run(restart)
        begun.append(True)
        for _ in range(steps) if steps is not None else itertools.count():
            try:
                value = session().run(following)
            except errors.OutOfRangeError:
                if steps is None or restart is None:
                    return
                session().run(restart)
                value = session().run(following)
            yield _batch_of(value)

    return Stream(batches, steps)


def _of_tensors(x: Any, y: Any, weights: Any, steps: int | None, session: Any) -> Stream:
    if steps is None:
        raise ValueError("Inputs that are tensors need the number of steps: steps_per_epoch or steps")
    fetches = [x, *([] if y is None else [y]), *([] if weights is None else [weights])]

    def batches() -> Iterator[Batch]:
        for _ in range(steps):
            values = session().run(fetches)
            found = values[0]
            rest = values[1:]
            of_y = rest.pop(0) if y is not None else None
            arrays = in_arrays(found)
            yield Batch(found, of_y, rest[0] if rest else None, len(arrays[0]))

    return Stream(batches, steps)
