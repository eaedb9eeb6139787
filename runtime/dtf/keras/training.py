"""How models train: `fit`, `evaluate`, `predict`, and their forms for single batches and generators.

Owns the loops over epochs and batches. `compiling` makes the operations of a step, `feeds` and `batches` give its
arrays; `functional` owns the graph of layers.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Model
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dtf.build.tensor import Tensor
from dtf.keras.batches import Batch, Stream, in_arrays, stream_of
from dtf.keras.callbacks import CallbackList
from dtf.keras.epochs import History, line_of
from dtf.keras.feeds import Feeds

__all__ = ["Trains"]


class Trains(Feeds):
    """The methods of models that train on examples."""

    # Loops

    def fit(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1, verbose: int = 1,
        callbacks: Any = None, validation_split: float = 0.0, validation_data: Any = None, shuffle: Any = True,
        class_weight: Any = None, sample_weight: Any = None, initial_epoch: int = 0,
        steps_per_epoch: int | None = None, validation_steps: int | None = None, validation_freq: int = 1,
        **kwargs: Any,
    ) -> History:  # fmt: skip
        """Trains on examples.

        Args:
          x: inputs [n, ...]; a list or a dict by names for several inputs; or a generator, a Sequence, a Dataset, or an
            iterator of (x, y) or (x, y, weights).
          y: targets [n, ...]; a list or a dict by names for several outputs.
          batch_size: of arrays; 32 by default.
          epochs: the epoch number at which to stop; counts from `initial_epoch`.
          verbose: 0 prints nothing, any other value a line an epoch.
          callbacks: of tf.keras.callbacks.
          validation_split: this part of the examples, the last ones, is evaluated after each epoch.
          validation_data: (x, y), (x, y, weights), or a Dataset, to evaluate after each epoch instead.
          shuffle: whether each epoch has a new order (by numpy's global generator).
          class_weight: class -> weight of its examples.
          sample_weight: the weight of each example.
          steps_per_epoch: how many batches an epoch has, where the input has no end.
          validation_steps: how many batches of validation data.
          validation_freq: epochs between evaluations.
          kwargs: max_queue_size, workers, use_multiprocessing; accepted.

        Returns:
          A History.

        Raises:
          RuntimeError: the model is not compiled.
          ValueError: the examples do not fit each other or the model.
        """
        for each in ("max_queue_size", "workers", "use_multiprocessing", "nb_epoch"):
            kwargs.pop(each, None)
        if kwargs:
            raise TypeError(f"Unknown arguments of fit: {sorted(kwargs)}")
        self._require_told()
        batch_size = self._sized(x, batch_size) if not validation_split else batch_size
        if validation_split and validation_data is None:
            x, y, sample_weight, validation_data = _held_out(x, y, sample_weight, validation_split)
        with self._own_graph().as_default():
            data = stream_of(x, y, sample_weight, batch_size, steps_per_epoch, bool(shuffle), self._session)
        tested = None
        if validation_data is not None:
            given = validation_data if isinstance(validation_data, tuple) else (validation_data,)
            held_x, held_y, held_weights = (*given, None, None)[:3]
            with self._own_graph().as_default():
                tested = stream_of(held_x, held_y, held_weights, batch_size, validation_steps, False, self._session)
        return self._run_epochs(
            data, tested, range(initial_epoch, epochs), verbose, callbacks, class_weight, validation_freq
        )

    def _run_epochs(
        self, data: Stream, tested: Stream | None, epochs: range, verbose: int, callbacks: Any, class_weight: Any,
        validation_freq: Any,
    ) -> History:  # fmt: skip
        history = History()
        history.model = self  # type: ignore[attr-defined]
        called = CallbackList(callbacks, self, epochs.stop, steps=data.steps, samples=data.examples, verbose=verbose,
                              validates=tested is not None)  # fmt: skip
        called.call("on_train_begin", {})
        for epoch in epochs:
            called.call("on_epoch_begin", epoch, {})
            figures = self._figures_of(self._trained(data, called, class_weight))
            if tested is not None and _is_due(epoch + 1, validation_freq):
                called.call("on_test_begin", {})
                found = self._figures_of(self._tested(tested, called))
                called.call("on_test_end", {})
                figures |= {f"val_{name}": value for name, value in found.items()}
            history.epoch.append(epoch)
            for name, value in figures.items():
                history.history.setdefault(name, []).append(value)
            if verbose:
                print(f"Epoch {epoch + 1}/{epochs.stop} - {line_of(figures)}", flush=True)
            logs = dict(figures)
            called.call("on_epoch_end", epoch, logs)
            for name in logs.keys() - figures.keys():
                history.history.setdefault(name, []).append(logs[name])
            if called.stopped:
                break
        called.call("on_train_end", {})
        history.params = called.params  # type: ignore[attr-defined]
        called.take(history)
        self.history = history
        return history

    def _trained(self, data: Stream, called: CallbackList, class_weight: Any) -> Iterator[tuple[int, Any]]:
        self._reset()
        for number, batch in enumerate(data.batches()):
            called.call("on_train_batch_begin", number, {"batch": number, "size": batch.size})
            found = self._step(batch, True, class_weight)
            called.call("on_train_batch_end", number, {"batch": number, "size": batch.size, **found})
            yield batch.size, found
            if called.stopped:
                return

    def _tested(self, data: Stream, called: CallbackList | None = None) -> Iterator[tuple[int, Any]]:
        self._reset()
        for number, batch in enumerate(data.batches()):
            if called is not None:
                called.call("on_test_batch_begin", number, {"batch": number, "size": batch.size})
            found = self._step(batch, False)
            if called is not None:
                called.call("on_test_batch_end", number, {"batch": number, "size": batch.size, **found})
            yield batch.size, found

    def _figures_of(self, steps: Iterator[tuple[int, Mapping[str, Any]]]) -> dict[str, float]:
        """The means of figures, each batch by its number of examples; the last value of metrics that keep theirs."""
        sums: dict[str, float] = {}
        count, kept = 0, set()
        for size, figures in steps:
            kept = self._program.kept if self._program is not None else set()
            count += size
            for name, value in figures.items():
                sums[name] = float(value) if name in kept else sums.get(name, 0.0) + size * float(value)
        if not count:
            raise ValueError("The input has no examples")
        return {name: value if name in kept else value / count for name, value in sums.items()}

    def _step(self, batch: Batch, trains: bool, class_weight: Any = None) -> dict[str, Any]:
        self._made_for(batch.x)
        program = self._compiled()
        if trains:
            self._make_train_op(program)
        feeds = {**self._phase(trains), **self._input_feeds(batch.x)}
        feeds.update(self._target_feeds(batch, program, class_weight))
        fetches = [program.figures, *([program.train_op] if trains else []), *self._kept_by_a_step()]
        return self._session().run(fetches, feeds)[0]

    def _reset(self) -> None:
        program = self._program
        if program is not None and program.reset is not None:
            self._session().run(program.reset)

    def evaluate(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, verbose: int = 1, sample_weight: Any = None,
        steps: int | None = None, callbacks: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """The mean loss of examples; with metrics a list of it and of them. The arguments are as in `fit`.

        Raises:
          RuntimeError: the model is not compiled.
          ValueError: the examples do not fit each other or the model.
        """
        self._require_told()
        batch_size = self._sized(x, batch_size)
        with self._own_graph().as_default():
            data = stream_of(x, y, sample_weight, batch_size, steps, False, self._session)
        called = None if callbacks is None else CallbackList(callbacks, self, 1)
        if called is not None:
            called.call("on_test_begin", {})
        figures = self._figures_of(self._tested(data, called))
        if called is not None:
            called.call("on_test_end", {})
        if verbose:
            print(line_of(figures), flush=True)
        return _listed(figures)

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: int = 0, steps: int | None = None, callbacks: Any = None,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        """The outputs for inputs [n, ...], a list or a dict for several; a list of arrays for several outputs.

        Raises:
          ValueError: the inputs do not fit the model.
        """
        batch_size = self._sized(x, batch_size)
        with self._own_graph().as_default():
            data = stream_of(x, None, None, batch_size, steps, False, self._session)
        called = None if callbacks is None else CallbackList(callbacks, self, 1)
        if called is not None:
            called.call("on_predict_begin", {})
        parts = []
        for number, batch in enumerate(data.batches()):
            if called is not None:
                called.call("on_predict_batch_begin", number, {"batch": number, "size": batch.size})
            self._made_for(batch.x)
            feeds = {**self._phase(False), **self._input_feeds(batch.x)}
            parts.append(self._session().run([self.outputs, *self._kept_by_a_step()], feeds)[0])
            if called is not None:
                called.call("on_predict_batch_end", number, {"batch": number, "size": batch.size})
        if called is not None:
            called.call("on_predict_end", {})
        if not parts:
            raise ValueError("The input has no examples")
        whole = [np.concatenate(each) for each in zip(*parts, strict=True)]
        return whole[0] if len(whole) == 1 else whole

    # One batch

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, reset_metrics: bool = True
    ) -> Any:
        """One training step. Returns what `evaluate` does, of this batch."""
        self._require_told()
        return _listed(self._one(x, y, sample_weight, True, class_weight, reset_metrics))

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, reset_metrics: bool = True) -> Any:
        """`evaluate` of one batch."""
        self._require_told()
        return _listed(self._one(x, y, sample_weight, False, None, reset_metrics))

    def _one(self, x: Any, y: Any, weights: Any, trains: bool, class_weight: Any, reset: bool) -> dict[str, Any]:
        if reset:
            self._reset()
        data = stream_of(x, y, weights, _count(x), 1 if _is_tensor(x) else None, False, self._session)
        return self._step(next(data.batches()), trains, class_weight)

    def predict_on_batch(self, x: Any) -> Any:
        """`predict` of one batch."""
        return self.predict(x, batch_size=_count(x))

    def predict_classes(self, x: Any, batch_size: int | None = None, verbose: int = 0) -> np.ndarray:
        """The class with the greatest output for each example; of a single output whether it is above 0.5."""
        outputs = self.predict(x, batch_size)
        return outputs.argmax(-1) if outputs.shape[-1] > 1 else (outputs > 0.5).astype(np.int32)

    def predict_proba(self, x: Any, batch_size: int | None = None, verbose: int = 0) -> Any:
        """`predict`."""
        return self.predict(x, batch_size)

    # Generators

    def fit_generator(
        self, generator: Any, steps_per_epoch: int | None = None, epochs: int = 1, verbose: int = 1,
        callbacks: Any = None, validation_data: Any = None, validation_steps: int | None = None,
        validation_freq: int = 1, class_weight: Any = None, max_queue_size: int = 10, workers: int = 1,
        use_multiprocessing: bool = False, shuffle: bool = True, initial_epoch: int = 0,
    ) -> History:  # fmt: skip
        """`fit` on batches of a generator without end, or of an object with a length and items.

        Raises:
          ValueError: the number of steps is not known.
        """
        return self.fit(
            _as_sequence(generator), None, None, epochs, verbose, callbacks, 0.0,
            validation_data if isinstance(validation_data, tuple | None) else _as_sequence(validation_data),
            shuffle, class_weight, None, initial_epoch, steps_per_epoch, validation_steps, validation_freq,
        )  # fmt: skip

    def evaluate_generator(
        self, generator: Any, steps: int | None = None, callbacks: Any = None, max_queue_size: int = 10,
        workers: int = 1, use_multiprocessing: bool = False, verbose: int = 0,
    ) -> Any:  # fmt: skip
        """`evaluate` on batches of a generator."""
        return self.evaluate(_as_sequence(generator), steps=steps, callbacks=callbacks, verbose=verbose)

    def predict_generator(
        self, generator: Any, steps: int | None = None, callbacks: Any = None, max_queue_size: int = 10,
        workers: int = 1, use_multiprocessing: bool = False, verbose: int = 0,
    ) -> Any:  # fmt: skip
        """`predict` on batches of a generator; of (x, y) the y is not looked at."""
        return self.predict(_as_sequence(generator), steps=steps, callbacks=callbacks)


def _held_out(x: Any, y: Any, weights: Any, part: float) -> tuple[Any, Any, Any, Any]:
    """(x, y, weights, validation data): all but the last part, and that."""
    from dtf.keras.batches import _taken

    count = len(in_arrays(x)[0])
    first = int(count * (1.0 - part))
    if not 0 < first < count:
        raise ValueError(f"validation_split={part} of {count} examples leaves one of the two parts empty")
    one, other = slice(0, first), slice(first, None)
    held = (_taken(x, other), _taken(y, other), *([] if weights is None else [_taken(weights, other)]))
    return _taken(x, one), _taken(y, one), _taken(weights, one), held


def _as_sequence(generator: Any) -> Any:
    if hasattr(generator, "__next__") or hasattr(generator, "on_epoch_end") or not hasattr(generator, "__len__"):
        return generator if not hasattr(generator, "__iter__") or hasattr(generator, "__next__") else (
            generator if hasattr(generator, "__len__") or hasattr(generator, "make_one_shot_iterator")
            else iter(generator))  # fmt: skip
    return _Items(generator)


class _Items:
    def __init__(self, items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Any:
        return self._items[index]

    def on_epoch_end(self) -> None:
        """Nothing to do."""


def _is_due(epoch: int, frequency: Any) -> bool:
    return epoch in frequency if isinstance(frequency, list | tuple | set) else epoch % frequency == 0


def _is_tensor(x: Any) -> bool:
    return any(isinstance(each, Tensor) for each in in_arrays(x, raw=True))


def _count(x: Any) -> int | None:
    if _is_tensor(x):
        return None
    return max(1, len(in_arrays(x)[0]))


def _listed(figures: Mapping[str, Any]) -> Any:
    values = [float(value) for value in figures.values()]
    return values[0] if len(values) == 1 else values
