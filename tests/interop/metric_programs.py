"""A program of either runtime: every function of tf.metrics, over three batches.

    python metric_programs.py dtf|tensorflow.compat.v1 values.npz

Writes the updates and the values after each batch, and the metric's variables at the end; prints as JSON the names and
dtypes of the variables, and how many tensors the collections have.
"""

from __future__ import annotations

import importlib
import json
import sys
from types import SimpleNamespace

import numpy as np

BATCHES = 3
THRESHOLDS = [0.1, 0.4, 0.5, 0.9]


def batch(number: int) -> dict[str, np.ndarray]:
    """What is fed in the step of this number."""
    random = np.random.RandomState(number)
    truth = random.randint(0, 2, 8)
    return {
        "labels": truth.astype(np.int64),
        "guesses": np.where(random.uniform(size=8) < 0.7, truth, 1 - truth).astype(np.int64),
        "scores": np.clip(random.normal(0.35 + 0.3 * truth, 0.25), 0, 1).astype(np.float32),
        "weights": (random.uniform(0, 2, 8) * (random.uniform(size=8) > 0.2)).astype(np.float32),
        "values": random.uniform(-1, 1, (8, 3)).astype(np.float32),
        "others": random.uniform(-1, 1, (8, 3)).astype(np.float32),
        "matrix_weights": random.uniform(0, 2, (8, 3)).astype(np.float32),
        "column": random.uniform(0, 2, (8, 1)).astype(np.float32),
        "classes": random.randint(0, 4, 8).astype(np.int64),
        "class_guesses": random.randint(0, 4, 8).astype(np.int64),
        "class_scores": random.uniform(size=(8, 5)).astype(np.float32),
        "label_sets": np.stack([random.choice(5, 2, replace=False) for _ in range(8)]).astype(np.int64),
        "odd_labels": np.stack([random.choice(7, 2, replace=False) - 1 for _ in range(8)]).astype(np.int64),
        "none": np.zeros(8, np.int64),
    }


def sparse_labels(tf, x):
    """Of every row one or two of its labels, none of the third row."""
    rows = [[0, 0], [0, 1], [1, 0], [3, 0], [4, 0], [4, 1], [5, 0], [6, 0], [6, 1], [7, 0]]
    return tf.SparseTensor(np.array(rows, np.int64), tf.gather_nd(x.label_sets, rows), [8, 2])


