"""tensorflow.python.framework.meta_graph: meta graphs of name scopes, and their copies.

Owns what TensorFlow's module has beyond the public functions of tf.train: the variables of the exported scope, imports
that give elements back, and copies within a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph, GraphKeys
from dtf.train import meta_graph as _meta_graph
from dtf.train.meta_graph import create_meta_graph_def, export_meta_graph
from dtf.train.meta_graph_import import import_scoped_meta_graph, read_meta_graph_file
from dtf.wire import opdef
from dtf.wire.opdef_proto import op_list

__all__ = [
    "add_collection_def", "copy_scoped_meta_graph", "create_meta_graph_def", "export_scoped_meta_graph",
    "import_scoped_meta_graph", "import_scoped_meta_graph_with_return_elements", "ops_used_by_graph_def",
    "read_meta_graph_file", "strip_graph_default_valued_attrs", "stripped_op_list_for_graph",
]  # fmt: skip


def ops_used_by_graph_def(graph_def: Any) -> list[str]:
    """The op types of a graph and of its functions' bodies, without the functions."""
    return sorted(_meta_graph._op_types(graph_def))



def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The contracts of the ops that a GraphDef uses.

    Raises:
      ValueError: an op is unknown.
    """
    used = ops_used_by_graph_def(graph_def)
    unknown = sorted(name for name in used if not opdef.exists(name))
    if unknown:
        raise ValueError(f"Op {', '.join(unknown)} is used by the graph, but is not registered")
    return op_list(used)


def strip_graph_default_valued_attrs(meta_graph_def: Any) -> None:
    """Removes the attributes of nodes that have their default value, and says so in the message."""
    _meta_graph._strip_default_attrs(meta_graph_def.graph_def)
    meta_graph_def.meta_info_def.stripped_default_attrs = True


def add_collection_def(
    meta_graph_def: Any, key: str, graph: Graph | None = None, export_scope: str | None = None, **_: Any
) -> None:
    """Adds one collection of a graph to a MetaGraphDef."""
    entries = (graph or get_default_graph()).get_collection(key)
    _meta_graph._add_collection(meta_graph_def, key, entries, export_scope)


def export_scoped_meta_graph(
    filename: str | None = None, graph_def: Any = None, graph: Graph | None = None, export_scope: str | None = None,
    as_text: bool = False, unbound_inputs_col_name: str | None = "unbound_inputs", clear_devices: bool = False,
    saver_def: Any = None, clear_extraneous_savers: bool = False, strip_default_attrs: bool = False, **kwargs: Any,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """The MetaGraphDef of a name scope, and its variables by their names without the scope.

    Raises:
      ValueError: the graph is another one than the default and is empty of the scope's nodes.
    """
    graph = graph or get_default_graph()
    made = export_meta_graph(
        filename=filename, graph_def=graph_def, graph=graph, export_scope=export_scope, as_text=as_text,
        clear_devices=clear_devices, saver_def=saver_def, clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs, **kwargs,
    )  # fmt: skip
    prefix = f"{export_scope.rstrip('/')}/" if export_scope else ""
    variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=export_scope)
    return made, {each.name.removeprefix(prefix): each for each in variables}


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: Any, clear_devices: bool = False, graph: Graph | None = None,
    import_scope: str | None = None, input_map: Any = None, return_elements: Sequence[str] | None = None, **_: Any,
) -> tuple[dict[str, Any], list[Any] | None]:  # fmt: skip
    """As `import_scoped_meta_graph`, with the operations and tensors of these names too."""
    graph = graph or get_default_graph()
    found = import_scoped_meta_graph(meta_graph_or_file, clear_devices, graph, import_scope, input_map)
    prefix = f"{import_scope}/" if import_scope else ""
    elements = None if return_elements is None else [graph.as_graph_element(prefix + name) for name in return_elements]
    return found, elements


def copy_scoped_meta_graph(
    from_scope: str, to_scope: str, from_graph: Graph | None = None, to_graph: Graph | None = None
) -> dict[str, Any]:
    """Copies the nodes and variables of a name scope to another scope or graph.

    Returns:
      The new variables by their names without the scope.

    Raises:
      ValueError: both scopes are one and the graphs are too.
    """
    source, target = from_graph or get_default_graph(), to_graph or get_default_graph()
    if from_graph is to_graph and from_scope == to_scope:
        raise ValueError(
            f"'from_scope' and 'to_scope' need to be different when performing copy in the same graph. Received: "
            f"'from_graph': {from_graph}, 'to_graph': {to_graph}, 'from_scope': {from_scope}, 'to_scope': {to_scope}."
        )
    made, _ = export_scoped_meta_graph(export_scope=from_scope, graph=source)
    return import_scoped_meta_graph(made, graph=target, import_scope=to_scope)
