"""tensorflow.python.ops.nn_impl, nn_ops and array_ops: non-public names of their unit tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.ops import candidate_sampling, fractional_pooling, reductions

__all__ = ["fractional_avg_pool_v2", "fractional_max_pool_v2"]

NEW_AXIS = -1
SHRINK_AXIS = -2


def _compute_sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int = 1,
    sampled_values: Any = None, subtract_log_q: bool = True, remove_accidental_hits: bool = False,
    partition_strategy: str = "mod", name: str | None = None, seed: int | None = None,
) -> Any:  # fmt: skip
    """(logits, targets) of the true and the sampled classes; arguments as of `tf.nn.nce_loss`."""
    return candidate_sampling._sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, subtract_log_q,
        remove_accidental_hits, partition_strategy, name or "compute_sampled_logits", seed,
    )  # fmt: skip


def _sum_rows(x: Any) -> Any:
    """The sums of the rows of a matrix."""
    return reductions.reduce_sum(x, axis=1)


def fractional_max_pool_v2(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, seed: int = 0,
    name: str | None = None,
) -> Any:  # fmt: skip
    """`tf.nn.fractional_max_pool`; one ratio may stand for all sides, and a seed makes each step alike."""
    ratio = _sides(pooling_ratio)
    return fractional_pooling.fractional_max_pool(
        value, ratio, pseudo_random, overlapping, bool(seed), seed, seed, name
    )


def fractional_avg_pool_v2(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, seed: int = 0,
    name: str | None = None,
) -> Any:  # fmt: skip
    """`tf.nn.fractional_avg_pool`; a seed makes each step alike."""
    ratio = _sides(pooling_ratio)
    return fractional_pooling.fractional_avg_pool(
        value, ratio, pseudo_random, overlapping, bool(seed), seed, seed, name
    )


def _sides(pooling_ratio: Any) -> Sequence[float]:
    ratios = list(pooling_ratio) if isinstance(pooling_ratio, list | tuple) else [pooling_ratio]
    if len(ratios) == 4:
        return ratios
    return [1.0, *(ratios * 2 if len(ratios) == 1 else ratios), 1.0]
