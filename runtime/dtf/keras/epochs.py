"""Epochs: going through examples in batches, with the mean figures of each epoch.

Owns the order of things; what a batch does is the `program`'s, and where it runs the session's whose `run` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dtf.keras.arrays import Examples, mini_batches
from dtf.keras.program import Program


class History:
    """What `fit` returns.

    Attributes:
      epoch: the numbers of the epochs.
      history: name -> its mean in each epoch: "loss", the metrics, and with validation data the same with "val_".
    """

    def __init__(self) -> None:
        self.epoch: list[int] = []
        self.history: dict[str, list[float]] = {}


class Plan:
    """Which epochs are to be run, and how.

    Args:
      verbose: whether each epoch's figures are printed.
    """

    def __init__(self, batch_size: int, epochs: range, shuffle: bool, verbose: int) -> None:
        if batch_size <= 0:
            raise ValueError(f"batch_size must be positive, but is {batch_size}")
        self._batch_size = batch_size
        self._epochs = epochs
        self._shuffle = shuffle
        self._verbose = verbose

    def run(
        self, run: Callable[..., Any], program: Program, examples: Examples, held_out: Examples | None
    ) -> History:
        """Trains by `run`, a session's. Returns the figures of each epoch."""
        history = History()
        for epoch in self._epochs:
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
        return history

    def _steps(
        self, run: Callable[..., Any], program: Program, examples: Examples, order: np.ndarray
    ) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for rows in mini_batches(order, self._batch_size):
            batch = examples.taken(rows)
            yield len(batch), run([program.train_op, program.train_figures], feed_dict=batch.feeds(program))[1]


def evaluated(run: Callable[..., Any], program: Program, examples: Examples, batch_size: int) -> dict[str, float]:
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
        raise ValueError("There are no examples")
    return {name: value / count for name, value in sums.items()}


def line_of(figures: Mapping[str, float]) -> str:
    """Figures as one line."""
    return " - ".join(f"{name}: {value:.4f}" for name, value in figures.items())
