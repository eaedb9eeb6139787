"""tensorflow.python.tools.freeze_graph: a graph and a checkpoint as one GraphDef of constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf import graph_util
from dtf.build.graph import Graph
from dtf.build.importer import import_graph_def
from dtf.build.variables import Variable
from dtf.saved_model import loader, tag_constants
from dtf.session import Session
from dtf.train.checkpoint_utils import load_checkpoint
from dtf.train.meta_graph_import import import_meta_graph
from dtf.train.saver import Saver
from dtf.wire.pb import graph_pb2
from dtf.wire.pb.saver_pb2 import SaverDef
from dtf.wire.pb.variable_pb2 import VariableDef

__all__ = ["freeze_graph"]

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def freeze_graph(
    input_graph: str, input_saver: str, input_binary: bool, input_checkpoint: str, output_node_names: str,
    restore_op_name: Any, filename_tensor_name: Any, output_graph: str, clear_devices: bool,
    initializer_nodes: str | None, variable_names_whitelist: str = "", variable_names_blacklist: str = "",
    input_meta_graph: str = "", input_saved_model_dir: Any = None, saved_model_tags: Any = None,
    checkpoint_version: int = 2,
) -> Any:  # fmt: skip
    """Reads a GraphDef (or a meta graph) and a checkpoint, or a SavedModel; writes the part before the outputs.

    Args:
      input_graph: a file with a GraphDef, text unless `input_binary`; "" with `input_meta_graph`.
      input_saver: a file with a SaverDef of that graph, whose operations restore the checkpoint; "" for none.
      input_checkpoint: the prefix of the checkpoint; variables that it lacks are left out.
      output_node_names: names, with commas between.
      output_graph: where to write the result; "" for nowhere.
      initializer_nodes: names of nodes to run before, with commas between; "" for none.
      input_saved_model_dir: a SavedModel, in place of a graph and a checkpoint.
      saved_model_tags: the tags of its meta graph, with commas between; "serve" by default.

    Returns:
      The GraphDef.

    Raises:
      ValueError: neither a graph nor a meta graph nor a SavedModel is named, or the graph has no variables.
    """
    from google.protobuf import text_format

    from dtf import gfile

    with Graph().as_default() as graph, Session(graph=graph) as session:
        if input_saved_model_dir:
            _load_saved_model(session, input_saved_model_dir, saved_model_tags or tag_constants.SERVING)
        elif input_meta_graph:
            import_meta_graph(input_meta_graph, clear_devices=clear_devices).restore(session, input_checkpoint)
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
            if input_saver:
                saver = Saver(saver_def=_saver_def(input_saver, input_binary))
            else:
                saver = Saver(_variables_of(graph, input_checkpoint))
            saver.restore(session, input_checkpoint)
        else:
            raise ValueError("freeze_graph needs input_graph, input_meta_graph or input_saved_model_dir")
        if initializer_nodes and not input_saved_model_dir:
            session.run(initializer_nodes.replace(" ", "").split(","))
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


def _load_saved_model(session: Session, folder: str, tags: str | Sequence[str]) -> None:
    loader.load(session, tags.split(",") if isinstance(tags, str) else tags, folder)


def _saver_def(path: str, is_binary: bool) -> SaverDef:
    from google.protobuf import text_format

    from dtf import gfile

    with gfile.GFile(path, "rb") as file:
        content = file.read()
    if is_binary:
        return SaverDef.FromString(content)
    return text_format.Parse(content.decode(), SaverDef())


def _variables_of(graph: Graph, checkpoint: str) -> list[Variable]:
    """The variables of a GraphDef, which has no collection of them, as far as the checkpoint has their values."""
    saved = load_checkpoint(checkpoint)
    names = {op.name for op in graph.get_operations()}
    variables = []
    for op in graph.get_operations():
        if op.type not in _VARIABLES or not saved.has_tensor(op.name):
            continue
        is_resource = op.type == "VarHandleOp"
        snapshot = f"{op.name}/Read/ReadVariableOp" if is_resource else f"{op.name}/read"
        proto = VariableDef(
            variable_name=op.outputs[0].name, initializer_name=f"{op.name}/Assign", snapshot_name=f"{snapshot}:0",
            is_resource=is_resource,
        )  # fmt: skip
        if {snapshot, proto.initializer_name} <= names:
            variables.append(Variable.from_proto(proto))
    if not variables:
        raise ValueError(
            "No variables were found in this model. It is likely the model was frozen previously. "
            "You cannot freeze a graph twice."
        )
    return variables
