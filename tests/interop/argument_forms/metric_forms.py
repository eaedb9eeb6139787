"""tf.metrics: labels, predictions and weights in all forms; the value after one update."""

from __future__ import annotations

from tests.interop.argument_forms.forms import each, forms

_BOTH = ["T([0., 1., 1.]), T([1., 1., 0.])", "[0, 1, 1], [1, 1, 0]", "P([0., 1., 1.]), P([1., 1., 0.])",
         "Q([0., 1., 1.]), T([1., 1., 0.])", "T([[0.], [1.]]), T([[1.], [1.]])", "T([0, 1]), T([1, 1])",
         "T([True, False]), T([True, True])", "T([0., 1.]), T([1., 1., 0.])", "T([[0.], [1.]]), T([1., 1.])"]
_WEIGHTS = ["", ", 2.", ", weights=[1., 0., 2.]", ", weights=T([[1.], [0.]])", ", weights=P([1., 0., 2.])",
            ", weights=[1, 0, 1]", ", name='m'", ", weights=T([1., 2.])"]
_PROBABILITIES = ["T([0, 1, 1]), T([0.2, 0.8, 0.4])", "T([False, True, True]), P([0.2, 0.8, 0.4])",
                  "[[0], [1]], [[0.2], [0.8]]", "T([0, 1, 1]), T([0.2, 1.8, 0.4])"]

CASES = [
    *each("accuracy mean_absolute_error mean_squared_error root_mean_squared_error precision recall true_positives "
          "false_positives true_negatives false_negatives", "tf.metrics.{f}({b}{w})[1]", b=_BOTH, w=_WEIGHTS[:5]),
    *each("accuracy precision", "tf.metrics.{f}({b}{w})[1]", b=_BOTH[:3], w=_WEIGHTS[5:]),
    *forms("tf.metrics.mean({x}{w})[1]", x=["T([1., 2., 3.])", "P([1., 2., 3.])", "[1, 2, 3]", "T(5.)",
           "Q([1., 2., 3.])"],
           w=_WEIGHTS),
    *forms("tf.metrics.mean_tensor({x}{w})[1]", x=["T([1., 2., 3.])", "[1., 2., 3.]", "T([[1.], [2.]])"],
           w=_WEIGHTS[:4]),
    *forms("tf.metrics.auc({b}{a})[1]", b=_PROBABILITIES, a=["", ", num_thresholds=5", ", curve='PR'",
           ", weights=[1., 2., 1.]", ", curve='x'", ", summation_method='minoring'", ", summation_method='majoring'"]),
    *each("precision_at_thresholds recall_at_thresholds true_positives_at_thresholds false_negatives_at_thresholds",
          "tf.metrics.{f}({b}, {t})[1]", b=_PROBABILITIES[:3], t=["[0.5]", "[0.1, 0.9]",
           "thresholds=(0.5,), weights=2."]),
    *each("sensitivity_at_specificity specificity_at_sensitivity", "tf.metrics.{f}({b}, {s})[1]", b=_PROBABILITIES[:2],
          s=["0.5", "0.9, num_thresholds=10", "1.5", "-1."]),
    *forms("tf.metrics.mean_iou({b}, {n}{w})[1]", b=["[0, 1, 1], [1, 1, 0]", "T([0, 1, 1]), P([1, 1, 0])",
           "T([[0, 1]]), T([[1, 1]])"], n=["2", "num_classes=3"], w=["", ", weights=[1., 0., 1.]", ", name='i'"]),
    *forms("tf.metrics.mean_per_class_accuracy({b}, {n}{w})[1]", b=["[0, 1, 1], [1, 1, 0]",
           "T([0, 1, 1]), P([1, 1, 0])"],
           n=["2", "num_classes=3"], w=["", ", weights=[1., 0., 1.]"]),
    *forms("tf.metrics.mean_cosine_distance(T([[1., 0.]]), T([[0.6, 0.8]]), {d})[1]", d=["1", "dim=1", "0",
           "1, weights=2."]),
    *forms("tf.metrics.mean_relative_error({b}, {n})[1]", b=_BOTH[:3], n=["T([1., 2., 0.])", "normalizer=[1., 1., 1.]",
           "T([1.])"]),
    *forms("tf.metrics.percentage_below({x}, {t}{w})[1]", x=["T([1., 2., 3.])", "P([1., 2., 3.])"], t=["2.",
           "threshold=9."],
           w=["", ", weights=[1., 0., 1.]"]),
    *each("recall_at_k precision_at_k average_precision_at_k", "tf.metrics.{f}({b}, {k})[1]",
          b=["T([[0], [1]], tf.int64), T([[.1, .9], [.8, .2]])", "T([0, 1], tf.int64), T([[.1, .9], [.8, .2]])",
             "T([[0], [1]], tf.int64), P([[.1, .9], [.8, .2]])"], k=["1", "k=2", "0"]),
    *forms("tf.metrics.{f}([0., 1.], [1., 1.], {a})[1]", f=["accuracy", "mean_squared_error"],
           a=["metrics_collections=['m']", "updates_collections='u'",
           "metrics_collections='m', updates_collections=['u']"]),
    *forms("(tf.metrics.{f}, [each.name for each in tf.local_variables()])[1]", f=["mean([1.])",
           "accuracy([1.], [1.])",
           "auc([1], [0.5])", "mean([1.], name='x')", "precision([1], [1])", "mean_iou([1], [1], 2)",
           "recall_at_k(T([[0]], tf.int64), [[1., 2.]], 1)"]),
    *forms("(tf.metrics.{f}, [list(map(len, [tf.get_collection('metric_variables'), tf.get_collection('m'), "
           "tf.get_collection('u')]))])[1]", f=["mean([1.], metrics_collections='m')", "accuracy([1.], [1.], "
           "updates_collections=['u'])", "auc([1], [0.5])"]),
]
