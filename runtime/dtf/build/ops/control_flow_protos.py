"""Branches and loops in meta graphs: CondContext and WhileContext as messages, and back.

The nodes of a graph do not say which branch or loop they belong to, but gradients of an imported graph need that.
Collections hold the outermost contexts, and those the ones inside of them.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/export_meta_graph
"""

from __future__ import annotations

from typing import Any

from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Tensor
from dtf.build.ops.control_flow_context import CondContext, WhileContext
from dtf.wire.codec import python_to_attr
from dtf.wire.pb import control_flow_pb2

__all__ = ["cond_from_proto", "cond_to_proto", "while_from_proto", "while_to_proto"]


def cond_to_proto(context: CondContext, export_scope: str | None = None) -> Any:
    """The CondContextDef, or None if the branch is outside of `export_scope`."""
    if not _is_in(context.name, export_scope):
        return None
    message = control_flow_pb2.CondContextDef(
        context_name=_stripped(context.name, export_scope),
        pred_name=_stripped(context.pred.name, export_scope),
        pivot_name=_stripped(context.pivot.name, export_scope),
        branch=context.branch,
    )
    # The predicate is made outside of the branch and used directly.
    external = {context.pred.name: context.pred, **context.external}
    _fill(message, context, external, export_scope)
    return message


def cond_from_proto(message: Any, import_scope: str | None = None) -> CondContext:
    """Makes the context of a CondContextDef, and assigns it to its nodes in the default graph."""
    name, values, external = _names(message, import_scope)
    pred, pivot = (_tensor(each, import_scope) for each in (message.pred_name, message.pivot_name))
    context = CondContext(pred, pivot, message.branch, name)
    context.name = name
    _take(context, values, external)
    _nested_from_proto(context, message, import_scope)
    return context


def while_to_proto(context: WhileContext, export_scope: str | None = None) -> Any:
    """The WhileContextDef, or None if the loop is outside of `export_scope`."""
    if not _is_in(context.name, export_scope):
        return None
    assert context.pivot is not None and context.pivot_for_pred is not None and context.pivot_for_body is not None
    message = control_flow_pb2.WhileContextDef(
        context_name=_stripped(context.name, export_scope),
        parallel_iterations=context.parallel_iterations,
        back_prop=context.back_prop,
        swap_memory=context.swap_memory,
        pivot_name=_stripped(context.pivot.name, export_scope),
        pivot_for_pred_name=_stripped(context.pivot_for_pred.name, export_scope),
        pivot_for_body_name=_stripped(context.pivot_for_body.name, export_scope),
        loop_exit_names=[_stripped(tensor.name, export_scope) for tensor in context.loop_exits],
        loop_enter_names=[_stripped(tensor.name, export_scope) for tensor in context.loop_enters],
    )
    if isinstance(context.maximum_iterations, Tensor):
        message.maximum_iterations_name = _stripped(context.maximum_iterations.name, export_scope)
    _fill(message, context, context.external, export_scope)
    return message


def while_from_proto(message: Any, import_scope: str | None = None) -> WhileContext:
    """Makes the context of a WhileContextDef, and assigns it to its nodes in the default graph."""
    name, values, external = _names(message, import_scope)
    limit = message.maximum_iterations_name
    context = WhileContext(
        message.parallel_iterations or 10,
        message.back_prop,
        message.swap_memory,
        name,
        maximum_iterations=_tensor(limit, import_scope) if limit else None,
    )
    context.name = name
    context.pivot = _tensor(message.pivot_name, import_scope)
    context.pivot_for_pred = _tensor(message.pivot_for_pred_name, import_scope)
    context.pivot_for_body = _tensor(message.pivot_for_body_name, import_scope)
    context.loop_exits = [_tensor(each, import_scope) for each in message.loop_exit_names]
    context.loop_enters = [_tensor(each, import_scope) for each in message.loop_enter_names]
    _take(context, values, external)
    for tensor in (*context.loop_exits, *context.loop_enters):
        tensor.op._set_control_flow_context(context)
    if import_scope:
        # Values that enter the loop later, for a gradient, must enter the same frame.
        for value in values:
            op = get_default_graph().as_graph_element(value).op
            if op.type in ("Enter", "RefEnter") and op._get_control_flow_context() is context:
                op._set_attr("frame_name", python_to_attr(name.encode(), "string"))
    _nested_from_proto(context, message, import_scope)
    return context


def _fill(message: Any, context: Any, external: dict[str, Tensor], export_scope: str | None) -> None:
    message.values_def.values.extend(sorted(_stripped(value, export_scope) for value in context.values))
    for name, tensor in external.items():
        message.values_def.external_values[_stripped(name, export_scope)] = _stripped(tensor.name, export_scope)
    for inner in context.nested:
        nested = message.nested_contexts.add()
        if isinstance(inner, CondContext):
            nested.cond_ctxt.CopyFrom(cond_to_proto(inner, export_scope) or control_flow_pb2.CondContextDef())
        else:
            nested.while_ctxt.CopyFrom(while_to_proto(inner, export_scope) or control_flow_pb2.WhileContextDef())


def _names(message: Any, import_scope: str | None) -> tuple[str, list[str], dict[str, Tensor]]:
    values = [_scoped(value, import_scope) for value in message.values_def.values]
    external = {
        _scoped(name, import_scope): _tensor(value, import_scope)
        for name, value in message.values_def.external_values.items()
    }
    return _scoped(message.context_name, import_scope), values, external


def _take(context: Any, values: list[str], external: dict[str, Tensor]) -> None:
    """Gives a context its values, and the operations that make them their context."""
    context.values = set(values)
    context.external = external
    graph = get_default_graph()
    for value in values:
        if value not in external:
            graph.as_graph_element(value).op._set_control_flow_context(context)


def _nested_from_proto(context: Any, message: Any, import_scope: str | None) -> None:
    context.enter()
    try:
        for nested in message.nested_contexts:
            if nested.WhichOneof("ctxt") == "cond_ctxt":
                cond_from_proto(nested.cond_ctxt, import_scope)
            else:
                while_from_proto(nested.while_ctxt, import_scope)
    finally:
        context.exit()


def _tensor(name: str, import_scope: str | None) -> Tensor:
    return get_default_graph().as_graph_element(_scoped(name, import_scope))


def _scoped(name: str, scope: str | None) -> str:
    return f"{scope.rstrip('/')}/{name}" if scope else name


def _stripped(name: str, scope: str | None) -> str:
    return name.removeprefix(scope.rstrip("/") + "/") if scope else name


def _is_in(name: str, scope: str | None) -> bool:
    return not scope or name.startswith(scope.rstrip("/") + "/")
