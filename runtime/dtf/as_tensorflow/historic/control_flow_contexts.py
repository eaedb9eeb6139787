"""TensorFlow's names of the control flow contexts, put on dtf's classes when this module is imported.

Owns the spelling, and `ControlFlowContext`, the base of contexts that a program defines itself.
"""

from __future__ import annotations

import abc
from typing import Any

from dtf.as_tensorflow.historic.ops import prepend_name_scope
from dtf.build.default_graph import get_default_graph
from dtf.build.ops import control_flow_protos as protos
from dtf.build.ops.control_flow_context import CondContext, WhileContext
from dtf.wire.pb import control_flow_pb2

__all__ = ["ControlFlowContext", "XLAControlFlowContext", "from_control_flow_context_def"]


class _Names:
    """The names that both kinds of contexts have."""

    outer: Any
    values: set[str]
    external: dict[str, Any]
    nested: list[Any]

    @property
    def outer_context(self) -> Any:
        """The context around this one, or None."""
        return self.outer

    @property
    def _outer_context(self) -> Any:
        return self.outer

    @property
    def external_values(self) -> dict[str, Any]:
        """The names of values from outside -> their forms inside."""
        return self.external

    @property
    def _external_values(self) -> dict[str, Any]:
        return self.external

    @property
    def _values(self) -> set[str]:
        return self.values

    @property
    def _nested_contexts(self) -> list[Any]:
        return self.nested

    def AddName(self, name: str) -> None:  # noqa: N802
        """Makes a value of this name one of the context."""
        self.values.add(name)

    def IsWhileContext(self) -> bool:  # noqa: N802
        """Whether this is a loop."""
        return isinstance(self, WhileContext)

    def IsCondContext(self) -> bool:  # noqa: N802
        """Whether this is a branch."""
        return isinstance(self, CondContext)

    def IsXLAContext(self) -> bool:  # noqa: N802
        """False: graphs are not compiled."""
        return False


def _put_names_on(kind: Any, to_proto: Any, from_proto: Any) -> None:
    for name, value in vars(_Names).items():
        if isinstance(value, property) or callable(value) and not name.startswith("__"):
            setattr(kind, name, value)
    kind.Enter, kind.Exit, kind.AddValue, kind.AddOp = kind.enter, kind.exit, kind.add_value, kind.add_op
    kind.AddInnerOp, kind.GetControlPivot = kind.add_op, kind.control_pivot
    kind.GetWhileContext, kind.ExitResult = kind.while_context, getattr(kind, "exit_result", None)
    kind.to_proto, kind.from_proto = to_proto, staticmethod(from_proto)


def _definition(context: Any, context_def: Any, export_scope: str | None = None) -> None:
    field = context_def.cond_ctxt if isinstance(context, CondContext) else context_def.while_ctxt
    field.CopyFrom(context.to_proto(export_scope))


for _kind in (CondContext, WhileContext):
    _is_branch = _kind is CondContext
    _put_names_on(
        _kind,
        protos.cond_to_proto if _is_branch else protos.while_to_proto,
        protos.cond_from_proto if _is_branch else protos.while_from_proto,
    )
    setattr(_kind, "to_control_flow_context_def", _definition)  # noqa: B010
CondContext.back_prop = property(  # type: ignore[attr-defined]
    lambda self: bool(self.while_context() and self.while_context().back_prop)
)
CondContext.BuildCondBranch = CondContext.build_branch  # type: ignore[attr-defined]
WhileContext.BuildLoop = WhileContext.build_loop  # type: ignore[attr-defined]


def from_control_flow_context_def(context_def: Any, import_scope: str | None = None) -> Any:
    """The context of a ControlFlowContextDef.

    Raises:
      NotImplementedError: it is neither a branch nor a loop.
    """
    if context_def.HasField("cond_ctxt"):
        return protos.cond_from_proto(context_def.cond_ctxt, import_scope)
    if context_def.HasField("while_ctxt"):
        return protos.while_from_proto(context_def.while_ctxt, import_scope)
    raise NotImplementedError(f"Unknown ControlFlowContextDef field: {context_def.WhichOneof('ctxt')}")


