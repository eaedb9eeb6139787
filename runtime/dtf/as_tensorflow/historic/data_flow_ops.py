"""tensorflow.python.ops.data_flow_ops: staging areas, queues, and elements gathered by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dtf.build.ops.staging  # noqa: F401 the static shapes of barriers
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops.staging_area import MapStagingArea, StagingArea
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["Barrier", "MapStagingArea", "StagingArea"]


class Barrier:
    """Elements by key, whose components arrive one by one; complete elements can be taken."""

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        """`types` and `shapes` are of the components.

        Raises:
          TypeError: there are no types.
          ValueError: there is not one shape for each type, or a shape is not fully defined.
        """
        several = isinstance(types, list | tuple)
        self._types = [dtypes.as_dtype(each) for each in (types if several else [types])]
        if not self._types:
            raise TypeError("A barrier needs at least one component type.")
        given = [] if shapes is None else list(shapes) if several else [shapes]
        self._shapes = [TensorShape(each) for each in given]
        if self._shapes and len(self._shapes) != len(self._types):
            raise ValueError(f"Expected one shape for each of {len(self._types)} types, got {len(self._shapes)}.")
        for each in self._shapes:
            if not each.is_fully_defined() or each.num_elements() == 0:
                raise ValueError(f"Shapes of a barrier must be fully defined and not empty, got {each}.")
        self._ref: Tensor = apply_op(
            "Barrier", name, component_types=self._types, shapes=self._shapes, shared_name=shared_name or ""
        )

    @property
    def barrier_ref(self) -> Tensor:
        """The handle."""
        return self._ref

    @property
    def name(self) -> str:
        """The name of its operation."""
        return self._ref.op.name

    def insert_many(self, component_index: int, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Gives one component of the elements with these keys."""
        return apply_op(
            "BarrierInsertMany",
            name or f"{self.name}_BarrierInsertMany",
            handle=self._ref,
            keys=keys,
            values=convert_to_tensor(values, self._types[component_index]),
            component_index=component_index,
        )

    def take_many(
        self, num_elements: Any, allow_small_batch: bool = False, timeout: int | None = None, name: str | None = None
    ) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
        """(when they were inserted, keys, one tensor for each component) of `num_elements` complete elements."""
        indices, keys, values = apply_op(
            "BarrierTakeMany",
            name or f"{self.name}_BarrierTakeMany",
            handle=self._ref,
            num_elements=num_elements,
            component_types=self._types,
            allow_small_batch=allow_small_batch,
            timeout_ms=-1 if timeout is None else timeout,
        )
        values = list(values) if isinstance(values, list | tuple) else [values]
        count = None if allow_small_batch else indices.shape[0]
        for value, shape in zip(values, self._shapes, strict=False):
            value.set_shape(TensorShape([count]).concatenate(shape))
        return indices, keys, values

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Refuses new keys; with `cancel_pending_enqueues` also the missing components of those that are there."""
        return apply_op(
            "BarrierClose",
            name or f"{self.name}_BarrierClose",
            handle=self._ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
        )

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many elements are complete."""
        return apply_op("BarrierReadySize", name or f"{self.name}_BarrierReadySize", handle=self._ref)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack components."""
        return apply_op("BarrierIncompleteSize", name or f"{self.name}_BarrierIncompleteSize", handle=self._ref)
