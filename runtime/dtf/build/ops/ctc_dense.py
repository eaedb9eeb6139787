"""`ctc_loss_v2` and its helpers: connectionist temporal classification with dense labels and a blank of any index.

Owns how dense labels become sparse ones and how the blank becomes the last class; the loss itself is of `sequence`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/ctc_loss_v2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, filling, gathering, joining, math, reductions, searching, sequence, slicing
from dtf.build.ops.functional import map_fn
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["collapse_repeated", "ctc_loss_v2", "ctc_unique_labels"]


def ctc_loss_v2(
    labels: Any,
    logits: TensorLike,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The negative logarithm of the probability of the labels: [batch].

    Args:
      labels: integers [batch, positions], or an int32 SparseTensor of the same dense shape.
      logits: floats [steps, batch, classes], or [batch, steps, classes] when `logits_time_major` is False.
      label_length: integers [batch], how many labels each has; None for sparse labels.
      logit_length: int32 [batch], how many steps each has.
      unique: what `ctc_unique_labels` gave; accepted, and not needed here.
      blank_index: the class that means "no label", 0 by default for dense labels; negative counts from the end.
      name: the name scope.

    Raises:
      ValueError: labels are sparse and `blank_index` is missing, or it is no class.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/ctc_loss_v2
    """
    if not isinstance(labels, SparseTensor):
        return ctc_loss_dense(labels, logits, label_length, logit_length, logits_time_major, unique,
                              0 if blank_index is None else blank_index, name)  # fmt: skip
    if blank_index is None:
        raise ValueError(
            "Argument `blank_index` must be provided when labels is a SparseTensor. Set it to the number of the class "
            "that means no label, such as -1 for the last one."
        )
    return _loss(labels, convert_to_tensor(logits, name="logits"), logit_length, logits_time_major, blank_index)


def ctc_loss_dense(
    labels: TensorLike,
    logits: TensorLike,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int = 0,
    name: str | None = None,
) -> Tensor:
    """`ctc_loss_v2` of dense labels."""
    with name_scope(name, "ctc_loss_dense", [logits, labels, label_length, logit_length]):
        sparse = dense_labels_to_sparse(math.cast(convert_to_tensor(labels), dtypes.int32), label_length)
        return _loss(sparse, convert_to_tensor(logits, name="logits"), logit_length, logits_time_major, blank_index)


def _loss(labels: SparseTensor, logits: Tensor, logit_length: Any, time_major: bool, blank_index: int) -> Tensor:
    """The loss; the blank class moves to the end of the logits, and the classes behind it move one down."""
    classes = logits.shape.as_list()[-1] if logits.shape.ndims is not None else None
    if blank_index < 0:
        if classes is None:
            raise ValueError("a negative `blank_index` needs logits whose number of classes is known")
        blank_index += classes
    if blank_index < 0 or (classes is not None and blank_index >= classes):
        raise ValueError(f"blank_index must be in [0, {classes}), got {blank_index}")
    if classes is None or blank_index != classes - 1:
        parts = (logits[:, :, :blank_index], logits[:, :, blank_index + 1 :])
        logits = joining.concat([*parts, logits[:, :, blank_index : blank_index + 1]], axis=2)
        behind = math.cast(math.greater(labels.values, blank_index), labels.values.dtype)
        labels = SparseTensor(labels.indices, labels.values - behind, labels.dense_shape)
    return sequence.ctc_loss(
        labels,
        logits,
        math.cast(convert_to_tensor(logit_length), dtypes.int32),
        ignore_longer_outputs_than_inputs=True,
        time_major=time_major,
    )


def dense_labels_to_sparse(dense: TensorLike, length: Any) -> SparseTensor:
    """The first `length` labels of each row as a SparseTensor.

    Args:
      dense: [batch, positions].
      length: integers [batch].
    """
    dense = convert_to_tensor(dense)
    shape = array.shape_of(dense, out_type=dtypes.int64)
    mask = filling.sequence_mask(convert_to_tensor(length), maxlen=shape[1])
    indices = searching.where(mask)
    return SparseTensor(indices, gathering.gather_nd(dense, indices), shape)


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The different labels of each row, padded with zeros, and for each label its index among them.

    Args:
      labels: integers [batch, positions].
      name: the name scope.

    Returns:
      int64 [batch, positions] and int32 [batch, positions].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/ctc_unique_labels
    """
    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = convert_to_tensor(labels, name="labels")

        def unique(row: Tensor) -> list[Tensor]:
            found = searching.unique(row)
            missing = array.size(found.idx) - array.size(found.y)
            return [math.cast(_padded(found.y, missing), dtypes.int64), found.idx]

        values, indices = map_fn(unique, labels, dtype=[dtypes.int64, dtypes.int32])
        return values, indices


def _padded(vector: Tensor, count: Tensor) -> Tensor:
    """The vector with so many zeros behind it."""
    return joining.pad(vector, [[0, count]])


def collapse_repeated(labels: TensorLike, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Rows in which labels that follow each other and are equal are merged to one.

    Args:
      labels: integers [batch, positions].
      seq_length: integers [batch], how many labels of each row count.
      name: the name scope.

    Returns:
      The merged labels [batch, longest], padded with zeros, and the number of labels of each row.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/collapse_repeated
    """
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        seq_length = convert_to_tensor(seq_length, name="seq_length")
        differs = math.not_equal(labels[:, 1:], labels[:, :-1])
        first = filling.ones_like(labels[:, :1], dtypes.bool)
        width = array.shape_of(labels)[1]
        mask = math.logical_and(joining.concat([first, differs], axis=1),
                                filling.sequence_mask(seq_length, maxlen=width))  # fmt: skip
        lengths = reductions.reduce_sum(math.cast(mask, seq_length.dtype), axis=1)
        longest = reductions.reduce_max(lengths)
        places = searching.where(filling.sequence_mask(lengths, maxlen=longest))
        shape = joining.stack([array.shape_of(labels, out_type=dtypes.int64)[0], math.cast(longest, dtypes.int64)])
        merged = gathering.scatter_nd(places, slicing.boolean_mask(labels, mask), shape)
        merged.set_shape([labels.shape.as_list()[0], None])
        return merged, lengths
