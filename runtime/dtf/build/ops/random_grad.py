"""Nothing flows back through random numbers: they depend on their parameters by chance only."""

from __future__ import annotations

from dtf.build.gradients import not_differentiable

not_differentiable(
    "Multinomial", "RandomGamma", "RandomPoisson", "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal",
    "RandomUniform", "RandomUniformInt", "StatelessRandomNormal", "StatelessRandomUniform", "StatelessTruncatedNormal",
    "TruncatedNormal",
)  # fmt: skip
