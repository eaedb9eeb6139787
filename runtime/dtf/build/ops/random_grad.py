"""Random numbers are not differentiable with respect to their parameters, so their ops pass no gradient on. The
exception is the gamma distribution: its gradient moves a number at a fixed quantile.
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops.math import multiply
from dtf.build.ops.math_grad import sum_to_shape_of
from dtf.build.tensor import Operation

not_differentiable(
    "AllCandidateSampler", "ComputeAccidentalHits", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler",
    "LogUniformCandidateSampler", "Multinomial", "NonDeterministicInts", "ParameterizedTruncatedNormal",
    "RandomGammaGrad", "RandomPoisson", "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal", "RandomUniform",
    "RandomUniformInt", "RngReadAndSkip", "RngSkip", "StatefulRandomBinomial", "StatefulStandardNormalV2",
    "StatefulTruncatedNormal", "StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt",
    "StatelessMultinomial", "StatelessRandomBinomial", "StatelessRandomGetAlg", "StatelessRandomGetKeyCounter",
    "StatelessRandomGetKeyCounterAlg", "StatelessRandomNormal", "StatelessRandomNormalV2", "StatelessRandomPoisson",
    "StatelessRandomUniform", "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2",
    "StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessRandomUniformV2", "StatelessShuffle",
    "StatelessTruncatedNormal", "StatelessTruncatedNormalV2", "ThreadUnsafeUnigramCandidateSampler",
    "TruncatedNormal", "UniformCandidateSampler",
)  # fmt: skip


@gradient("RandomGamma", "StatelessRandomGammaV2", "StatelessRandomGammaV3")
def _(op: Operation, grad: Any) -> list[Any]:
    """The last dimensions of the result are those that alpha, the last input, broadcasts to."""
    alpha, numbers = op.inputs[-1], op.outputs[0]
    by_alpha = multiply(grad, apply_op("RandomGammaGrad", alpha=alpha, sample=numbers))
    return [*[None] * (len(op.inputs) - 1), sum_to_shape_of(alpha, by_alpha)]
