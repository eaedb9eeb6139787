"""`tf.layers.Layer`: an object that makes its variables when it is first called, and applies them at every call.

Owns the naming of layers and of their variable scopes, and the lists of a layer's variables, losses and updates.
`layer_function` makes the function form of a layer. The other modules of this package define the layers.

    class Scale(tf.layers.Layer):
        def build(self, input_shape):
            self.factor = self.add_variable("factor", [input_shape[-1]], initializer=tf.ones_initializer())
            super().build(input_shape)

        def call(self, inputs):
            return inputs * self.factor

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/Layer
"""

from __future__ import annotations

import copy
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build import nest
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph, graph_of, name_scope
from dtf.build.graph import Graph, GraphKeys
from dtf.build.ops import array as array_ops
from dtf.build.ops import math as math_ops
from dtf.build.tensor import Operation, Tensor
from dtf.build.variable_scope import VariableScope, get_variable, variable_scope
from dtf.build.variables import Variable, VariableAggregation, VariableSynchronization
from dtf.layers.inspection import Inspected
from dtf.wire import dtypes
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = ["InputSpec", "Layer", "layer_function"]

_NAMES_KEY = ("__layer_names",)


@dataclass(frozen=True)
class InputSpec:
    """The requirements on a layer's input; None means no requirement.

    Attributes:
      dtype, shape, ndim, max_ndim, min_ndim: of the input.
      axes: dimension -> its size.
      allow_last_axis_squeeze: whether a last dimension of size 1 may be missing or in excess.
      name: the name of the input.
      optional: whether the input may be None.
    """

    dtype: Any = None
    shape: Any = None
    ndim: int | None = None
    max_ndim: int | None = None
    min_ndim: int | None = None
    axes: Mapping[int, int | None] | None = None
    allow_last_axis_squeeze: bool = False
    name: str | None = None
    optional: bool = False

    def get_config(self) -> dict[str, Any]:
        """The requirements by name; `from_config` makes another such specification of them."""
        return {key: getattr(self, key) for key in ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec:
        """The specification of a dictionary that `get_config` gave."""
        return cls(**config)

    def check(self, tensor: Tensor, layer: str) -> None:
        """Raises ValueError where the tensor is known to be another one than `layer` takes."""
        complaint = self._complaint(tensor)
        if complaint:
            raise ValueError(f"Input {tensor.name} of layer {layer} is incompatible with the layer: {complaint}")

    def _complaint(self, tensor: Tensor) -> str | None:
        rank = tensor.shape.ndims
        if self.dtype is not None and tensor.dtype.base_dtype != as_dtype(self.dtype):
            return f"expected dtype={as_dtype(self.dtype).name}, found dtype={tensor.dtype.base_dtype.name}"
        if rank is None:
            return None
        if self.ndim is not None and rank != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={rank}. Full shape received: {tensor.shape}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={rank}. Full shape received: {tensor.shape}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={rank}. Full shape received: {tensor.shape}"
        for axis, size in (self.axes or {}).items():
            found = tensor.shape[axis].value
            if None not in (size, found) and found != size:
                return f"expected axis {axis} of the input shape to be {size}, found shape {tensor.shape}"
        if self.shape is not None and not tensor.shape.is_compatible_with(self.shape):
            return f"expected shape={TensorShape(self.shape)}, found shape={tensor.shape}"
        return None


class Layer(Inspected):
    """Variables, and the computation with them. Subclasses write `build` and `call`.

    Attributes:
      built: whether the variables are made.
      trainable: whether the variables are trainable.
      input_spec: an InputSpec, or a list of them for a list of inputs, that is checked at each call.
      activity_regularizer: a function from an output to a loss, whose mean over the batch is added at each call.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        activity_regularizer: Any = None,
        _scope: Any = None,
        _reuse: Any = None,
    ) -> None:
        """
        Args:
          trainable: whether its variables go to TRAINABLE_VARIABLES.
          name: the layer's name; made unique, also its variables' scope. By default the class name in snake case.
          dtype: of its variables; by default the first input's dtype.
        """
        self.trainable = trainable
        self.built = False
        self.input_spec = None
        self.activity_regularizer = activity_regularizer
        self._base_name = name or _snake_case(type(self).__name__)
        self._name = name or _numbered(self._base_name)
        self._dtype: DType | None = None if dtype is None else as_dtype(dtype).base_dtype
        self._graph: Graph | None = None
        self._reuse = _reuse
        self._scope: VariableScope | None = None
        self._own_trainable: list[Variable] = []
        self._own_fixed: list[Variable] = []
        # Added losses and updates, each with whether it depends on an input.
        self._own_losses: list[tuple[Tensor, bool]] = []
        self._own_updates: list[tuple[Any, bool]] = []
        if _scope is not None:
            with variable_scope(_scope) as self._scope:
                pass

    @property
    def name(self) -> str:
        """The name that was given; by default the class's with a number."""
        return self._name

    @property
    def scope_name(self) -> str:
        """The name of the variable scope.

        Raises:
          ValueError: the layer was not called yet, which opens the scope.
        """
        if self._scope is None:
            raise ValueError(f"The scope of layer {self._name} is opened by its first call, which was not yet.")
        return self._scope.name

    @property
    def dtype(self) -> DType | None:
        """The dtype of the variables; None before the first call if none was given (float32, if it is built then)."""
        return self._dtype

    @property
    def graph(self) -> Graph | None:
        """The graph it was first called in."""
        return self._graph

    @property
    def trainable_weights(self) -> list[Variable]:
        """The trainable variables; variables of layers that it calls belong to those layers."""
        return list(self._own_trainable) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The other variables."""
        return list(self._own_fixed) if self.trainable else [*self._own_trainable, *self._own_fixed]

    @property
    def weights(self) -> list[Variable]:
        """All variables, the trainable ones first."""
        return [*self.trainable_weights, *self.non_trainable_weights]

    @property
    def trainable_variables(self) -> list[Variable]:
        """`trainable_weights`."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """`non_trainable_weights`."""
        return self.non_trainable_weights

    @property
    def variables(self) -> list[Variable]:
        """`weights`."""
        return self.weights

    @property
    def losses(self) -> list[Tensor]:
        """The regularization losses, and the losses that were added."""
        return [loss for loss, _ in self._own_losses]

    @property
    def updates(self) -> list[Any]:
        """The operations to run in each step, such as updates of moving averages."""
        return [update for update, _ in self._own_updates]

    def get_losses_for(self, inputs: Any) -> list[Tensor]:
        """The losses that depend on these inputs; with None those that depend on no input."""
        return _added_for(self._own_losses, inputs)

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The updates that depend on these inputs; with None those that depend on no input."""
        return _added_for(self._own_updates, inputs)

    def count_params(self) -> int:
        """The number of numbers in all variables.

        Raises:
          ValueError: they are not made yet.
        """
        if not self.built:
            raise ValueError(f"Layer {self._name} has no variables before it is built: call it on something first.")
        return sum(each.shape.num_elements() or 0 for each in self.weights)

    def build(self, input_shape: Any) -> None:
        """Makes the variables. `input_shape`: a TensorShape, or a structure of them like the inputs."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The computation of the layer; its variables exist."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The static shapes of outputs for inputs of a shape, batch included, or of a list of shapes.

        A copy of the layer is called in a graph of its own; the layer does not change.
        """
        copied = copy.copy(self)
        copied._graph, copied._scope, copied._reuse, copied.built = None, None, None, False
        copied._calls = []
        copied._own_trainable, copied._own_fixed, copied._own_losses, copied._own_updates = [], [], [], []
        with Graph().as_default():
            dtype = self._dtype or dtypes.float32
            if isinstance(input_shape, list) and any(
                isinstance(each, TensorShape | list | tuple) for each in input_shape
            ):
                inputs: Any = [array_ops.placeholder(dtype, each) for each in input_shape]
            else:
                inputs = array_ops.placeholder(dtype, input_shape)
            return _shapes(copied(inputs))

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Builds if that is to be done, and calls.

        Args:
          inputs: a value that converts to a tensor, or a structure of values.
          args, kwargs: go to `call`; but `scope` is the variable scope for the first call, or the name of one.

        Raises:
          ValueError: an input is not what `input_spec` says, or of another graph than the layer.
        """
        with graph_of(nest.flatten(inputs)).as_default():
            inputs = _converted(inputs)
            self._take_graph()
            self._open_scope(kwargs.pop("scope", None))
            with self._inside() as current, name_scope(current.original_name_scope or None):
                self._check_inputs(inputs)
                if not self.built:
                    if self._dtype is None:
                        self._dtype = _floating(nest.flatten(inputs))
                    self.build(_shapes(inputs))
                    self.built = True
                if "scope" in inspect.signature(self.call).parameters:
                    kwargs["scope"] = current
                outputs = self.call(inputs, *args, **kwargs)
                if self.activity_regularizer is not None:
                    self._regularize_activity(inputs, outputs)
                self._record_call(inputs, outputs)
                return outputs

    apply = __call__

    def add_weight(
        self,
        name: str,
        shape: Any = None,
        dtype: DTypeLike | None = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        partitioner: Any = None,
    ) -> Any:
        """A variable "<scope>/<name>" of this layer; the arguments are as in `tf.get_variable`.

        trainable: whether training changes it; yes unless `synchronization` is ON_READ.

        Returns:
          A Variable, or a PartitionedVariable.
        """
        self._take_graph()
        self._open_scope(None)
        dtype = self._dtype if dtype is None else dtype
        if trainable is None:
            trainable = synchronization is not VariableSynchronization.ON_READ
        with self._inside() as scope:
            regularizer = regularizer or scope.regularizer
            variable = get_variable(
                name,
                shape,
                dtypes.float32 if dtype is None else dtype,
                initializer,
                self._recorded(regularizer) if regularizer else None,
                trainable and self.trainable,
                constraint=constraint,
                partitioner=partitioner,
                use_resource=use_resource,
                synchronization=synchronization,
                aggregation=aggregation,
            )
        self._track(variable, trainable)
        return variable

    add_variable = add_weight

    def add_loss(self, losses: Any, inputs: TensorLike | None = None) -> None:
        """Adds losses to this layer and to REGULARIZATION_LOSSES; `inputs` are the tensors that they depend on, if
        any."""
        self._add(losses, inputs, self._own_losses, GraphKeys.REGULARIZATION_LOSSES)

    def add_update(self, updates: TensorLike, inputs: TensorLike | None = None) -> None:
        """Adds operations to this layer and to UPDATE_OPS; `inputs` are the tensors that they depend on, if any."""
        self._add(updates, inputs, self._own_updates, GraphKeys.UPDATE_OPS)

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        """A layer with the same settings; graphs and their objects, such as variables, are shared."""
        for each in nest.flatten(list(vars(self).values())):
            if isinstance(each, Graph | VariableScope | Variable | Tensor | Operation):
                memo[id(each)] = each
        for loss, _ in [*self._own_losses, *self._own_updates]:
            memo[id(loss)] = loss
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        vars(copied).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        return copied

    # Scopes

    def _take_graph(self) -> None:
        graph = get_default_graph()
        if graph.building_function:
            return
        if self._graph is None:
            self._graph = graph
        elif self._graph is not graph:
            raise ValueError(f"Layer {self._name} belongs to another graph than its inputs.")

    def _open_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        if scope is None and self._reuse:
            scope = self._base_name
        with variable_scope(scope, default_name=self._base_name) as self._scope:
            pass

    def _inside(self) -> AbstractContextManager[VariableScope]:
        return variable_scope(self._scope, reuse=True if self.built else self._reuse, auxiliary_name_scope=False)

    # Variables, losses, updates

    def _track(self, variable: Any, trainable: bool) -> None:
        kept = self._own_trainable if trainable else self._own_fixed
        parts = [variable] if isinstance(variable, Variable) else list(variable)
        kept.extend(part for part in parts if not any(part is each for each in kept))

    def _recorded(self, regularizer: Any) -> Callable[[Any], Any]:
        def regularize(variable: Any) -> Any:
            loss = regularizer(variable)
            if loss is not None:
                self._own_losses.append((loss, False))
            return loss

        return regularize

    def _regularize_activity(self, inputs: Any, outputs: Any) -> None:
        for output in nest.flatten(outputs):
            with name_scope("ActivityRegularizer"):
                loss = self.activity_regularizer(output)
                loss = loss / math_ops.cast(array_ops.shape(output)[0], loss.dtype)
            self.add_loss(loss, inputs)

    def _add(self, added: Any, inputs: Any, kept: list[tuple[Any, bool]], collection: str) -> None:
        members = get_default_graph().get_collection_ref(collection)
        for each in added if isinstance(added, list | tuple) else [added]:
            made = each() if callable(each) and not isinstance(each, Tensor) else each
            if made is None:
                continue
            kept.append((made, inputs is not None))
            if not any(made is member for member in members):
                members.append(made)

    def _check_inputs(self, inputs: Any) -> None:
        if self.input_spec is None:
            return
        specs, tensors = nest.flatten(self.input_spec), nest.flatten(inputs)
        if len(specs) != len(tensors):
            raise ValueError(f"Layer {self._name} takes {len(specs)} inputs, but got {len(tensors)}: {inputs}")
        for spec, tensor in zip(specs, tensors, strict=True):
            if spec is not None and isinstance(tensor, Tensor):
                spec.check(tensor, self._name)


def layer_function(layer: type[Layer], name: str, scoped: bool = True) -> Callable[..., Tensor]:
    """The function form of a layer class: (inputs, *the class's arguments, and `reuse` if `scoped`).

    A scoped one takes the variables of the scope `name` that is given to it; others only make a new scope.
    """
    # Of __init__: what Python finds for a class that has a __new__, too, depends on Python's version.
    _, *taken = inspect.signature(layer.__init__).parameters.values()
    parameters = [each for each in taken if each.kind is not each.VAR_KEYWORD]
    either_way = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters.insert(0, inspect.Parameter("inputs", either_way, annotation="TensorLike"))
    if scoped:
        parameters.append(inspect.Parameter("reuse", either_way, default=None, annotation="bool | None"))
    signature = inspect.Signature(parameters, return_annotation="Tensor")

    def function(*args: Any, **kwargs: Any) -> Tensor:
        given = signature.bind(*args, **kwargs).arguments
        inputs, reuse = given.pop("inputs"), given.pop("reuse", None)
        if scoped:
            given.update(_scope=given.get("name"), _reuse=reuse)
        return layer(**given)(inputs)

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature  # type: ignore[attr-defined]
    arguments, _, rest = (inspect.getdoc(layer.__init__) or "").partition("Args:\n")
    own = rest if rest else "  the arguments of the class.\n"
    function.__doc__ = (
        f"{(layer.__doc__ or '').strip()}\n\nMakes a layer `{layer.__name__}` and calls it.\n\n"
        f"Args:\n  inputs: the tensor that the layer is called on.\n{own.rstrip()}\n"
        + ("  reuse: whether to take the variables of the layer of this name that exists.\n" if scoped else "")
        + "\nReturns:\n  The output of the layer.\n\n"
        f"Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/{name}"
    )
    return function


def _converted(inputs: Any) -> Any:
    """The tensors of a structure; nested lists of numbers are one tensor.

    Raises:
      TypeError: a value is None.
    """
    leaves = nest.flatten(inputs)
    if any(each is None for each in leaves):
        raise TypeError(f"Inputs to a layer should be tensors. Got {inputs!r}")
    if isinstance(inputs, list) and leaves and all(isinstance(each, int | float) for each in leaves):
        return convert_to_tensor(inputs)
    return nest.map_structure(_tensor, inputs)


def _tensor(value: Any) -> Any:
    return value if isinstance(value, Tensor) or hasattr(value, "indices") else convert_to_tensor(value)


def _floating(tensors: Iterable[Any]) -> DType | None:
    first: DType | None = None
    for tensor in tensors:
        dtype = tensor.dtype.base_dtype
        if dtype.is_floating or dtype.is_complex:
            return dtype
        first = first or dtype
    return first


def _shapes(inputs: Any) -> Any:
    return nest.map_structure(lambda tensor: tensor.get_shape(), inputs)


def _added_for(added: list[tuple[Any, bool]], inputs: Any) -> list[Any]:
    if inputs is None:
        return [each for each, conditional in added if not conditional]
    wanted = {tensor.op for tensor in map(_tensor, nest.flatten(inputs))}
    return [each for each, conditional in added if conditional and _comes_from(each, wanted)]


def _comes_from(made: Any, wanted: set[Operation]) -> bool:
    waiting = [made if isinstance(made, Operation) else made.op]
    seen = set(waiting)
    while waiting:
        op = waiting.pop()
        if op in wanted:
            return True
        before = {tensor.op for tensor in op.inputs}.union(op.control_inputs) - seen
        seen |= before
        waiting.extend(before)
    return False


def _snake_case(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()
    # A name that begins with an underscore is no scope's.
    return spaced if not spaced.startswith("_") else "private" + spaced


def _numbered(base: str) -> str:
    """The next of base_1, base_2, ... in this graph."""
    members = get_default_graph().get_collection_ref(_NAMES_KEY)
    if not members:
        members.append(Counter())
    members[0][base] += 1
    return f"{base}_{members[0][base]}"
