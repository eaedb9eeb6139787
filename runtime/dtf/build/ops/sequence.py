"""Sequences: connectionist temporal classification, and the shape rules of whole recurrent cells.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/ctc_loss
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import rearranging
from dtf.build.shape_rules import shape_rule
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["ctc_beam_search_decoder", "ctc_greedy_decoder", "ctc_loss"]


def ctc_loss(
    labels: TensorLike,
    inputs: Any = None,
    sequence_length: TensorLike | None = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """The negative logarithm of the probability of the labels: [batch].

    Args:
      labels: an int32 SparseTensor [batch, positions]; the last class means "no label".
      inputs: logits [steps, batch, classes], or [batch, steps, classes] when `time_major` is False.
      sequence_length: int32 [batch], how many steps each has.

    Raises:
      TypeError: labels are no SparseTensor.
    """
    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    inputs = convert_to_tensor(inputs if logits is None else logits)
    if not time_major:
        inputs = rearranging.transpose(inputs, [1, 0, 2])
    made = apply_op(
        "CTCLoss",
        inputs=inputs,
        labels_indices=labels.indices,
        labels_values=labels.values,
        sequence_length=sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )
    return made.loss


def ctc_greedy_decoder(
    inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """([the likeliest class of each step without blanks, and without repetitions], minus the sum of their logits).

    inputs: [steps, batch, classes].
    """
    made = apply_op(
        "CTCGreedyDecoder",
        inputs=inputs,
        sequence_length=sequence_length,
        merge_repeated=merge_repeated,
        blank_index=blank_index,
    )
    return [SparseTensor(made.decoded_indices, made.decoded_values, made.decoded_shape)], made.log_probability


def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """(the `top_paths` likeliest sequences of labels, their logarithmic probabilities [batch, top_paths]).

    inputs: logits [steps, batch, classes]; the last class is the blank. The search keeps `beam_width` prefixes.
    merge_repeated: merge equal labels that follow each other in a result.
    """
    made = apply_op(
        "CTCBeamSearchDecoder",
        inputs=inputs,
        sequence_length=sequence_length,
        beam_width=beam_width,
        top_paths=top_paths,
        merge_repeated=merge_repeated,
    )
    parts = zip(made.decoded_indices, made.decoded_values, made.decoded_shape, strict=True)
    return [SparseTensor(*each) for each in parts], made.log_probability


# -- shape rules


@shape_rule("CTCLoss")
def _(op: Operation) -> list[TensorShape]:
    shape, lengths = op.inputs[0].shape.with_rank(3), op.inputs[3].shape.with_rank(1)
    batch = shape[1].merge_with(lengths[0])
    return [TensorShape([batch]), TensorShape([shape[0], batch, shape[2]])]


@shape_rule("CTCGreedyDecoder")
def _(op: Operation) -> list[TensorShape]:
    batch = op.inputs[0].shape.with_rank(3)[1:2].merge_with(op.inputs[1].shape.with_rank(1))
    return [TensorShape([None, 2]), TensorShape([None]), TensorShape([2]), batch.concatenate([1])]


@shape_rule("CTCBeamSearchDecoder")
def _(op: Operation) -> list[TensorShape]:
    batch, paths = op.inputs[0].shape.with_rank(3)[1], op.get_attr("top_paths")
    sparse = [*[TensorShape([None, 2])] * paths, *[TensorShape([None])] * paths, *[TensorShape([2])] * paths]
    return [*sparse, TensorShape([batch, paths])]


@shape_rule("LSTMBlockCell")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape] * 7


@shape_rule("BlockLSTM", "BlockLSTMV2")
def _(op: Operation) -> list[TensorShape]:
    steps = op.inputs[1].shape.with_rank(3)[0]
    return [TensorShape([steps]).concatenate(op.inputs[2].shape)] * 7


@shape_rule("LSTMBlockCellGrad")
def _(op: Operation) -> list[TensorShape]:
    batch, cells = op.inputs[1].shape.with_rank(2).as_list()
    gates = None if cells is None else 4 * cells
    return [op.inputs[1].shape, TensorShape([batch, gates]), *(tensor.shape for tensor in op.inputs[4:7])]


@shape_rule("BlockLSTMGrad", "BlockLSTMGradV2")
def _(op: Operation) -> list[TensorShape]:
    return [tensor.shape for tensor in op.inputs[1:9]]


@shape_rule("GRUBlockCell")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape] * 4


@shape_rule("GRUBlockCellGrad")
def _(op: Operation) -> list[TensorShape]:
    batch, cells = op.inputs[1].shape.with_rank(2).as_list()
    hidden = op.inputs[1].shape
    return [op.inputs[0].shape, hidden, hidden, TensorShape([batch, None if cells is None else 2 * cells])]
