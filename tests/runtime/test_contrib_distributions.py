"""tf.contrib.distributions: densities that integrate to one, moments that follow from them, and bijectors."""

import math

import numpy as np
import pytest

import dtf as tf

ds = tf.contrib.distributions
tfb = ds.bijectors
D = tf.distributions


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


def _run(*tensors):
    with tf.Session() as session:
        return session.run(tensors)


def _f(value):
    return tf.constant(value, tf.float64)


def _mixed():
    return ds.Mixture(D.Categorical([0.2, 1.0]), [D.Normal(_f(-1.0), _f(0.5)), ds.Logistic(_f(1.0), _f(0.7))])


def _same():
    return ds.MixtureSameFamily(D.Categorical([0.2, 1.0]), D.Normal(_f([-1.0, 2.0]), _f([0.5, 0.8])))


# By name: the distribution, its range, and the results that it has.
_REAL = {
    "Cauchy": (lambda: ds.Cauchy(_f(0.3), _f(0.8)), (-8e4, 8e4), "cdf quantile entropy"),
    "Gumbel": (lambda: ds.Gumbel(_f(0.3), _f(0.8)), (-6, 40), "cdf quantile entropy mean variance"),
    "Logistic": (lambda: ds.Logistic(_f(0.3), _f(0.8)), (-40, 40), "cdf quantile entropy mean variance"),
    "HalfNormal": (lambda: ds.HalfNormal(_f(0.8)), (0, 20), "cdf quantile entropy mean variance"),
    "InverseGamma": (lambda: ds.InverseGamma(_f(6.5), _f(2.0)), (1e-3, 300), "cdf entropy mean variance"),
    "Kumaraswamy": (lambda: ds.Kumaraswamy(_f(2.5), _f(1.7)), (0, 1), "cdf quantile entropy mean variance"),
    "Chi2": (lambda: ds.Chi2(_f(3.0)), (0, 90), "cdf entropy mean variance"),
    "RelaxedBernoulli": (lambda: ds.RelaxedBernoulli(_f(0.9), logits=_f(0.4)), (0, 1), "cdf"),
    "SinhArcsinh": (lambda: ds.SinhArcsinh(_f(0.1), _f(0.8), _f(0.2), _f(1.1)), (-45, 45), "cdf"),
    "log normal": (
        lambda: ds.TransformedDistribution(D.Normal(_f(0.1), _f(0.5)), tfb.Exp()), (1e-6, 60), "cdf quantile"),
    "Mixture": (_mixed, (-40, 40), "cdf mean variance"),
    "MixtureSameFamily": (_same, (-20, 20), "cdf mean variance"),
}  # fmt: skip


def _grid(low, high):
    edges = np.linspace(low, high, 20001)
    if high - low > 1000:  # heavy tails
        edges = np.sinh(np.linspace(-math.asinh(-low), math.asinh(high), 20001))
    elif high - low > 100:
        edges = np.geomspace(low, high, 20001)
    return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


@pytest.mark.parametrize("name", _REAL)
def test_density_cdf_and_moments_belong_together(name):
    make, (low, high), results = _REAL[name]
    made, (x, width) = make(), _grid(low, high)
    density, logs = _run(made.prob(x), made.log_prob(x))
    density = np.nan_to_num(density)
    assert (density * width).sum() == pytest.approx(1.0, abs=2e-4)
    mean = (x * density * width).sum()
    sums = {
        "mean": mean, "variance": ((x - mean) ** 2 * density * width).sum(),
        "entropy": -(np.where(density > 0, logs, 0.0) * density * width).sum(),
    }  # fmt: skip
    for each in results.split():
        if each == "cdf":
            inside = np.cumsum(density * width)
            place = np.searchsorted(inside, [0.1, 0.5, 0.9])
            np.testing.assert_allclose(_run(made.cdf(x[place] + width[place] / 2))[0], inside[place], atol=2e-4)
        elif each == "quantile":
            p = np.array([0.1, 0.5, 0.9])
            np.testing.assert_allclose(_run(made.cdf(made.quantile(p)))[0], p, rtol=1e-6)
        else:
            assert _run(getattr(made, each)())[0] == pytest.approx(sums[each], rel=4e-3, abs=2e-3), each
    drawn = _run(made.sample(4000, seed=1))[0]
    assert drawn.shape == (4000,) and np.isfinite(drawn).all()
    middle = x[np.searchsorted(np.cumsum(density * width), 0.5)]
    assert (drawn < middle).mean() == pytest.approx(0.5, abs=0.04)


