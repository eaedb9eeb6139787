"""Summary ops: `tf.summary.scalar` and similar functions, which return serialized Summary messages.

Owns tags (from the name scope, with an optional family), collections, and the merging of collected summaries. Writing
them to disk is `summary.FileWriter`. Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph, name_scope
from dtf.build.graph_keys import GraphKeys
from dtf.build.shape_rules import scalar as scalar_shape
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]


def scalar(
    name: str, tensor: TensorLike, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """The number `tensor` under the tag `name`.

    Args:
      name: the tag, within the name scope.
      tensor: a real scalar.
      collections: graph collections for the op; GraphKeys.SUMMARIES by default.
      family: a prefix of the tag, which groups curves.

    Returns:
      A string scalar: a serialized Summary.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary/scalar
    """
    with _tag_scope(name, family, [tensor]) as (tag, scope):
        return _collect(apply_op("ScalarSummary", scope, tags=tag, values=tensor), collections)


def histogram(
    name: str, values: TensorLike, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """The distribution of `values`, of any shape. Running it: InvalidArgumentError for a NaN or an infinity.

    Args:
      name: the tag, within the name scope.
      values: a tensor of real numbers of any shape.
      collections: graph collections for the op; GraphKeys.SUMMARIES by default.
      family: a prefix of the tag, which groups figures.

    Returns:
      A string scalar: a serialized Summary.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary/histogram
    """
    with _tag_scope(name, family, [values], "HistogramSummary") as (tag, scope):
        return _collect(apply_op("HistogramSummary", scope, tag=tag, values=values), collections)


def image(
    name: str,
    tensor: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """Up to `max_outputs` images of [batch, height, width, 1, 3 or 4 channels]; uint8 unchanged, floats scaled to 0
    ... 255.

    Args:
      name: the tag, within the name scope.
      tensor: [batch, height, width, 1, 3 or 4 channels]; uint8 as it is, floats scaled to 0 ... 255.
      max_outputs: how many images of the batch.
      collections: graph collections for the op; GraphKeys.SUMMARIES by default.
      family: a prefix of the tag, which groups figures.

    Returns:
      A string scalar: a serialized Summary.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary/image
    """
    with _tag_scope(name, family, [tensor]) as (tag, scope):
        made = apply_op("ImageSummary", scope, tag=tag, tensor=tensor, max_images=max_outputs)
        return _collect(made, collections)


def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: Any,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """Up to `max_outputs` clips of [batch, frames(, channels)] floats within [-1, 1]; sample_rate in Hz."""
    with _tag_scope(name, family, [tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        made = apply_op("AudioSummaryV2", scope, tag=tag, tensor=tensor, sample_rate=rate, max_outputs=max_outputs)
        return _collect(made, collections)


def tensor_summary(
    name: str,
    tensor: TensorLike,
    summary_description: Any = None,
    collections: Sequence[str] | None = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """A summary of any tensor, with metadata (a SummaryMetadata message) that names the plugin to show it."""
    from dtf.wire.pb import summary_pb2

    metadata = summary_pb2.SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if display_name is not None:
        metadata.display_name = display_name
    if summary_description is not None:
        metadata.summary_description = summary_description
    with _tag_scope(name, family, [tensor]) as (tag, scope):
        made = apply_op(
            "TensorSummaryV2",
            scope,
            tag=tag,
            tensor=tensor,
            serialized_summary_metadata=metadata.SerializeToString(),
        )
        return _collect(made, collections)


def text(name: str, tensor: TensorLike, collections: Sequence[str] | None = None) -> Tensor:
    """A string tensor, shown as text.

    Args:
      name: the tag, within the name scope.
      tensor: a string tensor.
      collections: graph collections for the op; GraphKeys.SUMMARIES by default.

    Returns:
      A string scalar: a serialized Summary.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary/text
    """
    from dtf.wire.pb import summary_pb2

    if convert_to_tensor(tensor).dtype.base_dtype != dtypes.string:
        raise ValueError(f"Expected tensor {name} to have dtype string, got {convert_to_tensor(tensor).dtype}")
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
    metadata = summary_pb2.SummaryMetadata(plugin_data=plugin)
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


def merge(inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None) -> Tensor:
    """One summary of several. Running it: InvalidArgumentError when a tag comes twice.

    Args:
      inputs: string tensors, each a serialized Summary.
      collections: graph collections for the op; none by default.
      name: the name of the operation.

    Returns:
      A string scalar: a serialized Summary.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary/merge
    """
    with name_scope(name, "Merge", list(inputs)):
        made = apply_op("MergeSummary", name, inputs=list(inputs))
        return _collect(made, collections, default=())


def merge_all(key: Any = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """One summary of all summaries collected in the default graph under `key`; None if the collection is empty.

    Args:
      key: the collection.
      scope: a regular expression that the start of a summary's name matches.
      name: the name of the operation.

    Returns:
      A string scalar: a serialized Summary; None if the collection is empty.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary/merge_all
    """
    collected = get_default_graph().get_collection(key, scope)
    return merge(collected, name=name) if collected else None


def get_summary_description(node_def: Any) -> Any:
    """The SummaryDescription message of a TensorSummary node, stored there as JSON. ValueError for another op."""
    from google.protobuf import json_format

    from dtf.wire.pb import summary_pb2

    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    return json_format.Parse(node_def.attr["description"].s or b"{}", summary_pb2.SummaryDescription())


@contextmanager
def _tag_scope(
    name: str, family: str | None, values: list[Any], default_name: str = "ScalarSummary"
) -> Iterator[tuple[str, str]]:
    """The tag of a summary and the scope of its op; a family stands before the whole and before the name."""
    name = _clean(name)
    family = None if family is None else _clean(family)
    base = name if family is None else f"{family}/{name}"
    with name_scope(base, default_name, [value for value in values if isinstance(value, Tensor)]) as scope:
        tag = scope.rstrip("/")
        yield tag if family is None else f"{family}/{tag}", scope


def _clean(name: str) -> str:
    """A tag as it may be part of an op's name."""
    cleaned = re.sub(r"[^-/\w.]", "_", name).lstrip("/")
    if cleaned != name:
        logging.getLogger("dtf").info("Summary name %s is illegal; using %s instead.", name, cleaned)
    return cleaned


def _collect(
    made: Tensor, collections: Sequence[str] | None, default: Sequence[str] = (GraphKeys.SUMMARIES,)
) -> Tensor:
    for key in default if collections is None else collections:
        made.graph.add_to_collection(key, made)
    return made


shape_rule(
    *(
        "ScalarSummary HistogramSummary MergeSummary TensorSummary TensorSummaryV2 ImageSummary AudioSummary "
        "AudioSummaryV2"
    ).split()
)(scalar_shape)
