"""How models train: `compile`, `fit`, `evaluate`, `predict`, and their forms for single batches and generators.

Owns the loss of a model, its metrics, and the loops over epochs. `batches` gives the arrays of a step; `functional`
owns the graph of layers. Losses are weighted by `sample_weight` and `class_weight`, and averaged over the examples.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Model
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtf.build import nest
from dtf.build.default_graph import control_dependencies
from dtf.build.ops.array import expand_dims, placeholder, placeholder_with_default, rank
from dtf.build.ops.control_flow import cond
from dtf.build.ops.math import add_n, cast, div_no_nan, equal
from dtf.build.ops.ordering import group
from dtf.build.ops.reductions import reduce_mean
from dtf.build.tensor import Operation, Tensor
from dtf.keras import backend, losses, optimizer_state, optimizers
from dtf.keras.base import mask_of
from dtf.keras.batches import Batch, Stream, in_arrays, stream_of
from dtf.keras.callbacks import CallbackList
from dtf.keras.epochs import History, line_of
from dtf.keras.metrics import named
from dtf.wire import dtypes

__all__ = ["Told", "Trains", "by_output"]


@dataclass(frozen=True)
class Told:
    """The arguments of `compile`, as given, and by outputs once these are known.

    Attributes:
      optimizer: the optimizer.
      loss, metrics, loss_weights: as given.
    """

    optimizer: Any
    loss: Any
    metrics: Any
    loss_weights: Any = None
    by_time: bool = False

    def losses_of(self, names: list[str]) -> list[Any]:
        """One loss for each output; None where an output has none."""
        if isinstance(self.loss, Mapping):
            unknown = [name for name in self.loss if name not in names]
            if unknown:
                raise ValueError(f"The loss has entries {unknown}; the outputs are {names}")
            return [losses.get(self.loss[name]) if self.loss.get(name) is not None else None for name in names]
        given = by_output(self.loss, names, "loss", spread=True)
        return [None if each is None else losses.get(each) for each in given]

    def factors_of(self, names: list[str]) -> list[float]:
        """The factor of each output's loss."""
        if self.loss_weights is None:
            return [1.0] * len(names)
        if isinstance(self.loss_weights, Mapping):
            return [self.loss_weights.get(name, 1.0) for name in names]
        return by_output(self.loss_weights, names, "loss_weights")

    def metrics_of(self, names: list[str]) -> list[list[Any]]:
        """The metrics of each output."""
        given = self.metrics
        nested = isinstance(given, Mapping) or (bool(given) and isinstance(given[0], list | tuple))
        asked = by_output(given, names, "metrics") if nested else [given or []] * len(names)
        return [[each] if isinstance(each, str) or callable(each) else list(each or []) for each in asked]


@dataclass(eq=False)
class _Program:
    """The operations of a compiled model.

    Attributes:
      targets, weights: placeholders, one for each output with a loss; None for the others.
      figures: the loss and the metrics of a batch.
      kept: names of figures that metrics keep over batches.
      reset: begins those anew, or None.
      variables: the trainable variables at `compile`.
    """

    targets: list[Tensor | None]
    weights: list[Tensor | None]
    figures: dict[str, Tensor]
    kept: set[str]
    reset: Any
    variables: list[Any]
    train_op: Any = None
    fetched: list[str] = field(default_factory=list)