_COUNTS = {
    "Poisson": (lambda: ds.Poisson(_f(3.2)), "cdf mean variance mode"),
    "Poisson by its logarithm": (lambda: ds.Poisson(log_rate=_f(0.5)), "cdf mean variance mode"),
    "Geometric": (lambda: ds.Geometric(probs=_f(0.3)), "cdf mean variance mode entropy"),
    "NegativeBinomial": (lambda: ds.NegativeBinomial(_f(4.5), probs=_f(0.4)), "cdf mean variance mode"),
    "Binomial": (lambda: ds.Binomial(_f(7.0), probs=_f(0.3)), "mean variance mode"),
    "QuantizedDistribution": (lambda: ds.QuantizedDistribution(D.Normal(_f(4.0), _f(2.0)), 0.0, 9.0), "cdf"),
}  # fmt: skip


@pytest.mark.parametrize("name", _COUNTS)
def test_masses_cdf_and_moments_of_counts_belong_together(name):
    make, results = _COUNTS[name]
    made = make()
    x = np.arange(8.0 if name == "Binomial" else 10.0 if name.startswith("Quant") else 120.0)
    (masses,) = _run(made.prob(x))
    assert masses.sum() == pytest.approx(1.0, abs=1e-6)
    mean = (x * masses).sum()
    sums = {
        "mean": mean, "variance": ((x - mean) ** 2 * masses).sum(), "mode": x[masses.argmax()],
        "entropy": -(masses * np.log(np.maximum(masses, 1e-300))).sum(),
    }  # fmt: skip
    for each in results.split():
        if each == "cdf":
            np.testing.assert_allclose(_run(made.cdf(x + 0.5))[0], np.cumsum(masses), atol=1e-6)
        else:
            assert _run(getattr(made, each)())[0] == pytest.approx(sums[each], rel=1e-5), each
    (drawn,) = _run(made.sample(4000, seed=3))
    assert drawn.mean() == pytest.approx(mean, abs=5 * math.sqrt(sums["variance"] / 4000))
    assert (drawn == np.floor(drawn)).all()


def test_one_hot_classes_and_their_relaxed_form():
    logits = np.log([0.2, 0.5, 0.3])
    made = ds.OneHotCategorical(logits=_f(logits))
    drawn, log_prob, kl = _run(
        made.sample(2000, seed=1), made.log_prob(np.eye(3, dtype=np.int32)),
        D.kl_divergence(made, ds.OneHotCategorical(probs=_f([0.5, 0.3, 0.2]))),
    )  # fmt: skip
    np.testing.assert_allclose(log_prob, logits, rtol=1e-6)
    np.testing.assert_allclose(drawn.mean(0), [0.2, 0.5, 0.3], atol=0.04)
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.3, 0.2])
    assert kl == pytest.approx((p * np.log(p / q)).sum())
    relaxed = ds.RelaxedOneHotCategorical(0.6, logits=_f(logits))
    x, found = _run(*(lambda x: (x, relaxed.log_prob(x)))(relaxed.sample(5, seed=2)))
    np.testing.assert_allclose(x.sum(-1), 1.0)
    weights = p * x**-0.6
    expected = math.lgamma(3) + 2 * math.log(0.6) + (np.log(p) - 1.6 * np.log(x)).sum(-1) - 3 * np.log(weights.sum(-1))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


_ROOT = np.array([[1.2, 0.0], [0.5, 0.8]])


