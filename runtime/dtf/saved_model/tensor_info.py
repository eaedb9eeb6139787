"""TensorInfo: a tensor as a signature names it.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/saved_model/build_tensor_info
"""

from __future__ import annotations

from typing import Any

from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph, Tensor
from dtf.build.sparse import SparseTensor
from dtf.wire.pb import meta_graph_pb2


def build_tensor_info(tensor: Any) -> Any:
    """The TensorInfo of a Tensor, a SparseTensor, or a variable: name, dtype and shape.

    Raises:
      TypeError: it is none of these.
    """
    if isinstance(tensor, SparseTensor):
        info = meta_graph_pb2.TensorInfo(dtype=_data_type(tensor))
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
        info.tensor_shape.CopyFrom(tensor.get_shape().as_proto())
        return info
    if not isinstance(tensor, Tensor) and not hasattr(tensor, "initializer"):
        raise TypeError(f"A signature is made of tensors of the graph; this is a {type(tensor).__name__}: {tensor!r}")
    info = meta_graph_pb2.TensorInfo(name=tensor.name, dtype=_data_type(tensor))
    info.tensor_shape.CopyFrom(tensor.shape.as_proto())
    return info


def get_tensor_from_tensor_info(tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None) -> Any:
    """The Tensor or SparseTensor that a TensorInfo names in `graph` (the default one if None).

    Args:
      import_scope: the name scope into which the graph was imported.

    Raises:
      KeyError: the graph does not contain the tensor.
      ValueError: it names none, or one of several parts.
    """
    graph = graph or get_default_graph()

    def element(name: str) -> Any:
        return graph.get_tensor_by_name(f"{import_scope.rstrip('/')}/{name}" if import_scope else name)

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return element(tensor_info.name)
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        return SparseTensor(
            element(parts.indices_tensor_name),
            element(parts.values_tensor_name),
            element(parts.dense_shape_tensor_name),
        )
    raise ValueError(f"A TensorInfo must name a tensor or a SparseTensor; this one has {encoding}: {tensor_info}")


def _data_type(tensor: Any) -> Any:
    return tensor.dtype.base_dtype.as_datatype_enum