class Trains:
    """The methods of models that train on examples."""

    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    stop_training: bool
    history: Any
    _told: Told | None
    _program: _Program | None
    _own_metrics: list[tuple[str, Tensor, Any]]

    # Made by the class that has the layers.
    input_names: Any
    output_names: Any
    trainable_weights: Any
    updates: Any
    state_updates: Any
    losses: Any

    def compile(
        self, optimizer: Any = "rmsprop", loss: Any = None, metrics: Any = None, loss_weights: Any = None,
        sample_weight_mode: Any = None, weighted_metrics: Any = None, target_tensors: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Sets how the model is trained; its weights are unchanged.

        Args:
          optimizer: one of tf.keras.optimizers or tf.train, or a name.
          loss: a function of (y_true, y_pred), a Loss, or a name; a list or a dict by output names for several outputs.
          metrics: a function, a Metric or a name, or a list of them; a list of lists or a dict for several outputs.
          loss_weights: the factors of the outputs' losses, a list or a dict; 1 by default.
          sample_weight_mode: "temporal" for a weight of each step.
          weighted_metrics: as metrics.
          target_tensors: not supported.
          kwargs: run_eagerly, distribute; accepted where they are false.

        Raises:
          ValueError, TypeError: a name or function is invalid, or the loss is missing.
        """
        if target_tensors is not None or kwargs.pop("run_eagerly", None) or kwargs.pop("distribute", None):
            raise ValueError("compile does not support target_tensors, run_eagerly and distribute; leave them out")
        for each in ("options", "run_metadata", "steps_per_execution"):
            kwargs.pop(each, None)
        if kwargs:
            raise TypeError(f"Unknown arguments of compile: {sorted(kwargs)}")
        every = metrics
        if weighted_metrics:
            every = [*(metrics or []), *weighted_metrics] if isinstance(metrics, list | None) else metrics
        self._told = Told(optimizers.get(optimizer), loss, every, loss_weights, sample_weight_mode == "temporal")
        if isinstance(loss, str) or callable(loss) or loss is not None and not isinstance(loss, list | tuple | Mapping):
            losses.get(loss)
        self._program = None
        if self._is_made:
            self._check_loss()
            with self._graph.as_default():
                self._program = self._make_program()

    def _check_loss(self) -> None:
        assert self._told is not None
        if self._told.loss is None and not self.losses:
            raise ValueError("compile needs a loss")

    @property
    def optimizer(self) -> Any:
        """The optimizer that the model was compiled with; None without."""
        return None if self._told is None else self._told.optimizer

    @property
    def loss(self) -> Any:
        """The loss that the model was compiled with; None without."""
        return None if self._told is None else self._told.loss

    @property
    def total_loss(self) -> Any:
        """The tensor of the loss of a batch."""
        return self._compiled().figures["loss"]

    @property
    def metrics_names(self) -> list[str]:
        """The names of what `evaluate` returns."""
        return list(self._compiled().figures)

    @property
    def metrics(self) -> list[Any]:
        """The objects of Metric that the model was compiled with."""
        if self._told is None:
            return []
        given = nest.flatten(self._told.metrics) if self._told.metrics else []
        return [each for each in given if hasattr(each, "update_state")]

    def add_metric(self, value: Any, name: str | None = None, aggregation: str | None = None) -> None:
        """A figure that `fit` and `evaluate` report; "mean" is the mean over batches."""
        self._own_metrics.append((name or value.op.name, reduce_mean(cast(value, dtypes.float32)), None))

    def _make_program(self) -> _Program:
        told = self._told
        assert told is not None
        names = self.output_names
        functions = told.losses_of(names)
        targets = [
            None if each is None else _target(output, each)
            for output, each in zip(self.outputs, functions, strict=True)
        ]
        weights = [
            None if each is None else placeholder_with_default(np.float32(1.0), None, name="sample_weight")
            for each in functions
        ]
        figures, kept, reset = self.figures(targets, told, weights)
        return _Program(targets, weights, figures, kept, reset, list(self.trainable_weights))

    def figures(
        self, targets: Sequence[Any], told: Told, weights: Sequence[Any]
    ) -> tuple[dict[str, Tensor], set[str], Any]:
        """The loss of a batch, the losses of several outputs, and the metrics; which are kept, and how they reset."""
        names = self.output_names
        single = sum(each is not None for each in told.losses_of(names)) <= 1 and len(names) == 1
        functions, factors, metrics = told.losses_of(names), told.factors_of(names), told.metrics_of(names)
        found: dict[str, Tensor] = {}
        terms = []
        for index, (name, output, y) in enumerate(zip(names, self.outputs, targets, strict=True)):
            if functions[index] is None:
                continue
            part = _weighted_mean(functions[index], y, output, weights[index])
            terms.append(part if factors[index] == 1 else factors[index] * part)
            if not single:
                found[f"{name}_loss"] = part
        kept: set[str] = set()
        objects: list[Any] = []
        for index, (name, output, y) in enumerate(zip(names, self.outputs, targets, strict=True)):
            for each in metrics[index]:
                if y is None:
                    raise ValueError(f"Output {name} has metrics but no loss; give it a loss in compile")
                title, metric = named(each, functions[index], output.shape[-1].value if output.shape.ndims else None)
                key = title if single else f"{name}_{title}"
                while key in found:
                    key += "_1"
                value = metric(y, output)
                if hasattr(metric, "update_state"):
                    kept.add(key)
                    objects.append(metric)
                    found[key] = value
                else:
                    found[key] = reduce_mean(cast(value, dtypes.float32))
        for name, tensor, _ in self._own_metrics:
            found[name] = tensor
        own = {each.op for each in [*self.inputs, *(each for each in targets if each is not None)]}
        terms += [
            cast(reduce_mean(each) if each.shape.ndims else each, dtypes.float32)
            for each in self.losses if only_from(each, own)
        ]
        if not terms:
            raise ValueError("compile needs a loss")
        reset = group(*[each.reset_op() for each in objects]) if objects else None
        return {"loss": add_n(terms) if len(terms) > 1 else terms[0], **found}, kept, reset

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

    def _make_train_op(self, program: _Program) -> None:
        if program.train_op is not None:
            return
        with self._graph.as_default():
            own = {each.op for each in [*self.inputs, *(each for each in program.targets if each is not None)]}
            updates = [each for each in self.updates if only_from(each, own)]
            with control_dependencies(updates):
                assert self._told is not None
                loss = program.figures["loss"]
                program.train_op = group(self._told.optimizer.minimize(loss, var_list=program.variables))

    def _optimizer_state(self, makes: bool = False) -> list[tuple[str, Any]]:
        """Names and variables of the optimizer's state, in the order of files; none before the first training step.

        Args:
          makes: whether to make them if they are not made yet.
        """
        if makes:
            self._make_train_op(self._compiled())
        program = self._program
        if program is None or program.train_op is None or self._told is None:
            return []
        with self._graph.as_default():
            return optimizer_state.kept(self._told.optimizer, program.variables)

    def _kept_by_a_step(self) -> list[Any]:
        """The operations that keep the states of stateful layers."""
        updates = self.state_updates
        own = {each.op for each in self.inputs} if updates else set()
        return [each for each in updates if only_from(each, own)]

    def _sized(self, x: Any, batch_size: int | None) -> int | None:
        """The size of batches: that of the inputs' static shape, if it has one.

        Raises:
          ValueError: the arrays cannot be divided into such batches.
        """
        fixed = next((each.shape[0].value for each in self.inputs if each.shape.ndims), None)
        if fixed is None:
            return batch_size
        arrays = in_arrays(x, raw=True)
        if not arrays or not all(isinstance(each, np.ndarray) for each in arrays):
            return batch_size
        if batch_size not in (None, fixed) or len(arrays[0]) % fixed:
            raise ValueError(
                f"Model {self.name} takes batches of {fixed} examples, a multiple in all, "
                f"not {len(arrays[0])} in batches of {batch_size or fixed}"
            )
        return fixed

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

    # Inside

    _graph: Any
    _is_made: bool

    def _own_graph(self) -> Any:
        raise NotImplementedError

    def _made_for(self, x: Any) -> None:
        """Makes the inputs and outputs for arrays, if they are not made yet."""
        raise NotImplementedError

    def _session(self) -> Any:
        with self._own_graph().as_default():
            return backend.get_session()

    def _phase(self, value: bool) -> dict[Any, Any]:
        with self._own_graph().as_default():
            phase = backend.learning_phase()
        return {} if isinstance(phase, bool | int) else {phase: value}

    def _require_told(self) -> None:
        if self._told is None:
            raise RuntimeError("The model must be compiled before it is trained or evaluated: call compile(...)")

    def _compiled(self) -> _Program:
        self._require_told()
        if self._program is None:
            self._check_loss()
            with self._own_graph().as_default():
                self._program = self._make_program()
        return self._program

    def _input_feeds(self, x: Any) -> dict[Any, Any]:
        given = by_output(x, self.input_names, "inputs")
        feeds = {}
        for each, tensor in zip(given, self.inputs, strict=True):
            array = np.asarray(each, tensor.dtype.base_dtype.as_numpy_dtype)
            if not tensor.shape.is_compatible_with(array.shape) and tensor.shape.ndims == array.ndim + 1:
                array = array[..., None]
            if not tensor.shape.is_compatible_with(array.shape):
                raise ValueError(
                    f"Input {tensor.op.name} takes examples of shape {tuple(tensor.shape.as_list()[1:])}, "
                    f"not {array.shape[1:]}"
                )
            feeds[tensor] = array
        return feeds

    def _target_feeds(self, batch: Batch, program: _Program, class_weight: Any) -> dict[Any, Any]:
        every_output = zip(self.output_names, program.targets, program.weights, strict=True)
        wanted = [(name, tensor, weight) for name, tensor, weight in every_output if tensor is not None]
        if not wanted:
            return {}
        if batch.y is None:
            raise ValueError(f"The model has a loss for {[name for name, *_ in wanted]}, but no targets are given")
        names = [name for name, *_ in wanted]
        feeds: dict[Any, Any] = {}
        every = in_arrays(batch.y)
        given = by_output(batch.y, names if isinstance(batch.y, Mapping) or len(every) == len(names) or len(names) == 1
                          else self.output_names, "targets")  # fmt: skip
        weights = by_output(batch.weights, names, "weights", spread=True) if batch.weights is not None else None
        for index, (name, tensor, weight) in enumerate(wanted):
            array = _fitting(np.asarray(given[index], tensor.dtype.as_numpy_dtype), tensor)
            feeds[tensor] = array
            if weights is not None and weights[index] is not None:
                feeds[weight] = np.asarray(weights[index], np.float32)
            if class_weight is not None:
                of_classes = class_weight.get(name, class_weight) if isinstance(class_weight, Mapping) else class_weight
                is_wide = array.ndim > 1 and array.shape[-1] > 1
                classes = array.argmax(-1) if is_wide else array.reshape(len(array), -1)[:, 0]
                own = np.array([of_classes[int(each)] for each in classes], np.float32)
                feeds[weight] = own * feeds[weight] if weight in feeds else own
        return feeds


def by_output(given: Any, names: list[str], what: str, spread: bool = False) -> list[Any]:
    """One value for each name, from a list, a dict or a single value."""
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        if missing and what in ("inputs", "targets", "loss"):
            raise ValueError(f"The {what} lack {missing}; they are {sorted(given)}")
        return [given.get(name) for name in names]
    if len(names) == 1:
        is_one = isinstance(given, list | tuple) and len(given) == 1 and what != "metrics"
        return [given[0]] if is_one and not np.isscalar(given[0]) else [given]
    if spread and not isinstance(given, list | tuple):
        return [given] * len(names)
    if not isinstance(given, list | tuple) or len(given) != len(names):
        raise ValueError(f"The {what} must be a list or a dict, one for each of {names}")
    return list(given)


def only_from(update: Any, own: set[Operation]) -> bool:
    """Whether an operation needs no placeholders but `own`."""
    waiting: list[Operation] = [update.op if isinstance(update, Tensor) else update]
    seen: set[Operation] = set()
    while waiting:
        op = waiting.pop()
        if op in seen or op in own:
            continue
        seen.add(op)
        if op.type == "Placeholder":
            return False
        waiting.extend([*[each.op for each in op.inputs], *op.control_inputs])
    return True


def _weighted_mean(loss: Any, y: Tensor, output: Tensor, weight: Any) -> Tensor:
    values = losses.per_example(loss)(y, output)
    mask = mask_of(output)
    if mask is not None and values.shape.ndims is not None and values.shape.ndims >= (mask.shape.ndims or 0):
        factor = cast(mask, values.dtype)
        while factor.shape.ndims < values.shape.ndims:
            factor = expand_dims(factor, -1)
        values = div_no_nan(values * factor, reduce_mean(factor))
    while values.shape.ndims is not None and values.shape.ndims > 2:
        values = reduce_mean(values, -1)
    if values.shape.ndims == 2:  # a weight for each example stands for all of its numbers
        spread = cond(equal(rank(weight), 1), lambda: expand_dims(weight, -1), lambda: weight)
        return reduce_mean(values * spread)
    return reduce_mean(values * weight)


def _target(output: Tensor, loss: Any) -> Tensor:
    if losses.takes_classes(loss):
        return placeholder(dtypes.int64, output.shape[:-1], name="target")
    known = getattr(loss, "function", loss) in losses._BY_NAME.values()
    rank = output.shape.ndims
    shape = output.shape if known or rank is None else [None] * rank
    return placeholder(output.dtype.base_dtype, shape, name="target")


def _fitting(array: np.ndarray, tensor: Tensor) -> np.ndarray:
    """The targets in the shape of a placeholder."""
    if tensor.shape.ndims is None or tensor.shape.is_compatible_with(array.shape):
        return array
    shape = [len(array) if array.ndim else 1, *[-1 if size is None else size for size in tensor.shape.as_list()[1:]]]
    if array.ndim == tensor.shape.ndims - 1 and shape[-1] in (-1, 1):
        return array[..., None]
    if shape.count(-1) <= 1:
        try:
            return array.reshape(shape)
        except ValueError:
            pass
    message = f"Targets of shape {array.shape[1:]} differ from the model's output shape: {tuple(shape[1:])}"
    raise ValueError(message)


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
