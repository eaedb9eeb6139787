"""`tf.CriticalSection`: runs one of its functions at a time, over all steps of a task.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/CriticalSection
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build import nest
from dtf.build.apply import apply_op
from dtf.build.default_graph import colocate_with, control_dependencies, get_default_graph, name_scope
from dtf.build.tensor import Operation, Tensor

__all__ = ["CriticalSection"]


class CriticalSection:
    """A mutex that `execute` holds while a function runs.

    Args:
      name: the name of the mutex.
      shared_name: the name by which other graphs of the task find it.
      critical_section_def, import_scope: not supported.

    Raises:
      ValueError: a definition is given.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None or import_scope is not None:
            raise ValueError("A CriticalSection cannot be made from a definition; give name and shared_name.")
        with name_scope(name, "CriticalSection") as scope:
            container = shared_name or scope.rstrip("/")
            self._handle = apply_op("MutexV2", scope, shared_name=container, container="")

    @property
    def name(self) -> str:
        """The name of the mutex."""
        return self._handle.op.name

    def execute(
        self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None
    ) -> Any:
        """The result of `fn`; its operations run while they hold the mutex alone.

        Args:
          fn: a function without arguments that builds operations.
          exclusive_resource_access: accepted.
          name: the name scope.

        Returns:
          Tensors or operations in the structure that `fn` returns.
        """
        del exclusive_resource_access
        with name_scope(name, "critical_section_execute"):
            with colocate_with(self._handle):
                lock = apply_op("MutexLock", mutex=self._handle)
            known = set(get_default_graph().get_operations())
            with control_dependencies([lock.op]):
                result = fn()
            inside = [op for op in get_default_graph().get_operations() if op not in known]
            with control_dependencies(inside), colocate_with(self._handle):
                done = apply_op("ConsumeMutexLock", mutex_lock=lock)
            with control_dependencies([done]):
                return nest.map_structure(_after, result) if nest.is_nested(result) else _after(result)


def _after(value: Any) -> Any:
    """`value`, available when the mutex is free again."""
    if isinstance(value, Tensor):
        return apply_op("Identity", input=value)
    if isinstance(value, Operation):
        return apply_op("NoOp")
    return value
