"""tf.contrib.factorization: k-means, as operations and as an estimator. Owns the rules for new centers.

    scores, indices, distances, is_initialized, centers, init, train = KMeans(x, 5).training_graph()

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/factorization
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dtf as tf

__all__ = [
    "COSINE_DISTANCE", "KMEANS_PLUS_PLUS_INIT", "KMeans", "KMeansClustering", "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
]  # fmt: skip

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"


class KMeans:
    """The operations of k-means.

    Args:
      inputs: rows [n, size], or a list of such tensors.
      num_clusters: how many centers.
      initial_clusters: "random", "kmeans_plus_plus", centers [num_clusters, size], or a function
        (inputs, num_clusters) that gives them.
      distance_metric: "squared_euclidean" or "cosine".
      use_mini_batch: whether centers move towards the rows of each step; otherwise they become their means.
      random_seed: of the first centers.

    Raises:
      ValueError: another metric or initialization.
    """

    def __init__(
        self, inputs: Any, num_clusters: int, initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE, use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1, random_seed: int = 0, kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:  # fmt: skip
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric passed to Kmeans {distance_metric}")
        if isinstance(initial_clusters, str) and initial_clusters not in (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT):
            raise ValueError(f"Unsupported initialization algorithm {initial_clusters!r}: use {RANDOM_INIT!r}")
        self._inputs = [tf.convert_to_tensor(each) for each in (inputs if isinstance(inputs, list) else [inputs])]
        self._num_clusters, self._initial_clusters = num_clusters, initial_clusters
        self._is_cosine, self._use_mini_batch = distance_metric == COSINE_DISTANCE, use_mini_batch
        self._random_seed = random_seed
        self._start_or_step: Callable[[], Any]

    def training_graph(self) -> tuple[Any, ...]:
        """The operations.

        Returns:
          ([distances to all centers [n, k]], [indices of the nearest centers [n]], [distances to them [n]],
          whether centers are there, the centers, the operation that makes the first, the operation of a step).
        """
        size = self._inputs[0].shape.as_list()[-1]
        shape = [self._num_clusters, size]
        # Centers are made of data: the variables start empty.
        centers = tf.get_variable("clusters", initializer=tf.zeros(shape), trainable=False)
        counts = tf.get_variable(
            "cluster_counts", initializer=tf.zeros([self._num_clusters], tf.int64), trainable=False
        )
        is_initialized = tf.get_variable("initialized", initializer=False, trainable=False)
        rows = tf.concat([self._normal(each) for each in self._inputs], 0)

        def start() -> Any:
            changes = [centers.assign(self._first_centers(rows)).op, counts.assign(tf.zeros_like(counts)).op]
            with tf.control_dependencies(changes):
                return tf.group(is_initialized.assign(True))

        def step() -> Any:
            return self._step(rows, tf.concat(indices, 0), centers, counts)

        init_op = tf.cond(is_initialized, tf.no_op, start)
        distances = [self._distances(self._normal(each), centers) for each in self._inputs]
        indices = [tf.argmin(each, 1) for each in distances]
        nearest = [tf.reduce_min(each, 1) for each in distances]
        self._start_or_step = lambda: tf.cond(is_initialized, step, start)
        return distances, indices, nearest, is_initialized, centers, init_op, step()

    def start_or_step(self) -> Any:
        """An operation that makes the first centers of the rows, or takes a step. For after `training_graph`."""
        return self._start_or_step()

    def _normal(self, rows: Any) -> Any:
        return tf.nn.l2_normalize(rows, axis=1) if self._is_cosine else rows

    def _distances(self, rows: Any, centers: Any) -> Any:
        if self._is_cosine:
            return 1 - tf.matmul(rows, tf.nn.l2_normalize(centers, axis=1), transpose_b=True)
        squares = tf.reduce_sum(tf.square(rows), 1, keepdims=True) + tf.reduce_sum(tf.square(centers), 1)
        return tf.maximum(squares - 2 * tf.matmul(rows, centers, transpose_b=True), 0)

    def _first_centers(self, rows: Any) -> Any:
        given = self._initial_clusters
        if callable(given):
            given = given(self._inputs, self._num_clusters)
        if not isinstance(given, str):
            return self._normal(tf.convert_to_tensor(given, rows.dtype))
        choose = _random_rows if given == RANDOM_INIT else _spread_rows
        found = tf.py_func(
            lambda values: choose(values, self._num_clusters, self._random_seed), [rows], rows.dtype, stateful=False
        )
        found.set_shape([self._num_clusters, rows.shape.as_list()[-1]])
        return found

    def _step(self, rows: Any, indices: Any, centers: Any, counts: Any) -> Any:
        sums = tf.unsorted_segment_sum(rows, indices, self._num_clusters)
        members = tf.unsorted_segment_sum(tf.ones_like(indices), indices, self._num_clusters)
        count = tf.cast(members, rows.dtype)[:, tf.newaxis]
        if self._use_mini_batch:
            seen = tf.cast(counts, rows.dtype)[:, tf.newaxis]
            moved = centers + (sums - count * centers) / tf.maximum(seen + count, 1)
        else:
            moved = tf.where(tf.equal(members, 0), tf.identity(centers), sums / tf.maximum(count, 1))
        with tf.control_dependencies([moved, members]):
            return tf.group(centers.assign(self._normal(moved)), counts.assign_add(members))


def _random_rows(rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    if len(rows) < count:
        raise ValueError(f"k-means needs {count} rows for its first centers, and got {len(rows)}")
    return rows[np.random.RandomState(seed).choice(len(rows), count, replace=False)]


def _spread_rows(rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Rows far from each other: k-means++, Arthur and Vassilvitskii (2007)."""
    random = np.random.RandomState(seed)
    if len(rows) < count:
        raise ValueError(f"k-means needs {count} rows for its first centers, and got {len(rows)}")
    chosen = [rows[random.randint(len(rows))]]
    while len(chosen) < count:
        squares = np.min([np.square(rows - each).sum(1) for each in chosen], 0).astype(np.float64)
        total = squares.sum()
        chosen.append(rows[random.choice(len(rows), p=squares / total if total > 0 else None)])
    return np.stack(chosen).astype(rows.dtype)


