"""tf.contrib.learn, the predecessor of tf.estimator: Experiment, learn_runner, estimators with `fit`.

Only re-exports names; each part is imported at first use.
"""

from __future__ import annotations

from dtf import late

_HERE = "dtf.contrib.learn."
_NAMES = {
    **dict.fromkeys(("Experiment", "learn_runner", "RunConfig", "ModeKeys", "MetricSpec", "PredictionKey",
                     "make_export_strategy"), _HERE + "experiment"),
    **dict.fromkeys(
        ("DNNClassifier", "DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor", "DNNRegressor", "Estimator",
         "LinearClassifier", "LinearRegressor", "ModelFnOps", "SKCompat", "TaskType",
         "infer_real_valued_columns_from_input"),
        _HERE + "estimators",
    ),
}  # fmt: skip
_NAMESPACES = {name: _HERE + name for name in "datasets experiment estimators mnist preprocessing".split()}
_NAMESPACES["python"] = _HERE[:-1]
_find, __dir__ = late.names(globals(), _NAMES, _NAMESPACES)


def __getattr__(name: str) -> object:
    if name == "utils":
        return _find("experiment")
    if name in ("run", "tune") and "experiment" in globals():
        return getattr(_find("experiment"), name)
    return _find(name)
