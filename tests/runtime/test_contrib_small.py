"""Small modules of tf.contrib: nn, sparsemax, mixed_precision, factorization, cluster_resolver, and aliases."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dtf as tf
from dtf.contrib import factorization, mixed_precision, nn, sparsemax


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        yield


def fetch(value, feed_dict=None):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(value, feed_dict)


def test_alpha_dropout_keeps_mean_and_variance():
    x = tf.nn.selu(tf.random_normal([20000], seed=2))
    dropped = nn.alpha_dropout(x, 0.8, seed=3)
    before, after = (np.asarray(each) for each in fetch([tf.nn.moments(x, [0]), tf.nn.moments(dropped, [0])]))
    np.testing.assert_allclose(before, after, atol=0.05)
    assert nn.alpha_dropout(x, 1.0) is x
    with pytest.raises(ValueError, match="keep_prob must be"):
        nn.alpha_dropout(x, 0.0)


def test_losses_of_version_0_take_logits_first():
    logits = tf.constant([[1.0, 2.0], [3.0, 1.0]])
    ids = tf.constant([1, 0])
    one_hot = tf.one_hot(ids, 2)
    first = nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits, ids)
    second = nn.deprecated_flipped_softmax_cross_entropy_with_logits(logits, one_hot)
    third = nn.deprecated_flipped_sigmoid_cross_entropy_with_logits(logits, one_hot)
    one, two, three = fetch([first, second, third])
    np.testing.assert_allclose(one, two, rtol=1e-5)
    np.testing.assert_allclose(three, np.log1p(np.exp([[1, -2], [-3, 1]])), rtol=1e-5)
    assert fetch(nn.nth_element([[3, 1, 2], [6, 5, 4]], 1)).tolist() == [2, 5]
    np.testing.assert_allclose(fetch(nn.scaled_softplus([1.0, 9.0], 0.1, 2.0)), [1, 2], atol=1e-4)


def test_sparsemax_is_the_nearest_point_of_the_simplex():
    logits = tf.constant([[0.1, 0.2, 0.15], [3.0, 1.0, -2.0]])
    found = sparsemax.sparsemax(logits)
    labels = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    loss = sparsemax.sparsemax_loss(logits, found, labels)
    gradient = tf.gradients(loss, logits)[0]
    values, slopes = fetch([found, gradient])
    np.testing.assert_allclose(values, [[0.28333, 0.38333, 0.33333], [1, 0, 0]], atol=1e-4)
    np.testing.assert_allclose(slopes, values - [[0, 1, 0], [1, 0, 0]], atol=1e-5)


def test_a_loss_scale_shrinks_after_gradients_that_are_not_finite():
    x = tf.Variable(1.0)
    factor = tf.placeholder_with_default(1.0, [])
    manager = mixed_precision.ExponentialUpdateLossScaleManager(8.0, 2, 1, 2.0, 0.5)
    optimizer = mixed_precision.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.25), manager)
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(tf.square(x) * factor, step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        scales = []
        for value in (1.0, 1.0, float("inf"), 1.0):
            session.run(train, {factor: value})
            scales.append(float(session.run(manager.get_loss_scale())))
        assert scales == [8.0, 16.0, 8.0, 8.0]
        assert session.run([x, step]) == [0.125, 3]
    with pytest.raises(ValueError, match="at least 1"):
        mixed_precision.FixedLossScaleManager(0.5)


POINTS = np.concatenate([np.random.RandomState(0).normal(center, 0.1, (20, 2)) for center in (-2, 0, 3)])


@pytest.mark.parametrize("init", ["random", "kmeans_plus_plus", [[-1.0, -1.0], [0.0, 0.0], [2.0, 2.0]]])
@pytest.mark.parametrize("use_mini_batch", [False, True])
def test_k_means_finds_the_centers(use_mini_batch, init):
    x = tf.placeholder(tf.float32, [None, 2])
    kmeans = factorization.KMeans(x, 3, init, use_mini_batch=use_mini_batch, random_seed=4)
    _, (indices,), (scores,), _, centers, init_op, train = kmeans.training_graph()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(init_op, {x: POINTS})
        for _ in range(30):
            session.run(train, {x: POINTS})
        found = session.run(centers)
        first, last = session.run([indices, scores], {x: POINTS})
    np.testing.assert_allclose(np.sort(found[:, 0]), [-2, 0, 3], atol=0.2)
    assert len(set(first[:20])) == 1 and last.mean() < 0.1


def test_k_means_is_an_estimator_too(tmp_path):
    def input_fn():
        return tf.train.limit_epochs(tf.convert_to_tensor(POINTS, dtype=tf.float32), num_epochs=1)

    kmeans = factorization.KMeansClustering(
        3, str(tmp_path), "kmeans_plus_plus", use_mini_batch=False, seed=2, relative_tolerance=1e-9
    )
    for _ in range(4):
        kmeans.train(input_fn)
    assert kmeans.score(input_fn) < 5
    np.testing.assert_allclose(np.sort(kmeans.cluster_centers()[:, 0]), [-2, 0, 3], atol=0.1)
    assert len({int(each) for each in kmeans.predict_cluster_index(input_fn)}) == 3
    assert next(iter(kmeans.transform(input_fn))).shape == (3,)
    with pytest.raises(ValueError, match="Unsupported distance metric"):
        factorization.KMeans(tf.zeros([3, 2]), 2, distance_metric="hamming")


def test_a_resolver_reads_tf_config(monkeypatch):
    cluster = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}))
    found = tf.contrib.cluster_resolver.TFConfigClusterResolver(rpc_layer="grpc")
    assert found.cluster_spec().as_dict() == cluster
    assert (found.task_type, found.task_id, found.master()) == ("worker", 1, "grpc://c:1")
    assert found.master("ps", 0) == "grpc://a:1"
    simple = tf.contrib.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["d:1"]}), "grpc://m:1")
    assert simple.master() == "grpc://m:1"
    both = tf.contrib.cluster_resolver.UnionResolver(found, simple)
    assert both.cluster_spec().job_tasks("worker") == ["b:1", "c:1", "d:1"]
    monkeypatch.delenv("TF_CONFIG")
    assert tf.contrib.cluster_resolver.TFConfigClusterResolver().master() == ""


def test_older_places_give_public_names():
    assert tf.contrib.keras.layers.Dense is tf.keras.layers.Dense
    assert tf.contrib.deprecated.scalar_summary is tf.summary.scalar
    assert tf.contrib.stateless.stateless_random_uniform is tf.random.stateless_uniform
    assert tf.contrib.checkpoint.CheckpointManager is tf.train.CheckpointManager
    with pytest.raises(ValueError, match="No SignatureDef with key 'x'"):
        tf.contrib.saved_model.get_signature_def_by_key(tf.MetaGraphDef(), "x")
