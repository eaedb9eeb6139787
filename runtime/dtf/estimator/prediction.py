"""The predictions of a model, batch after batch, as an iterator.

Owns the session. The graph is the default only while something is made or run in it, so the caller may use other
graphs between two predictions.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/Estimator#predict
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dtf.build.graph import Graph
from dtf.train.monitored_session import MonitoredSession
from dtf.wire import errors


def chosen(predictions: Any, predict_keys: str | Sequence[str] | None) -> Any:
    """The predictions of these keys; all without keys.

    Raises:
      ValueError: predictions are not a dict, or a key does not exist.
    """
    if not predict_keys:
        return predictions
    keys = [predict_keys] if isinstance(predict_keys, str) else list(predict_keys)
    if not isinstance(predictions, Mapping):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    found = {key: value for key, value in predictions.items() if key in keys}
    if not found:
        raise ValueError(f"Expected to run at least one output from {sorted(predictions)}, provided {keys}.")
    return found


def batches(graph: Graph, session: MonitoredSession, predictions: Any) -> Iterator[Any]:
    """Yields the values of `predictions` until the input ends, and closes the session."""
    try:
        while not session.should_stop():
            with graph.as_default():
                values = session.run(predictions)
            yield values
    except (errors.OutOfRangeError, StopIteration):
        pass
    except BaseException as error:  # an error of a step, or the caller has closed the generator
        with graph.as_default():
            session.__exit__(type(error), error, error.__traceback__)
        raise
    with graph.as_default():
        session.close()


def examples(batch: Any) -> Iterator[Any]:
    """Yields the rows of a batch: arrays, or dicts of them.

    Raises:
      ValueError: the arrays of a dict have different numbers of rows, or none.
    """
    if not isinstance(batch, Mapping):
        yield from batch
        return
    lengths = {key: value.shape[0] if getattr(value, "ndim", 0) else -1 for key, value in batch.items()}
    if len(set(lengths.values())) != 1 or -1 in lengths.values():
        raise ValueError(
            f"Batch length of predictions should be same; rows by key, -1 for numbers: {lengths}. "
            "yield_single_examples=False gives whole batches."
        )
    for row in range(next(iter(lengths.values()))):
        yield {key: value[row] for key, value in batch.items()}
