"""Nothing flows back through random numbers: they depend on their parameters by chance only."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    "AllCandidateSampler", "ComputeAccidentalHits", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler",
    "LogUniformCandidateSampler", "Multinomial", "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoisson",
    "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal", "RandomUniform", "RandomUniformInt",
    "StatelessMultinomial", "StatelessRandomBinomial", "StatelessRandomGammaV2", "StatelessRandomGetAlg",
    "StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg", "StatelessRandomNormal",
    "StatelessRandomNormalV2", "StatelessRandomPoisson", "StatelessRandomUniform", "StatelessRandomUniformFullInt",
    "StatelessRandomUniformFullIntV2", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2",
    "StatelessRandomUniformV2", "StatelessShuffle", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2",
    "ThreadUnsafeUnigramCandidateSampler", "TruncatedNormal", "UniformCandidateSampler",
)  # fmt: skip
