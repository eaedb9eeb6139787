"""Random numbers depend on their parameters by chance only, so nothing flows back; those of gamma distributions alone
have a gradient: how a number moves when its place in the distribution stays.
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
    """The last dimensions of the numbers are those to which alpha, the last input, broadcasts."""
    alpha, numbers = op.inputs[-1], op.outputs[0]
    by_alpha = multiply(grad, apply_op("RandomGammaGrad", alpha=alpha, sample=numbers))
    return [*[None] * (len(op.inputs) - 1), sum_to_shape_of(alpha, by_alpha)]