class ControlFlowContext(abc.ABC):
    """The base of contexts that a program defines; it takes operations and changes nothing.

    Args:
      values_def: a ValuesDef with the context's values.
      import_scope: the name scope of these values.
    """

    def __init__(self, values_def: Any = None, import_scope: str | None = None) -> None:
        self._nested_contexts: list[Any] = []
        self._outer_context = get_default_graph()._get_control_flow_context()
        self._around: list[Any] = []
        self._values: set[str] = set()
        self._external_values: dict[str, Any] = {}
        self.name = type(self).__name__
        if self._outer_context is not None and hasattr(self._outer_context, "nested"):
            self._outer_context.nested.append(self)
        if values_def is not None:
            find = get_default_graph().as_graph_element
            self._values = {prepend_name_scope(each, import_scope) for each in values_def.values}
            for key, value in values_def.external_values.items():
                self._external_values[prepend_name_scope(key, import_scope)] = find(
                    prepend_name_scope(value, import_scope)
                )

    @property
    def outer_context(self) -> Any:
        """The context around this one, or None."""
        return self._outer_context

    outer = outer_context

    @property
    def nested(self) -> list[Any]:
        """The contexts inside."""
        return self._nested_contexts

    @property
    def grad_state(self) -> Any:
        """None: this context is no loop of a gradient."""
        return None

    @property
    def back_prop(self) -> bool:
        """False: gradients do not pass loops here."""
        return False

    @abc.abstractmethod
    def to_control_flow_context_def(self, context_def: Any, export_scope: str | None = None) -> None:
        """Writes the context into a ControlFlowContextDef."""

    def _to_values_def(self, export_scope: str | None = None) -> Any:
        message = control_flow_pb2.ValuesDef(values=sorted(self._values))
        for key, value in self._external_values.items():
            message.external_values[key] = value.name
        return message

    def AddName(self, name: str) -> None:  # noqa: N802
        """Makes a value of this name one of the context."""
        self._values.add(name)

    def Enter(self) -> None:  # noqa: N802
        """Makes this the context of new operations."""
        graph = get_default_graph()
        self._around.append(graph._get_control_flow_context())
        graph._set_control_flow_context(self)

    def Exit(self) -> None:  # noqa: N802
        """Puts the context around this one back."""
        get_default_graph()._set_control_flow_context(self._around.pop())

    def AddOp(self, op: Any) -> None:  # noqa: N802
        """Takes a new operation; `AddOp` of the context around is called as well."""
        if self._outer_context is not None:
            self._outer_context.AddOp(op)

    def AddInnerOp(self, op: Any) -> None:  # noqa: N802
        """Takes a new operation of a context inside."""
        if self._outer_context is not None:
            self._outer_context.AddInnerOp(op)

    def AddValue(self, val: Any) -> Any:  # noqa: N802
        """The form of a value in this context: the value itself."""
        return val

    def add_op(self, op: Any) -> None:
        """`AddOp`, under the name that graphs call."""
        self.AddOp(op)

    def add_value(self, tensor: Any) -> Any:
        """`AddValue`, under the name that contexts inside call."""
        return self.AddValue(tensor)

    def GetWhileContext(self) -> Any:  # noqa: N802
        """The innermost loop around, or None."""
        return None if self._outer_context is None else self._outer_context.GetWhileContext()

    def while_context(self) -> Any:
        """`GetWhileContext`, under dtf's name."""
        return self.GetWhileContext()

    def GetControlPivot(self) -> Any:  # noqa: N802
        """None: no value says whether this context runs."""
        return None

    def is_inside(self, context: Any) -> bool:
        """Whether this context is `context` or inside of it."""
        return self is context or self._outer_context is not None and self._outer_context.is_inside(context)

    def IsWhileContext(self) -> bool:  # noqa: N802
        """False."""
        return False

    def IsCondContext(self) -> bool:  # noqa: N802
        """False."""
        return False

    def IsXLAContext(self) -> bool:  # noqa: N802
        """False."""
        return False


ControlFlowContext.register(CondContext)
ControlFlowContext.register(WhileContext)


class XLAControlFlowContext(ControlFlowContext):
    """The base of contexts of compiled clusters, which dtf runs as any other nodes."""

    def IsXLAContext(self) -> bool:  # noqa: N802
        """True."""
        return True

    def to_control_flow_context_def(self, context_def: Any, export_scope: str | None = None) -> None:
        """Writes nothing."""