METRICS = {
    "mean": lambda m, tf, x: m.mean(x.values),
    "mean_weighted": lambda m, tf, x: m.mean(x.values, x.column, name="named"),
    "mean_tensor": lambda m, tf, x: m.mean_tensor(x.values),
    "mean_tensor_weighted": lambda m, tf, x: m.mean_tensor(x.values, x.column),
    "accuracy": lambda m, tf, x: m.accuracy(x.labels, x.guesses),
    "accuracy_weighted": lambda m, tf, x: m.accuracy(x.labels, x.guesses, x.weights),
    "mean_squared_error": lambda m, tf, x: m.mean_squared_error(x.values, x.others, x.matrix_weights),
    "root_mean_squared_error": lambda m, tf, x: m.root_mean_squared_error(x.values, x.others),
    "mean_absolute_error": lambda m, tf, x: m.mean_absolute_error(x.values, x.others, x.column),
    "mean_relative_error": lambda m, tf, x: m.mean_relative_error(x.values, x.others, tf.round(x.others * 2.0)),
    "mean_relative_error_weighted": lambda m, tf, x: m.mean_relative_error(x.values, x.others, x.values, x.column),
    "mean_cosine_distance": lambda m, tf, x: m.mean_cosine_distance(
        tf.nn.l2_normalize(x.values, 1), tf.nn.l2_normalize(x.others, 1), 1
    ),
    "mean_cosine_distance_weighted": lambda m, tf, x: m.mean_cosine_distance(x.values, x.others, 1, x.column),
    "percentage_below": lambda m, tf, x: m.percentage_below(x.values, 0.2),
    "percentage_below_weighted": lambda m, tf, x: m.percentage_below(x.values, 0.2, x.matrix_weights),
    **{
        f"{kind}_{weights}": lambda m, tf, x, kind=kind, weights=weights: getattr(m, kind)(
            x.labels, x.guesses, getattr(x, weights, None)
        )
        for kind in (
            "true_positives", "false_positives", "true_negatives", "false_negatives", "precision", "recall"
        )
        for weights in ("unweighted", "weights")
    },
    "precision_of_nothing": lambda m, tf, x: m.precision(x.none, x.none),
    "recall_of_nothing": lambda m, tf, x: m.recall(x.none, x.none),
    **{
        f"{kind}_at_thresholds_{weights}": lambda m, tf, x, kind=kind, weights=weights: getattr(
            m, f"{kind}_at_thresholds"
        )(x.labels, x.scores, THRESHOLDS, getattr(x, weights, None))
        for kind in (
            "true_positives", "false_positives", "true_negatives", "false_negatives", "precision", "recall"
        )
        for weights in ("unweighted", "weights")
    },
    **{
        f"auc_{curve}_{method}": lambda m, tf, x, curve=curve, method=method: m.auc(
            x.labels, x.scores, curve=curve, summation_method=method, num_thresholds=20
        )
        for curve, methods in {
            "ROC": ("trapezoidal", "minoring", "majoring"),
            "PR": ("trapezoidal", "minoring", "majoring", "careful_interpolation"),
        }.items()
        for method in methods
    },
    "auc": lambda m, tf, x: m.auc(x.labels, x.scores, x.weights),
    "auc_thresholds": lambda m, tf, x: m.auc(x.labels, x.scores, thresholds=[0.0, 0.3, 0.6, 1.0]),
    "auc_of_nothing": lambda m, tf, x: m.auc(x.none, x.scores),
    "sensitivity": lambda m, tf, x: m.sensitivity_at_specificity(x.labels, x.scores, 0.7),
    "sensitivity_weighted": lambda m, tf, x: m.sensitivity_at_specificity(x.labels, x.scores, 0.4, x.weights, 30),
    "specificity": lambda m, tf, x: m.specificity_at_sensitivity(x.labels, x.scores, 0.7),
    "specificity_weighted": lambda m, tf, x: m.specificity_at_sensitivity(x.labels, x.scores, 0.4, x.weights, 30),
    "mean_iou": lambda m, tf, x: m.mean_iou(x.classes, x.class_guesses, 5),
    "mean_iou_weighted": lambda m, tf, x: m.mean_iou(x.classes, x.class_guesses, 4, x.weights),
    "mean_per_class_accuracy": lambda m, tf, x: m.mean_per_class_accuracy(x.classes, x.class_guesses, 5),
    "mean_per_class_accuracy_weighted": lambda m, tf, x: m.mean_per_class_accuracy(
        x.classes, x.class_guesses, 4, x.weights
    ),
    **{
        f"{kind}_at_{k}": lambda m, tf, x, kind=kind, k=k: getattr(m, f"{kind}_at_k")(x.label_sets, x.class_scores, k)
        for kind in ("precision", "recall", "average_precision")
        for k in (1, 3)
    },
    **{
        f"{kind}_at_2_weighted": lambda m, tf, x, kind=kind: getattr(m, f"{kind}_at_k")(
            x.label_sets, x.class_scores, 2, weights=x.weights
        )
        for kind in ("precision", "recall", "average_precision")
    },
    **{
        f"{kind}_at_2_sparse": lambda m, tf, x, kind=kind: getattr(m, f"{kind}_at_k")(
            sparse_labels(tf, x), x.class_scores, 2
        )
        for kind in ("precision", "recall")
    },
    **{
        f"{kind}_at_3_class": lambda m, tf, x, kind=kind: getattr(m, f"{kind}_at_k")(
            x.label_sets, x.class_scores, 3, class_id=2
        )
        for kind in ("precision", "recall")
    },
    "precision_at_odd": lambda m, tf, x: m.precision_at_k(x.odd_labels, x.class_scores, 2),
    "recall_at_odd": lambda m, tf, x: m.recall_at_k(x.odd_labels, x.class_scores, 2),
    "average_precision_at_odd": lambda m, tf, x: m.average_precision_at_k(x.odd_labels, x.class_scores, 2),
    "average_precision_sparse": lambda m, tf, x: m.average_precision_at_k(
        tf.SparseTensor([[row, 0] for row in range(8)], x.classes, [8, 1]), x.class_scores, 3
    ),
    "average_precision_sparse_odd": lambda m, tf, x: m.average_precision_at_k(
        tf.SparseTensor([[row // 2, row % 2] for row in range(16)], tf.reshape(x.odd_labels, [16]), [8, 2]),
        x.class_scores, 2,
    ),
    "recall_twice": lambda m, tf, x: m.recall_at_k(x.label_sets[:, :1] * [1, 1], x.class_scores, 2),
    "one_label": lambda m, tf, x: m.recall_at_k(x.classes[:, None], x.class_scores, 2, name="top"),
    "one_label_flat": lambda m, tf, x: m.recall_at_k(x.classes, x.class_scores, 2),
    "precision_at_top": lambda m, tf, x: m.precision_at_top_k(x.label_sets, x.label_sets[:, ::-1] % 3, 2),
    "recall_at_top": lambda m, tf, x: m.recall_at_top_k(x.label_sets, x.label_sets[:, :1], 1),
    "deep_recall": lambda m, tf, x: m.recall_at_k(
        tf.reshape(x.label_sets, [2, 4, 2]), tf.reshape(x.class_scores, [2, 4, 5]), 2
    ),
}  # fmt: skip


OTHER_NAMES = (
    "mean_iou", "auc_PR_careful", "true_positives_at_thresholds", "false_positives_at_thresholds",
    "true_negatives_at_thresholds", "false_negatives_at_thresholds",
)  # fmt: skip
"""The values of these are the outputs of other ops than TensorFlow's."""


def evaluate(tf):
    """Returns (values, names) of all metrics, which are in one graph."""
    values, names, made = {}, {}, {}
    with tf.Graph().as_default() as graph:
        places = {
            key: tf.placeholder(value.dtype, value.shape, name=f"fed_{key}") for key, value in batch(0).items()
        }
        for name, metric in METRICS.items():
            before = len(tf.local_variables())
            with tf.variable_scope(f"of_{name}"):
                value, update = made[name] = metric(tf.metrics, tf, SimpleNamespace(**places))
            variables = tf.local_variables()[before:]
            named = [[each.op.name, each.dtype.base_dtype.name, str(each.shape)] for each in variables]
            results = [] if name.startswith(OTHER_NAMES) else [value.op.name, update.op.name]
            names[name] = [named, str(value.shape), str(update.shape), *results]
        assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == tf.local_variables() and not tf.global_variables()
        current = {name: value for name, (value, _) in made.items()}
        updates = {name: update for name, (_, update) in made.items()}
        with tf.Session(graph=graph) as session:
            session.run(tf.local_variables_initializer())
            for number in range(BATCHES):
                feed = {place: batch(number)[key] for key, place in places.items()}
                values |= {f"{name}|value {number}": value for name, value in session.run(current, feed).items()}
                values |= {f"{name}|update {number}": value for name, value in session.run(updates, feed).items()}
            values |= {f"{name}|last value": value for name, value in session.run(current).items()}
            kept = {each.op.name: each for each in tf.local_variables()}
            values |= {f"variable {name}": value for name, value in session.run(kept).items()}
    return values, names


def main(runtime: str, path: str) -> None:
    tf = importlib.import_module(runtime)
    if runtime != "dtf":
        tf.disable_v2_behavior()
    values, names = evaluate(tf)
    np.savez(path, **values)
    print(json.dumps(names))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
