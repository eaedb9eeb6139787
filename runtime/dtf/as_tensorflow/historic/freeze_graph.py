"""tensorflow.python.tools.freeze_graph: a graph and a checkpoint as one GraphDef of constants."""

from __future__ import annotations

from typing import Any

from dtf import graph_util
from dtf.build.graph import Graph
from dtf.build.importer import import_graph_def
from dtf.build.variables import Variable
from dtf.session import Session
from dtf.train.meta_graph_import import import_meta_graph
from dtf.train.saver import Saver
from dtf.wire.pb import graph_pb2
from dtf.wire.pb.variable_pb2 import VariableDef

__all__ = ["freeze_graph"]


def freeze_graph(
    input_graph: str, input_saver: str, input_binary: bool, input_checkpoint: str, output_node_names: str,
    restore_op_name: Any, filename_tensor_name: Any, output_graph: str, clear_devices: bool,
    initializer_nodes: str | None, variable_names_whitelist: str = "", variable_names_blacklist: str = "",
    input_meta_graph: str = "", input_saved_model_dir: Any = None, saved_model_tags: Any = None,
    checkpoint_version: int = 2,
) -> Any:  # fmt: skip
    """Reads a GraphDef (or a meta graph) and a checkpoint; writes the part before the outputs with constants.

    Args:
      input_graph: a file with a GraphDef, text unless `input_binary`; "" with `input_meta_graph`.
      output_node_names: names, with commas between.
      output_graph: where to write the result; "" for nowhere.
      initializer_nodes: not used, as there is a checkpoint.

    Returns:
      The GraphDef.

    Raises:
      ValueError: neither a graph nor a meta graph is named.
    """
    from google.protobuf import text_format

    from dtf import gfile

    with Graph().as_default() as graph, Session(graph=graph) as session:
        if input_meta_graph:
            saver = import_meta_graph(input_meta_graph, clear_devices=clear_devices)
        elif input_graph:
            graph_def = graph_pb2.GraphDef()
            with gfile.GFile(input_graph, "rb") as file:
                content = file.read()
            if input_binary:
                graph_def.ParseFromString(content)
            else:
                text_format.Parse(content.decode(), graph_def)
            if clear_devices:
                for node in graph_def.node:
                    node.device = ""
            import_graph_def(graph_def, name="")
            saver = Saver(_variables_of(graph))
        else:
            raise ValueError("freeze_graph needs input_graph or input_meta_graph")
        saver.restore(session, input_checkpoint)
        frozen = graph_util.convert_variables_to_constants(
            session,
            graph.as_graph_def(),
            output_node_names.replace(" ", "").split(","),
            variable_names_whitelist.split(",") if variable_names_whitelist else None,
            variable_names_blacklist.split(",") if variable_names_blacklist else None,
        )
    if output_graph:
        with gfile.GFile(output_graph, "wb") as file:
            file.write(frozen.SerializeToString())
    return frozen


def _variables_of(graph: Graph) -> list[Variable]:
    """The variables of a GraphDef, which has no collection of them."""
    protos = [
        VariableDef(
            variable_name=op.outputs[0].name,
            initializer_name=f"{op.name}/Assign",
            snapshot_name=f"{op.name}/read:0",
        )
        for op in graph.get_operations()
        if op.type in ("Variable", "VariableV2")
    ]
    return [Variable.from_proto(proto) for proto in protos]
