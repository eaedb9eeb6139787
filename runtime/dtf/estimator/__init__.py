"""tf.estimator: a model as a function; every task of a cluster runs the same program.

    estimator = tf.estimator.Estimator(model_fn, "model")
    tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(input_fn, max_steps=1000), tf.estimator.EvalSpec(eval_input_fn)
    )

Only re-exports names. `estimator` has the model, `run_config` its place in a cluster, `training` the work of each
task. `canned` has the ready-made estimators (DNNClassifier and similar classes). Strategies are not here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator
"""

from __future__ import annotations

from dtf.estimator import experimental, export, inputs
from dtf.estimator.canned import (
    BaselineClassifier,
    BaselineEstimator,
    BaselineRegressor,
    DNNClassifier,
    DNNEstimator,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearEstimator,
    LinearRegressor,
)
from dtf.estimator.estimator import Estimator
from dtf.estimator.exporter import BestExporter, Exporter, FinalExporter, LatestExporter
from dtf.estimator.more_metrics import add_metrics
from dtf.estimator.run_config import RunConfig
from dtf.estimator.spec import EstimatorSpec, ModeKeys
from dtf.estimator.training import EvalSpec, TrainSpec, train_and_evaluate
from dtf.estimator.warm_start import WarmStartSettings
from dtf.train.basic_session_run_hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    ProfilerHook,
    SecondOrStepTimer,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.warm_starting import VocabInfo


def __getattr__(name: str) -> object:
    import importlib

    from dtf import late

    if name == "tpu":
        return importlib.import_module("dtf.contrib.tpu")
    raise late.missing("dtf.estimator", name)
