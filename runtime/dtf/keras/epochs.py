"""Epochs: going through examples in batches, with the mean figures of each epoch.

Owns the order of batches and epochs. The `program` defines a batch; it runs in the session of the given `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.keras.arrays import mini_batches

if TYPE_CHECKING:
    from dtf.keras.callbacks import CallbackList


class History:
    """The result of `fit`.

    Attributes:
      epoch: the numbers of the epochs.
      history: name -> its mean in each epoch: "loss" and the metrics; with validation data, also these names with
          "val_".
    """

    def __init__(self) -> None:
        self.epoch: list[int] = []
        self.history: dict[str, list[float]] = {}


class Plan:
    """Which epochs are to be run, and how.

    Args:
      verbose: whether each epoch's figures are printed.
    """

    def __init__(
        self, batch_size: int, epochs: range, shuffle: bool, verbose: int, callbacks: CallbackList | None = None
    ) -> None:
        if batch_size <= 0:
            raise ValueError(f"batch_size must be positive, but is {batch_size}")
        self._batch_size = batch_size
        self._epochs = epochs
        self._shuffle = shuffle
        self._verbose = verbose
        self._callbacks = callbacks

    def run(self, run: Callable[..., Any], program: Any, examples: Any, held_out: Any) -> History:
        """Trains by `run`, a session's. Returns the figures of each epoch."""
        history = History()
        self._call("on_train_begin", {})
        for epoch in self._epochs:
            self._call("on_epoch_begin", epoch, {})
            order = np.random.permutation(len(examples)) if self._shuffle else np.arange(len(examples))
            figures = _means(self._steps(run, program, examples, order))
            if held_out is not None:
                tested = evaluated(run, program, held_out, self._batch_size)
                figures |= {f"val_{name}": value for name, value in tested.items()}
            history.epoch.append(epoch)
            for name, value in figures.items():
                history.history.setdefault(name, []).append(value)
            if self._verbose:
                print(f"Epoch {epoch + 1}/{self._epochs.stop} - {line_of(figures)}", flush=True)
            self._call("on_epoch_end", epoch, dict(figures))
            if self._callbacks is not None and self._callbacks.stopped:
                break
        self._call("on_train_end", {})
        if self._callbacks is not None:
            self._callbacks.take(history)
        return history

    def _call(self, method: str, *arguments: Any) -> None:
        if self._callbacks is not None:
            self._callbacks.call(method, *arguments)

    def _steps(
        self, run: Callable[..., Any], program: Any, examples: Any, order: np.ndarray
    ) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number, rows in enumerate(mini_batches(order, self._batch_size)):
            batch = examples.taken(rows)
            self._call("on_train_batch_begin", number, {"batch": number, "size": len(batch)})
            figures = run([program.train_op, program.train_figures], feed_dict=batch.feeds(program))[1]
            self._call("on_train_batch_end", number, {"batch": number, "size": len(batch), **figures})
            yield len(batch), figures
            if self._callbacks is not None and self._callbacks.stopped:
                return


def evaluated(run: Callable[..., Any], program: Any, examples: Any, batch_size: int) -> dict[str, float]:
    """The mean figures of examples, by `run`, a session's.

    Raises:
      ValueError: there are no examples.
    """

    def steps() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for rows in mini_batches(np.arange(len(examples)), batch_size):
            batch = examples.taken(rows)
            yield len(batch), run(program.figures, feed_dict=batch.feeds(program))

    return _means(steps())


def _means(steps: Iterator[tuple[int, Mapping[str, Any]]]) -> dict[str, float]:
    """The means of figures, each batch by its number of examples."""
    sums: dict[str, float] = {}
    count = 0
    for size, figures in steps:
        count += size
        for name, value in figures.items():
            sums[name] = sums.get(name, 0.0) + size * float(value)
    if not count:
        raise ValueError("The input has no examples")
    return {name: value / count for name, value in sums.items()}


def line_of(figures: Mapping[str, float]) -> str:
    """Figures as one line."""
    return " - ".join(f"{name}: {value:.4f}" for name, value in figures.items())