def test_normal_vectors_have_the_densities_of_their_covariances():
    loc, x = np.array([0.3, -0.2]), np.array([[0.1, 0.4], [1.0, -2.0]])
    factor = np.array([[0.4], [0.7]])
    low_rank = np.diag([0.5, 0.6]) + factor @ factor.T
    kinds = [
        (ds.MultivariateNormalTriL(_f(loc), _f(_ROOT)), _ROOT),
        (ds.MultivariateNormalFullCovariance(_f(loc), _f(_ROOT @ _ROOT.T)), _ROOT),
        (ds.MultivariateNormalDiagPlusLowRank(_f(loc), _f([0.5, 0.6]), scale_perturb_factor=_f(factor)), low_rank),
        (ds.MultivariateNormalDiag(_f(loc), _f([0.5, 0.6])), np.diag([0.5, 0.6])),
    ]
    for made, root in kinds:
        covariance = root @ root.T
        far = x - loc
        squares = np.einsum("ni,ij,nj->n", far, np.linalg.inv(covariance), far)
        size = 2 * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1]
        log_prob, entropy, found, drawn = _run(
            made.log_prob(x), made.entropy(), made.covariance(), made.sample([3000], seed=4)
        )
        np.testing.assert_allclose(log_prob, -0.5 * (squares + size), rtol=1e-6)
        np.testing.assert_allclose(entropy, 0.5 * (size + 2), rtol=1e-6)
        np.testing.assert_allclose(found, covariance, rtol=1e-6)
        np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.15)
        for other, other_root in kinds:
            inverse = np.linalg.inv(other_root @ other_root.T)
            expected = 0.5 * (np.trace(inverse @ covariance) - 2 - np.linalg.slogdet(inverse @ covariance)[1])
            assert _run(D.kl_divergence(made, other))[0] == pytest.approx(expected, abs=1e-6)


def test_matrices_of_wishart_have_their_density_and_mean():
    scale = _ROOT @ _ROOT.T
    x = np.array([[2.0, 0.3], [0.3, 1.0]])
    df, n = 4.0, 2
    norm = 0.5 * df * n * math.log(2) + 0.5 * df * np.linalg.slogdet(scale)[1]
    norm += 0.5 * math.log(math.pi) + math.lgamma(df / 2) + math.lgamma((df - 1) / 2)
    expected = 0.5 * (df - n - 1) * np.linalg.slogdet(x)[1] - 0.5 * np.trace(np.linalg.inv(scale) @ x) - norm
    for made in (ds.WishartFull(df, _f(scale)), ds.WishartCholesky(df, _f(_ROOT))):
        log_prob, mean, drawn = _run(made.log_prob(x), made.mean(), made.sample(4000, seed=5))
        assert log_prob == pytest.approx(expected)
        np.testing.assert_allclose(mean, df * scale)
        np.testing.assert_allclose(drawn.mean(0), df * scale, atol=0.35)


def test_parts_of_an_event_are_joined_and_batches_reshaped():
    normal = D.Normal(_f([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]), _f(0.5))
    x = np.arange(6.0).reshape(2, 3)
    joined, reshaped = ds.Independent(normal, 1), ds.BatchReshape(normal, [3, 2])
    assert joined.batch_shape.as_list() == [2] and joined.event_shape.as_list() == [3]
    assert joined.sample(5).shape.as_list() == [5, 2, 3] and reshaped.sample(5).shape.as_list() == [5, 3, 2]
    whole, found, again, kl = _run(
        normal.log_prob(x), joined.log_prob(x), reshaped.log_prob(x.reshape(3, 2)),
        D.kl_divergence(joined, ds.Independent(D.Normal(_f([[0.0] * 3] * 2), _f(0.5)), 1)),
    )  # fmt: skip
    np.testing.assert_allclose(found, whole.sum(-1))
    np.testing.assert_allclose(again, whole.reshape(3, 2))
    np.testing.assert_allclose(kl, [5 / 0.5, 3 / 0.5])


