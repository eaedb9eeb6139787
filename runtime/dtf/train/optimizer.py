"""The optimizer: from a loss to the op that makes it smaller.

`minimize` is `compute_gradients`, then `apply_gradients`. A subclass defines the ops that `apply_gradients` adds for
a variable:

    _create_slots(var_list)        variables to keep beside each variable (`_zeros_slot`, `_get_or_make_slot`)
    _prepare()                     tensors of the hyperparameters, made once per apply_gradients
    _apply_dense(grad, var)        the update of a variable held by reference, by a Tensor
    _apply_sparse(grad, var)       ... by IndexedSlices whose indices are unique
    _resource_apply_dense(grad, var), _resource_apply_sparse(grad, var, indices)    the same, for one held by handle
    _finish(update_ops, name)      what groups the updates

`RuleOptimizer` covers the common case: one op updates a variable and its slots. The optimizers in the other modules
of this folder are its subclasses.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Optimizer
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, control_dependencies, get_default_graph, init_scope
from dtf.build.default_graph import name_scope as in_name_scope
from dtf.build.gradients import gradients
from dtf.build.graph import GraphKeys
from dtf.build.ops import array as array_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import ordering, searching, segment
from dtf.build.ops import state as state_ops
from dtf.build.partitioned import PartitionedVariable
from dtf.build.sparse import IndexedSlices, convert_to_tensor_or_indexed_slices
from dtf.build.tensor import Operation, Tensor
from dtf.build.variable_collections import trainable_variables
from dtf.build.variables import Variable
from dtf.train import slot_creator
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["Optimizer"]


class Optimizer:
    """Base of all optimizers; the module's docstring lists the methods that a subclass defines.

    Attributes:
      GATE_NONE, GATE_OP, GATE_GRAPH: values of `gate_gradients`. They say whether an update may start before all
        gradients of the same op, or of the whole graph, are computed.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        """`name` is the scope of the updates and the last part of the slots' names."""
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        # Slot name -> variable key -> slot
        self._slots: dict[str, dict[Any, Any]] = {}
        # (name, graph) -> variable that belongs to no other one
        self._non_slot_dict: dict[tuple[str, Any], Any] = {}

    def get_name(self) -> str:
        """The name given to the constructor."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An op that makes one step towards a smaller `loss`, and adds 1 to `global_step` if that is given.

        Args:
          loss: the tensor to minimize.
          global_step: a variable.
          var_list: the variables to change; all trainable ones by default.
          gate_gradients: GATE_NONE, GATE_OP or GATE_GRAPH.
          aggregation_method, colocate_gradients_with_ops: see `tf.gradients`.
          name: the name of the op; by default the optimizer's name.
          grad_loss: the gradient of `loss` itself; ones by default.

        Raises:
          ValueError: no variable has a gradient.
        """
        grads_and_vars = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        if all(grad is None for grad, _ in grads_and_vars):
            names = [str(variable) for _, variable in grads_and_vars]
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                f"between variables {names} and loss {loss}."
            )
        return self.apply_gradients(grads_and_vars, global_step, name)

    def compute_gradients(
        self,
        loss: TensorLike,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Pairs (gradient, variable); the gradient is a Tensor, IndexedSlices, or None. Arguments as of `minimize`.

        Raises:
          TypeError: `var_list` holds an object that is not a variable.
          ValueError: an argument is not allowed, or there are no variables.
        """
        if callable(loss):
            loss = loss()
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH. "
                f"Not {gate_gradients}"
            )
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        variables = trainable_variables() if var_list is None else _flat(var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        made = gradients(
            loss,
            [_target(variable) for variable in variables],
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == Optimizer.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == Optimizer.GATE_GRAPH:
            made = ordering.tuple(made)
        pairs = list(zip(made, variables, strict=True))
        self._assert_valid_dtypes([variable for grad, variable in pairs if grad is not None])
        return pairs

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An op that updates the variables with the gradients that `compute_gradients` gave, changed or not.

        Raises:
          TypeError: a gradient is not a tensor, or a variable cannot be updated.
          ValueError: all gradients are None.
        """
        pairs = [(_gradient(grad), variable) for grad, variable in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        updated = [(grad, variable) for grad, variable in pairs if grad is not None]
        if not updated:
            names = [str(variable) for _, variable in pairs]
            raise ValueError(f"No gradients provided for any variable: {names}.")
        with init_scope():
            self._create_slots([variable for _, variable in updated])
        with in_name_scope(name, self._name) as scope:
            self._prepare()
            update_ops = []
            for grad, variable in updated:
                with in_name_scope(f"update_{variable.op.name}"), colocate_with(variable):
                    update_ops.append(self._update(grad, variable))
            if global_step is None:
                train_op = self._finish(update_ops, scope)
            else:
                with control_dependencies([self._finish(update_ops, "update")]), colocate_with(global_step):
                    if isinstance(global_step, Tensor):  # the reference tensor of a variable found by its name
                        train_op = state_ops.assign_add(global_step, 1, name=scope)
                    else:
                        train_op = global_step.assign_add(1, name=scope, read_value=False)
        if isinstance(train_op, Tensor):
            train_op = train_op.op
        collection = get_default_graph().get_collection_ref(GraphKeys.TRAIN_OP)
        if train_op not in collection:
            collection.append(train_op)
        return train_op

    # Slots

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot called `name` of a variable, or None."""
        slots = self._slots.get(name)
        return None if slots is None else slots.get(_key(var))

    def get_slot_names(self) -> list[str]:
        """The names that `get_slot` takes, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Any]:
        """All variables that the optimizer made in the default graph, sorted by name."""
        graph = get_default_graph()
        made = [*self._non_slot_variables(), *(slot for slots in self._slots.values() for slot in slots.values())]
        return sorted((variable for variable in made if variable.graph is graph), key=lambda variable: variable.name)

    # Methods that a subclass overrides

    def _create_slots(self, var_list: list[Any]) -> None:
        """Makes the slots of these variables unless they exist."""

    def _prepare(self) -> None:
        """Makes the tensors that all updates of one apply_gradients share."""

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not update variables held by reference.")

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not take sparse gradients.")

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not update variables held by handle.")

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not take sparse gradients.")

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        """Sums the slices of equal indices; override where an update may see an index twice."""
        values, indices = _deduplicated(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        """The same, for a variable held by handle."""
        values, unique = _deduplicated(grad, indices)
        return self._resource_apply_sparse(values, handle, unique)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        """Groups the updates under that name."""
        return ordering.group(*update_ops, name=name_scope)

    def _valid_dtypes(self) -> set[dtypes.DType]:
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    # Methods that a subclass calls

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        """Finds or makes a slot of the variable's shape and dtype, initialized with zeros."""
        return self._slot(var, slot_name, lambda: slot_creator.create_zeros_slot(var, op_name))

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        """Finds or makes a slot initialized with the tensor `val`; `op_name` is the last part of its name."""
        return self._slot(var, slot_name, lambda: slot_creator.create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        """Finds or makes a slot of this shape and dtype whose value an initializer makes."""
        return self._slot(
            var,
            slot_name,
            lambda: slot_creator.create_slot_with_initializer(var, initializer, shape, dtype, op_name),
        )

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _slot(self, var: Any, slot_name: str, make: Callable[[], Any]) -> Any:
        slots = self._slot_dict(slot_name)
        key = _key(var)
        if key not in slots:
            slots[key] = make()
        return slots[key]

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        """Finds or makes a variable that belongs to no other one, on the device of `colocate_with`."""
        key = (name, colocate_with.graph)
        if key not in self._non_slot_dict:
            with get_default_graph().colocate_with(colocate_with):
                self._non_slot_dict[key] = Variable(
                    initial_value, name=name, trainable=False, use_resource=_is_resource(colocate_with)
                )
        return self._non_slot_dict[key]

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Any:
        return self._non_slot_dict.get((name, graph or get_default_graph()))

    def _non_slot_variables(self) -> list[Any]:
        return list(self._non_slot_dict.values())

    def _call_if_callable(self, param: Any) -> Any:
        """Hyperparameters may be functions without arguments."""
        return param() if callable(param) else param

    # From a gradient and a variable to one of the _apply methods

    def _update(self, grad: Any, var: Any) -> Any:
        sparse = isinstance(grad, IndexedSlices)
        constraint = getattr(var, "constraint", None)
        if sparse and constraint is not None:
            raise RuntimeError("Cannot use a constraint function on a sparse variable.")
        if not isinstance(var, Variable):
            raise NotImplementedError(f"Trying to update a Tensor {var}")
        if _is_resource(var):
            if sparse:
                return self._resource_apply_sparse_duplicate_indices(grad.values, var, grad.indices)
            update = self._resource_apply_dense(grad, var)
        else:
            if sparse:
                return self._apply_sparse_duplicate_indices(grad, var)
            update = self._apply_dense(grad, var)
        if constraint is None:
            return update
        with control_dependencies([update]):
            return var.assign(constraint(var))

    def _assert_valid_dtypes(self, tensors: Iterable[Any]) -> None:
        valid = self._valid_dtypes()
        for tensor in tensors:
            dtype = tensor.dtype.base_dtype
            if dtype not in valid:
                names = [each.name for each in sorted(valid, key=lambda each: each.name)]
                raise ValueError(f"Invalid type {dtype!r} for {tensor.name}, expected: {names}.")


class RuleOptimizer(Optimizer):
    """An optimizer that updates by one op of the runtime: Apply<rule>, SparseApply<rule> and so on.

    A subclass defines `_rule(var)`: the rule's name and its op's further arguments, named as in the op's contract.
    Hyperparameters are `_scalar(name, var)` of those it registered.
    """

    def __init__(self, use_locking: bool, name: str, hyperparameters: Mapping[str, Any]) -> None:
        """`hyperparameters`: names of the tensors to make of them -> numbers, tensors or functions that give one."""
        super().__init__(use_locking, name)
        self._hyperparameters = dict(hyperparameters)
        self._tensors: dict[str, Tensor] = {}

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError

    def _prepare(self) -> None:
        self._tensors = {
            name: convert_to_tensor(self._call_if_callable(value), name=name)
            for name, value in self._hyperparameters.items()
        }

    def _scalar(self, name: str, var: Any) -> Tensor:
        """A hyperparameter in the dtype of the variable."""
        return math_ops.cast(self._tensors[name], var.dtype.base_dtype)

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply_rule("Apply", var, grad).op

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._apply_rule("SparseApply", var, grad.values, indices=grad.indices).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply_rule("ResourceApply", handle, grad)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._apply_rule("ResourceSparseApply", handle, grad, indices=indices)

    def _apply_rule(self, form: str, var: Any, grad: Tensor, **indices: Tensor) -> Any:
        rule, arguments = self._rule(var)
        by_handle = _is_resource(var)

        def held(argument: Any) -> Any:
            return argument.handle if by_handle and isinstance(argument, Variable) else argument

        # The two rules of plain gradient descent call the gradient of a dense update delta.
        grad_name = "delta" if rule.endswith("GradientDescent") and not indices else "grad"
        return apply_op(
            form + rule,
            None,
            var=held(var),
            **{name: held(value) for name, value in arguments.items()},
            **{grad_name: grad},
            **indices,
            use_locking=self._use_locking,
        )


def _target(variable: Any) -> Any:
    """The variable (or its value) with respect to which the gradient is computed."""
    if isinstance(variable, Variable):
        return variable.handle if _is_resource(variable) else variable._ref()
    if isinstance(variable, Tensor):
        return variable
    raise TypeError(f"Argument is not a variable: {variable!r}")


def _is_resource(variable: Any) -> bool:
    return isinstance(variable, Variable) and variable.op.type == "VarHandleOp"


def _gradient(grad: Any) -> Any:
    if grad is None:
        return None
    try:
        return convert_to_tensor_or_indexed_slices(grad)
    except TypeError:
        raise TypeError(f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {grad}") from None


def _flat(variables: Any) -> list[Any]:
    """The variables of nested lists; a partitioned variable is the list of its pieces."""
    if isinstance(variables, list | tuple | PartitionedVariable):
        return [each for item in variables for each in _flat(item)]
    return [variables]


def _key(variable: Any) -> Any:
    return variable.graph, variable.op.name


def _deduplicated(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """(sums of the slices of equal indices, the unique indices)."""
    unique, positions = searching.unique(indices)
    return segment.unsorted_segment_sum(values, positions, array_ops.shape(unique)[0]), unique

