"""Candidate sampling: the samplers of tf.random, and the losses of tf.nn that use them.

Source: https://www.tensorflow.org/extras/candidate_sampling.pdf
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array as array_ops
from dtf.build.ops import cross_entropy as cross_entropy_ops
from dtf.build.ops import embedding, joining, reductions
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import linalg as linalg_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.random import op_seeds
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "all_candidate_sampler", "compute_accidental_hits", "fixed_unigram_candidate_sampler",
    "learned_unigram_candidate_sampler", "log_uniform_candidate_sampler", "nce_loss", "sampled_softmax_loss",
    "uniform_candidate_sampler",
]  # fmt: skip

# -- samplers: (sampled classes [num_sampled], how often each true one is expected [batch, num_true], and each sampled)


def _sampled(
    op_type: str, true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: Any, name: Any, **more: Any
) -> Any:
    return apply_op(
        op_type,
        name,
        true_classes=true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        **op_seeds(seed),
        **more,
    )


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes below range_max, all as likely. true_classes: int64 [batch, num_true]."""
    return _sampled(
        "UniformCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max
    )


def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes below range_max, the likelier the smaller. true_classes: int64 [batch, num_true]."""
    return _sampled(
        "LogUniformCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max
    )


def learned_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes below range_max, by how often they were true ones so far. true_classes: int64 [batch, num_true]."""
    return _sampled(
        "LearnedUnigramCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max
    )


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes below range_max, by weights that a list or the last column of a file gives, to the power `distortion`."""
    return _sampled(
        "FixedUnigramCandidateSampler",
        true_classes,
        num_true,
        num_sampled,
        unique,
        seed,
        name,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=list(unigrams),
    )


def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """All classes below num_sampled, for tests."""
    return _sampled("AllCandidateSampler", true_classes, num_true, num_sampled, unique, seed, name)


def compute_accidental_hits(
    true_classes: TensorLike, sampled_candidates: Any, num_true: int, seed: int | None = None, name: str | None = None
) -> Any:
    """(rows int32, positions int64, the least float32) of the sampled classes that are true ones of a row."""
    return apply_op(
        "ComputeAccidentalHits",
        name,
        true_classes=true_classes,
        sampled_candidates=sampled_candidates,
        num_true=num_true,
        **op_seeds(seed),
    )


# -- losses


def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation: [batch].

    Args:
      weights: [num_classes, width], or a list of its parts.
      biases: [num_classes].
      labels: int64 [batch, num_true].
      inputs: [batch, width].
      num_sampled: how many classes are sampled for a batch.
      num_classes: how many classes there are.
      num_true: how many classes are true for an example.
      sampled_values: the result of a candidate sampler; by default of the log-uniform one.
      remove_accidental_hits: leave out samples that are true classes.
      partition_strategy: "mod" or "div", as for `embedding_lookup`.
      name: a name scope.

    Returns:
      A Tensor [batch].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/nce_loss
    """
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True,
        remove_accidental_hits, partition_strategy, name, None,
    )  # fmt: skip
    losses = cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return reductions.reduce_sum(losses, axis=1)


def sampled_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """The softmax loss over the true and a few sampled classes: [batch]. Arguments as of `nce_loss`.

    Args:
      weights: [num_classes, width], or a list of its parts.
      biases: [num_classes].
      labels: int64 [batch, num_true].
      inputs: [batch, width].
      num_sampled: how many classes are sampled for a batch.
      num_classes: how many classes there are.
      num_true: how many classes are true for an example.
      sampled_values: the result of a candidate sampler; by default of the log-uniform one.
      remove_accidental_hits: leave out samples that are true classes.
      partition_strategy: "mod" or "div", as for `embedding_lookup`.
      name: a name scope.
      seed: the seed of the sampler.

    Returns:
      A Tensor [batch].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/sampled_softmax_loss
    """
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True,
        remove_accidental_hits, partition_strategy, name, seed,
    )  # fmt: skip
    targets = array_ops.stop_gradient(targets, name="labels_stop_gradient")
    return cross_entropy_ops.softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    subtract_log_q: bool,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str,
    seed: int | None,
) -> tuple[Tensor, Tensor]:
    """(logits, targets), both [batch, num_true + num_sampled]; the true classes come first."""
    parts = list(weights) if isinstance(weights, (list, tuple)) else weights
    with name_scope(name, "compute_sampled_logits", [*(parts if isinstance(parts, list) else [parts]), inputs]):
        labels = convert_to_tensor(labels, name="labels")
        labels = labels if labels.dtype == dtypes.int64 else math_ops.cast(labels, dtypes.int64)
        flat = array_ops.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
        sampled, true_expected, sampled_expected = (array_ops.stop_gradient(each) for each in sampled_values)
        sampled = math_ops.cast(sampled, dtypes.int64)
        ids = joining.concat([flat, sampled], 0)
        rows = embedding.embedding_lookup(parts, ids, partition_strategy=partition_strategy)
        offsets = embedding.embedding_lookup(biases, ids, partition_strategy=partition_strategy)
        inputs = convert_to_tensor(inputs)
        count = array_ops.shape(flat)[0]
        true_rows, sampled_rows = rows[:count], rows[count:]
        true_offsets, sampled_offsets = offsets[:count], offsets[count:]
        sampled_logits = linalg_ops.matmul(inputs, sampled_rows, transpose_b=True) + sampled_offsets
        width = array_ops.shape(true_rows)[1]
        shaped = array_ops.reshape(true_rows, joining.stack([-1, num_true, width]))
        true_logits = reductions.reduce_sum(array_ops.expand_dims(inputs, 1) * shaped, axis=2)
        true_logits += array_ops.reshape(true_offsets, [-1, num_true])
        if remove_accidental_hits:
            hit_rows, positions, least = compute_accidental_hits(labels, sampled, num_true)
            places = joining.stack([hit_rows, math_ops.cast(positions, dtypes.int32)], axis=1)
            shape = array_ops.shape(sampled_logits)
            masked = apply_op(
                "SparseToDense",
                sparse_indices=places,
                output_shape=shape,
                sparse_values=math_ops.cast(least, sampled_logits.dtype),
                default_value=0.0,
                validate_indices=False,
            )
            sampled_logits += masked
        if subtract_log_q:
            true_logits -= math_ops.log(true_expected)
            sampled_logits -= math_ops.log(sampled_expected)
        logits = joining.concat([true_logits, sampled_logits], 1, name="concat")
        ones = filling_ops.ones_like(true_logits) / num_true
        return logits, joining.concat([ones, filling_ops.zeros_like(sampled_logits)], 1)


# -- shape rules


@shape_rule(
    "UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler", "AllCandidateSampler",
    "FixedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler",
)  # fmt: skip
def _(op: Operation) -> list[TensorShape]:
    batch = op.inputs[0].shape.with_rank(2)[0]
    sampled = TensorShape([op.get_attr("num_sampled")])
    return [sampled, TensorShape([batch, op.get_attr("num_true")]), sampled]


@shape_rule("ComputeAccidentalHits")
def _(op: Operation) -> list[TensorShape]:
    return [TensorShape([None])] * 3