_BIJECTORS = {
    "Identity": (tfb.Identity, [0.2, 1.5]), "Exp": (tfb.Exp, [-0.4, 0.7]), "Sigmoid": (tfb.Sigmoid, [-0.4, 0.7]),
    "Softplus": (tfb.Softplus, [-0.4, 0.7]), "hinge": (lambda: tfb.Softplus(_f(0.6)), [-0.4, 0.7]),
    "Softsign": (tfb.Softsign, [-0.4, 0.7]), "Square": (tfb.Square, [0.4, 0.7]),
    "PowerTransform": (lambda: tfb.PowerTransform(0.3), [0.4, 0.7]),
    "Gumbel": (lambda: tfb.Gumbel(_f(0.3), _f(0.8)), [0.4, 0.7]),
    "Weibull": (lambda: tfb.Weibull(_f(1.3), _f(0.8)), [0.4, 0.7]),
    "Kumaraswamy": (lambda: tfb.Kumaraswamy(_f(1.3), _f(0.8)), [0.4, 0.7]),
    "SinhArcsinh": (lambda: tfb.SinhArcsinh(_f(0.3), _f(0.8)), [-0.4, 0.7]),
    "AffineScalar": (lambda: tfb.AffineScalar(_f(0.3), _f(-0.8)), [-0.4, 0.7]),
    "Chain": (lambda: tfb.Chain([tfb.Exp(), tfb.AffineScalar(_f(0.3), _f(0.8))]), [-0.4, 0.7]),
    "Invert": (lambda: tfb.Invert(tfb.Exp()), [0.4, 0.7]),
    "Inline": (
        lambda: tfb.Inline(tf.sinh, tf.asinh, forward_log_det_jacobian_fn=lambda x: tf.log(tf.cosh(x)),
                           forward_min_event_ndims=0), [-0.4, 0.7]),
}  # fmt: skip


@pytest.mark.parametrize("name", _BIJECTORS)
def test_a_bijector_has_its_inverse_and_the_derivative_of_its_function(name):
    make, x = _BIJECTORS[name]
    made, x = make(), np.array(x)
    step = 1e-6
    y, up, down, back, one, other, summed = _run(
        made.forward(_f(x)), made.forward(_f(x + step)), made.forward(_f(x - step)), made.inverse(made.forward(_f(x))),
        made.forward_log_det_jacobian(_f(x), 0), made.inverse_log_det_jacobian(made.forward(_f(x)), 0),
        made.forward_log_det_jacobian(_f(x), 1),
    )  # fmt: skip
    expected = np.log(np.abs(up - down) / (2 * step))
    np.testing.assert_allclose(back, x, rtol=1e-6)
    np.testing.assert_allclose(one, expected, atol=1e-6)
    np.testing.assert_allclose(other, -expected, atol=1e-6)
    assert summed == pytest.approx(expected.sum(), abs=1e-5)


def test_bijectors_of_vectors_and_matrices():
    x = np.array([[0.3, -0.2], [1.0, 0.5]])
    affine = tfb.Affine(shift=_f([1.0, 2.0]), scale_tril=_f(_ROOT), scale_diag=_f([0.5, 0.5]))
    matrix = _ROOT + 0.5 * np.eye(2)
    y, back, logs = _run(
        affine.forward(_f(x)), affine.inverse(affine.forward(_f(x))), affine.forward_log_det_jacobian(_f(x), 1)
    )
    np.testing.assert_allclose(y, x @ matrix.T + [1, 2])
    np.testing.assert_allclose(back, x)
    np.testing.assert_allclose(logs, [np.linalg.slogdet(matrix)[1]] * 2)
    for made in (tfb.Permute([1, 0]), tfb.SoftmaxCentered(), tfb.Reshape([2, 1], [2]), tfb.Chain([tfb.Exp(), affine])):
        np.testing.assert_allclose(_run(made.inverse(made.forward(_f(x))))[0], x, rtol=1e-6)
    flat = np.arange(1.0, 7.0)
    lower, upper, back, again = _run(
        ds.fill_triangular(_f(flat)), ds.fill_triangular(_f(flat), upper=True),
        ds.fill_triangular_inverse(ds.fill_triangular(_f(flat))),
        ds.fill_triangular_inverse(ds.fill_triangular(_f(flat), upper=True), upper=True),
    )  # fmt: skip
    np.testing.assert_array_equal(lower, [[4, 0, 0], [6, 5, 0], [3, 2, 1]])
    np.testing.assert_array_equal(upper, [[1, 2, 3], [0, 5, 6], [0, 0, 4]])
    np.testing.assert_array_equal(back, flat)
    np.testing.assert_array_equal(again, flat)


