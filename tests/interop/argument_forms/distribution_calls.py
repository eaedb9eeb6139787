"""tf.distributions: formulas, shapes and divergences, with parameters of all forms."""

from __future__ import annotations

from tests.interop.argument_forms.forms import forms

_OF_TWO = ["([1., 2.], [3., 4.])", "(T([[1.], [2.]]), T([3., 4.]))", "(P([1., 2.]), 3.)", "(1, 2.)",
    "(np.float64(1.), 2.)"]
_VALUES = [
    "log_prob(0.5)", "prob([0.25, 0.5])", "cdf(0.5)", "entropy()", "mean()", "variance()", "stddev()", "mode()",
    "batch_shape", "event_shape", "dtype",
]
_COUNTED = [
    "tf.distributions.Bernoulli(probs=[.2, .8])", "tf.distributions.Bernoulli([0.5, -1.])",
    "tf.distributions.Bernoulli(probs=P([.2, .8]), dtype=tf.float32)",
    "tf.distributions.Categorical([[1., 2.], [0., 3.]])",
    "tf.distributions.Categorical(probs=[[.3, .7], [.5, .5]])",
    "tf.distributions.Categorical(logits=T([0., 1.]), dtype=tf.int64)",
]
_VECTORS = [
    "tf.distributions.Dirichlet([1., 2., 3.])", "tf.distributions.Dirichlet([[1.5, 2.], [3., 4.]])",
    "tf.distributions.Multinomial(4., probs=[.2, .3, .5])",
    "tf.distributions.Multinomial(T([4., 2.]), logits=[[0., 1.], [1., 1.]])",
    "tf.distributions.DirichletMultinomial(4., [1., 2., 3.])",
]

CASES = [
    *forms("tf.distributions.{c}{a}.{m}", c="Normal Laplace Uniform Gamma Beta".split(), a=_OF_TWO,
        m=_VALUES),
    *forms("tf.distributions.{c}({a}).{m}", c=["Exponential"], a=["2.", "[1., 2.]", "P([1., 2.])"],
        m=["log_prob(0.5)", "cdf(1.)", "entropy()", "mean()", "variance()", "stddev()", "mode()", "batch_shape"]),
    *forms("tf.distributions.StudentT({a}).{m}", a=["3., 0., 1.", "[3., 5.], T([0., 1.]), 2."], m=["log_prob(0.5)",
        "cdf(1.)", "entropy()", "mean()", "variance()", "mode()", "batch_shape"]),
    *forms("{d}.{m}", d=_COUNTED, m=["log_prob([1, 0])", "prob(1)", "entropy()", "mode()", "batch_shape",
        "event_shape", "dtype", "sample(3).shape", "sample().shape", "sample([2, 1]).dtype"]),
    *forms("{d}.{m}", d=_COUNTED[:3], m=["mean()", "variance()", "stddev()", "log_prob([1., 0.])"]),
    *forms("{d}.{m}", d=_VECTORS, m=["mean()", "variance()", "covariance()", "batch_shape", "event_shape",
        "sample(2).shape", "total_concentration", "batch_shape_tensor()"]),
    *forms("tf.distributions.Dirichlet([1., 2., 3.]).{m}", m=["log_prob([.2, .3, .5])", "entropy()", "mode()",
        "prob([[.2, .3, .5]])"]),
    *forms("{d}.{m}", d=[_VECTORS[2], _VECTORS[4]], m=["log_prob([1., 1., 2.])",
        "prob([[4., 0., 0.], [1., 2., 1.]])"]),
    *forms("tf.distributions.kl_divergence(tf.distributions.{c}(1., 2.), tf.distributions.{c}({b}))", c=["Normal",
        "Gamma", "Beta"], b=["2., 1.", "[1., 3.], 2."]),
    *forms("tf.distributions.kl_divergence(tf.distributions.Uniform(0., 1.), tf.distributions.Uniform({b}))",
        b=["0., 2.", "0.5, 1.", "[-1., 0.], 3."]),
    *forms("{a}.kl_divergence({b})", a=_COUNTED[:2], b=_COUNTED[:2]),
    *forms("{a}.cross_entropy({b})", a=_COUNTED[3:5], b=_COUNTED[3:5]),
    *forms("tf.distributions.Normal(0., 1.).{m}", m=["quantile(0.9)", "survival_function(1.)", "log_cdf(0.)",
        "log_survival_function(1.)", "sample(2).shape", "name", "parameters['loc']", "is_scalar_batch()",
        "reparameterization_type", "covariance()"]),
    *forms("tf.distributions.Bernoulli({a})", a=["", "[1.], [.5]", "logits=None, probs=None"]),
    "tf.distributions.kl_divergence(tf.distributions.Normal(0., 1.), tf.distributions.Uniform())",
]