class KMeansClustering(tf.estimator.Estimator):
    """k-means as an estimator; `input_fn` gives rows, or {name: rows} with `feature_columns` or of one name.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/factorization/KMeansClustering
    """

    SQUARED_EUCLIDEAN_DISTANCE = SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = COSINE_DISTANCE
    RANDOM_INIT = RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = KMEANS_PLUS_PLUS_INIT
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = "clusters"

    def __init__(
        self, num_clusters: int, model_dir: str | None = None, initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE, seed: int | None = None, use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1, kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None, config: Any = None, feature_columns: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            rows = _rows(features, feature_columns)
            kmeans = KMeans(
                rows, num_clusters, initial_clusters, distance_metric, use_mini_batch, random_seed=seed or 0
            )
            distances, indices, nearest = kmeans.training_graph()[:3]
            loss = tf.reduce_sum(nearest[0])
            tf.summary.scalar("loss/raw", loss)
            predictions = {
                self.ALL_DISTANCES: distances[0], self.CLUSTER_INDEX: indices[0], self.SCORE: nearest[0],
            }  # fmt: skip
            advance = tf.assign_add(tf.train.get_or_create_global_step(), 1)
            hooks = [] if relative_tolerance is None else [_Converged(loss, relative_tolerance)]
            return tf.estimator.EstimatorSpec(
                mode, predictions, loss, tf.group(kmeans.start_or_step(), advance), {self.SCORE: tf.metrics.mean(loss)},
                export_outputs={self.CLUSTER_INDEX: tf.estimator.export.PredictOutput(indices[0])},
                training_hooks=hooks,
            )  # fmt: skip

        super().__init__(model_fn, model_dir, config)

    def predict_cluster_index(self, input_fn: Callable[[], Any]) -> Iterator[Any]:
        """The index of the nearest center of each row."""
        yield from self._predicted(input_fn, self.CLUSTER_INDEX)

    def transform(self, input_fn: Callable[[], Any]) -> Iterator[Any]:
        """The distances of each row to all centers."""
        yield from self._predicted(input_fn, self.ALL_DISTANCES)

    def score(self, input_fn: Callable[[], Any]) -> Any:
        """The sum of the distances to the nearest centers."""
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def cluster_centers(self) -> Any:
        """The centers [k, size]."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)

    def _predicted(self, input_fn: Callable[[], Any], key: str) -> Iterator[Any]:
        for each in self.predict(input_fn, predict_keys=[key]):
            yield each[key]


class _Converged(tf.train.SessionRunHook):
    """Stops when the loss changes by less than a part of itself."""

    def __init__(self, loss: Any, tolerance: float) -> None:
        self._loss, self._tolerance, self._last = loss, tolerance, None

    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss, last = run_values.results, self._last
        self._last = loss
        if last and abs(last - loss) / last < self._tolerance:
            run_context.request_stop()


def _rows(features: Any, feature_columns: Any) -> Any:
    if feature_columns is not None:
        return tf.feature_column.input_layer(features, feature_columns)
    if isinstance(features, dict):
        return tf.concat([tf.convert_to_tensor(features[name]) for name in sorted(features)], 1)
    return tf.convert_to_tensor(features)
