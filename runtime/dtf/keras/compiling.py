"""How models are compiled: the loss, the metrics and the training step as operations of the model's graph.

Owns the arguments of `compile` and the program made of them. Losses are weighted by `sample_weight` and
`class_weight`, and averaged over the examples. `feeds` gives the arrays of a step, `training` runs steps.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/Model
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from dtf.keras.metrics import named
from dtf.wire import dtypes

__all__ = ["Compiles", "Program", "Told", "by_output", "only_from"]


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
class Program:
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


class Compiles:
    """The methods of models that are compiled."""

    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    stop_training: bool
    history: Any
    _told: Told | None
    _program: Program | None
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

    def _make_program(self) -> Program:
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
        return Program(targets, weights, figures, kept, reset, list(self.trainable_weights))

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

    def _make_train_op(self, program: Program) -> None:
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

    def _compiled(self) -> Program:
        self._require_told()
        if self._program is None:
            self._check_loss()
            with self._own_graph().as_default():
                self._program = self._make_program()
        return self._program


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