def test_a_transformed_vector_has_the_density_of_its_parts():
    made = ds.TransformedDistribution(
        D.Normal(_f(0.0), _f(1.0)), tfb.Affine(shift=_f([1.0, 2.0]), scale_tril=_f(_ROOT)), event_shape=[2]
    )
    same = ds.MultivariateNormalTriL(_f([1.0, 2.0]), _f(_ROOT))
    x = np.array([[0.1, 0.4], [1.0, -2.0]])
    assert made.sample(3).shape.as_list() == [3, 2]
    one, other, first, second = _run(made.log_prob(x), same.log_prob(x), made.entropy(), same.entropy())
    np.testing.assert_allclose(one, other)
    assert first == pytest.approx(second)
    laplace = ds.VectorLaplaceDiag(_f([0.0, 1.0]), _f([0.5, 2.0]))
    expected = -np.log(2.0) * 2 - np.log(1.0) - (np.abs(x - [0, 1]) / [0.5, 2.0]).sum(-1)
    np.testing.assert_allclose(_run(laplace.log_prob(x))[0], expected)


@pytest.mark.parametrize("kind, parameters", [
    (ds.Gumbel, [(0.3, 0.8), (0.0, 1.1)]), (D.Laplace, [(0.3, 0.8), (0.0, 1.1)]), (ds.HalfNormal, [(0.8,), (1.1,)]),
])  # fmt: skip
def test_divergences_are_integrals(kind, parameters):
    a, b = (kind(*map(_f, each)) for each in parameters)
    x, width = _grid(0 if kind is ds.HalfNormal else -30, 30)
    p, q, found = _run(a.log_prob(x), b.log_prob(x), D.kl_divergence(a, b))
    assert found == pytest.approx(np.nansum(np.exp(p) * (p - q) * width), abs=1e-4)


def test_misuse_is_named():
    with pytest.raises(ValueError, match="Must pass probs or logits, but not both"):
        ds.Geometric()
    with pytest.raises(TypeError, match="cat must be a Categorical distribution"):
        ds.Mixture(D.Normal(0.0, 1.0), [D.Normal(0.0, 1.0)])
    with pytest.raises(ValueError, match=r"cat.num_classes != len\(components\): 2 vs. 1"):
        ds.Mixture(D.Categorical([0.1, 0.2]), [D.Normal(0.0, 1.0)])
    with pytest.raises(ValueError, match="does not correspond to a triangular matrix"):
        ds.fill_triangular([1.0, 2.0])
    with pytest.raises(ValueError, match=r"must be larger than min_event_ndims \(1\)"):
        tfb.SoftmaxCentered().forward_log_det_jacobian([1.0], 0)


def test_tensors_of_another_dtype_reach_the_formula_and_python_values_get_the_dtype_of_samples():
    draws = tf.constant([[0.0, 1.0], [1.0, 1.0]])
    bernoulli = tf.distributions.Bernoulli(logits=tf.constant([[0.5, -1.0], [2.0, 0.0]]))
    independent = tf.contrib.distributions.Independent(bernoulli, 1)
    with tf.Session() as session:
        joint, single = session.run([independent.log_prob(draws), bernoulli.log_prob(draws)])
        assert session.run(tf.distributions.Normal(0.0, 1.0).prob(1)) == pytest.approx(0.24197, abs=1e-5)
    assert joint == pytest.approx(single.sum(1))
    with pytest.raises(TypeError, match="float"):
        tf.distributions.Normal(0.0, 1.0).prob(tf.constant(1))
