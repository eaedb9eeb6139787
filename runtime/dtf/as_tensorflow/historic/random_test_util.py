"""tensorflow.python.kernel_tests.random.util: how well samples fit a distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["anderson_darling", "chi_squared", "test_moment_matching"]


def test_moment_matching(samples: Any, number_moments: int, dist: Any, stride: int = 0) -> list[float]:
    """How many standard deviations each moment of the samples is from the distribution's.

    Args:
      samples: numbers.
      number_moments: how many moments are compared.
      dist: a distribution of scipy.stats.
      stride: the distance between the samples that are used, if not 0.
    """
    values = np.asarray(samples, np.float64).ravel()[:: stride or 1]
    scores = []
    for order in range(1, number_moments + 1):
        expected = dist.moment(order)
        variance = dist.moment(2 * order) - expected**2
        deviation = math.sqrt(max(variance, 1e-30) / values.size)
        scores.append(abs(float(np.mean(values**order)) - expected) / deviation)
    return scores


test_moment_matching.__test__ = False  # type: ignore[attr-defined]


def chi_squared(x: Any, bins: int) -> float:
    """Pearson's statistic of how evenly numbers of [0, 1] fall into bins."""
    values = np.ravel(x)
    counts, _ = np.histogram(values, bins=bins, range=(0, 1))
    expected = values.size / bins
    return float(np.sum((counts - expected) ** 2 / expected))


def anderson_darling(x: Any) -> float:
    """The Anderson-Darling statistic of how evenly numbers spread over [0, 1]."""
    values = np.sort(np.ravel(x))
    count = values.size
    weights = 2 * np.arange(1, count + 1) - 1
    return float(-count - np.sum(weights * (np.log(values) + np.log1p(-values[::-1]))) / count)


