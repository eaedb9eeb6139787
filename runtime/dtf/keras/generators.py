"""Training on batches that a generator gives: `fit_generator` and its neighbours, for all models.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Model#fit_generator
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dtf.keras.callbacks import CallbackList
from dtf.keras.epochs import History, line_of

__all__ = ["TakesGenerators"]


class TakesGenerators:
    """The methods of models that take a generator of (x, y) batches, or a sequence of them."""

    def fit_generator(
        self, generator: Any, steps_per_epoch: int | None = None, epochs: int = 1, verbose: int = 1,
        callbacks: Any = None, validation_data: Any = None, validation_steps: int | None = None,
        initial_epoch: int = 0, **kwargs: Any,
    ) -> History:  # fmt: skip
        """Trains on batches.

        Args:
          generator: gives (x, y) without end, or an object with a length and items.
          steps_per_epoch: how many batches an epoch has; the length by default.
          validation_data: (x, y), or a generator, with `validation_steps`.
          kwargs: class_weight, max_queue_size, workers, use_multiprocessing and shuffle; accepted.

        Raises:
          ValueError: the number of steps is not known.
        """
        model: Any = self
        batches, steps = _batches(generator), steps_per_epoch or _length(generator)
        history, called = History(), CallbackList(callbacks, model, epochs)
        called.call("on_train_begin", {})
        for epoch in range(initial_epoch, epochs):
            called.call("on_epoch_begin", epoch, {})
            found = []
            for number in range(steps):
                x, y = next(batches)[:2]
                called.call("on_train_batch_begin", number, {"batch": number, "size": len(y)})
                found.append(np.atleast_1d(model.train_on_batch(x, y)))
                called.call("on_train_batch_end", number, {"batch": number, "size": len(y), "loss": found[-1][0]})
            figures = _named(np.mean(found, 0))
            if validation_data is not None:
                if isinstance(validation_data, tuple):
                    tested = model.evaluate(*validation_data, verbose=0)
                else:
                    tested = self.evaluate_generator(validation_data, validation_steps)
                figures |= {f"val_{name}": value for name, value in _named(np.atleast_1d(tested)).items()}
            history.epoch.append(epoch)
            for name, value in figures.items():
                history.history.setdefault(name, []).append(value)
            if verbose:
                print(f"Epoch {epoch + 1}/{epochs} - {line_of(figures)}", flush=True)
            called.call("on_epoch_end", epoch, dict(figures))
            if called.stopped:
                break
        called.call("on_train_end", {})
        called.take(history)
        return history

    def evaluate_generator(self, generator: Any, steps: int | None = None, **kwargs: Any) -> Any:
        """The mean of `test_on_batch` over batches."""
        model: Any = self
        batches = _batches(generator)
        found = [model.test_on_batch(*next(batches)[:2]) for _ in range(steps or _length(generator))]
        means = np.mean(found, 0)
        return float(means) if means.ndim == 0 else means.tolist()

    def predict_generator(self, generator: Any, steps: int | None = None, **kwargs: Any) -> Any:
        """The outputs for batches, one after another; of (x, y) the y is not looked at."""
        model: Any = self
        batches = _batches(generator)
        given = (next(batches) for _ in range(steps or _length(generator)))
        return np.concatenate([model.predict(each[0] if isinstance(each, tuple) else each) for each in given])

    def predict_on_batch(self, x: Any) -> Any:
        """`predict` of one batch."""
        model: Any = self
        return model.predict(x, batch_size=len(x))


def _batches(generator: Any) -> Iterator[Any]:
    if hasattr(generator, "__next__"):
        return iter(generator)
    return _forever(generator)


def _forever(items: Any) -> Iterator[Any]:
    while True:
        for index in range(len(items)):
            yield items[index]


def _length(generator: Any) -> int:
    if not hasattr(generator, "__len__"):
        raise ValueError("a generator without a length needs the number of its steps")
    return len(generator)


def _named(figures: Any) -> dict[str, float]:
    names = ["loss", *("acc" if index == 1 else f"metric_{index}" for index in range(1, len(figures)))]
    return dict(zip(names, map(float, figures), strict=True))
