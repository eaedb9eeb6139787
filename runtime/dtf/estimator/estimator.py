"""Estimator: a model_fn with a folder, trained, evaluated, asked and exported.

Owns the graphs of these four. `model_calls` calls the user's functions. `train_session`, `evaluation`, `prediction`
and `exporting` own the sessions, `training` the loop over a cluster's tasks.

    estimator = tf.estimator.Estimator(model_fn, "model", params={"learning_rate": 0.01})
    estimator.train(input_fn, max_steps=1000)
    estimator.evaluate(eval_input_fn)["accuracy"]

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/Estimator
"""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dtf import logging
from dtf.build.default_graph import device
from dtf.build.graph import Graph
from dtf.build.ops.random import set_random_seed
from dtf.estimator import prediction
from dtf.estimator.evaluation import evaluate_once, write_figures
from dtf.estimator.exporting import export
from dtf.estimator.model_calls import call_input_fn, call_model_fn, check_model_fn
from dtf.estimator.run_config import RunConfig
from dtf.estimator.spec import GLOBAL_STEP_KEY, EstimatorSpec, ModeKeys
from dtf.estimator.train_session import run_training
from dtf.estimator.warm_start import WarmStartSettings, warm_start_settings
from dtf.train import checkpoint_utils
from dtf.train.basic_session_run_hooks import CheckpointSaverListener, StopAtStepHook
from dtf.train.checkpoint_management import latest_checkpoint
from dtf.train.device_setter import replica_device_setter
from dtf.train.monitored_session import ChiefSessionCreator, MonitoredSession
from dtf.train.session_run_hook import SessionRunHook
from dtf.train.training_util import create_global_step

Hooks = Sequence[SessionRunHook] | None


class Estimator:
    """A model and the folder that holds it.

    Args:
      model_fn: takes features and, as far as it names them, labels, mode, params and config; returns an EstimatorSpec.
      model_dir: folder of checkpoints, summaries and exports; by default the folder of `config`, or else a temporary
          one.
      config: a RunConfig.
      params: handed to model_fn and input_fn; usually a dict.
      warm_start_from: a checkpoint, a folder with one, or WarmStartSettings: where variables get their first values.

    Raises:
      ValueError: model_fn does not take what it would be given, or there are two model_dirs.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/Estimator
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: str | WarmStartSettings | None = None,
    ) -> None:
        check_model_fn(model_fn, params)
        config = RunConfig() if config is None else config
        if not isinstance(config, RunConfig):
            raise ValueError(f"config must be an instance of RunConfig, but provided {config!r}.")
        model_dir = None if model_dir is None else os.fsdecode(model_dir)
        if model_dir and config.model_dir and model_dir != config.model_dir:
            raise ValueError(
                f"model_dir is {model_dir} in the constructor and {config.model_dir} in RunConfig; give it once"
            )
        folder = model_dir or config.model_dir
        if not folder:
            folder = tempfile.mkdtemp()
            logging.warning("Using temporary folder as model directory: %s", folder)
        self._model_fn = model_fn
        self._config = config.replace(model_dir=folder)
        self._params = copy.deepcopy(params if params is not None else {})
        self._warm_start = warm_start_settings(warm_start_from)

    @property
    def model_dir(self) -> str:
        assert self._config.model_dir is not None
        return self._config.model_dir

    @property
    def config(self) -> RunConfig:
        return self._config

    @property
    def params(self) -> Any:
        """A copy of the hyperparameters that model_fn gets."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """model_fn as a function of (features, labels, mode, config), which knows its params."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return call_model_fn(self._model_fn, features, labels, mode, self.params, config)

        return public_model_fn

    def latest_checkpoint(self) -> str | None:
        """The newest complete checkpoint, None without one."""
        return latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """The names of all variables in the newest checkpoint.

        Raises:
          ValueError: no checkpoint exists.
        """
        return [name for name, _ in checkpoint_utils.list_variables(self._required_checkpoint(None))]

    def get_variable_value(self, name: str) -> np.ndarray:
        """A variable's value in the newest checkpoint.

        Raises:
          ValueError: no checkpoint exists.
          NotFoundError: the checkpoint does not contain the variable.
        """
        return checkpoint_utils.load_variable(self._required_checkpoint(None), name)

    def eval_dir(self, name: str | None = None) -> str:
        """The folder of the evaluations' summaries."""
        return os.path.join(self.model_dir, f"eval_{name}" if name else "eval")

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Hooks = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> Estimator:
        """Trains, from the newest checkpoint if there is one, until the input or the steps end.

        Args:
          input_fn: returns (features, labels), or a tf.data Dataset of them.
          steps: how many more steps.
          max_steps: until the global step is this; nothing is done when it is already.
          saving_listeners: called around each checkpoint of the chief.

        Raises:
          ValueError: both `steps` and `max_steps` are given, or one is not positive.
          NanLossDuringTrainingError: the loss became NaN.
        """
        _check_positive(steps=steps, max_steps=max_steps)
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        latest = self.latest_checkpoint()
        if max_steps is not None and latest is not None and step_of(latest) >= max_steps:
            logging.info("Skipping training since max_steps has already saved.")
            return self
        all_hooks = _checked_hooks(hooks)
        if steps is not None or max_steps is not None:
            all_hooks.append(StopAtStepHook(steps, max_steps))
        with self._graph(), device(self._device_fn()):
            create_global_step()
            features, labels, input_hooks = call_input_fn(input_fn, ModeKeys.TRAIN, self.params, self._config)
            spec = self._call_model_fn(features, labels, ModeKeys.TRAIN)
            if self._warm_start is not None and latest is None:
                self._warm_start.apply()
            loss = run_training(spec, [*input_hooks, *all_hooks], list(saving_listeners or ()), self._config)
        logging.info("Loss for final step: %s.", loss)
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Hooks = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint, and writes the figures as summaries into `eval_dir(name)`.

        Args:
          steps: how many batches; None: until the input ends.
          checkpoint_path: the newest by default; without one the model is initialised.
          name: of the evaluation, where there are several.

        Returns:
          The values of the spec's `eval_metric_ops`, "loss" (its mean over the batches) and "global_step".

        Raises:
          ValueError: `steps` is not positive, or the checkpoint does not exist.
        """
        _check_positive(steps=steps)
        checkpoint_path = checkpoint_path or self.latest_checkpoint()
        if checkpoint_path is None:
            logging.info("No trained model in %s; evaluating an initialised model.", self.model_dir)
        config = self._config
        # An evaluator has no cluster: the devices in model_fn or in a cluster's config are for training.
        with self._graph(), device(self._device_fn() if config.evaluation_master else None):
            create_global_step()
            features, labels, input_hooks = call_input_fn(input_fn, ModeKeys.EVAL, self.params, config)
            spec = self._call_model_fn(features, labels, ModeKeys.EVAL)
            all_hooks = [*input_hooks, *_checked_hooks(hooks), *(spec.evaluation_hooks or ())]
            figures = evaluate_once(
                spec, checkpoint_path, steps, all_hooks, config.evaluation_master, self._own_session_config()
            )
        write_figures(self.eval_dir(name), figures, int(figures[GLOBAL_STEP_KEY]), checkpoint_path)
        return figures

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: str | Sequence[str] | None = None,
        hooks: Hooks = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields predictions until the input ends. Nothing happens before the first is taken.

        Args:
          predict_keys: which entries of a dict of predictions; all by default.
          checkpoint_path: the newest by default; without one the model is initialised.
          yield_single_examples: yield rows, rather than the batches as they come.

        Raises:
          ValueError: a key does not exist, or the outputs cannot be split into rows.
        """
        all_hooks = _checked_hooks(hooks)
        checkpoint_path = checkpoint_path or self.latest_checkpoint()
        if checkpoint_path is None:
            logging.info("No trained model in %s; predicting with an initialised model.", self.model_dir)
        with self._graph() as graph:
            create_global_step()
            features, _, input_hooks = call_input_fn(input_fn, ModeKeys.PREDICT, self.params, self._config)
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT)
            predictions = prediction.chosen(spec.predictions, predict_keys)
            creator = ChiefSessionCreator(
                scaffold=spec.scaffold,
                config=self._own_session_config(),
                checkpoint_filename_with_path=checkpoint_path,
            )
            session = MonitoredSession(creator, [*input_hooks, *all_hooks, *(spec.prediction_hooks or ())])
        for batch in prediction.batches(graph, session, predictions):
            if yield_single_examples:
                yield from prediction.examples(batch)
            else:
                yield batch

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = True,
    ) -> bytes:
        """Writes a SavedModel, tagged "serve", into a new folder `export_dir_base/<seconds since the epoch>`.

        Args:
          serving_input_receiver_fn: returns a ServingInputReceiver; see `tf.estimator.export`.
          assets_extra: paths of files to copy, by their paths in the model's folder assets.extra.
          as_text: write saved_model.pbtxt.
          checkpoint_path: the newest by default.
          strip_default_attrs: leave attributes with default values out, for older readers.

        Returns:
          The path of the new folder.

        Raises:
          ValueError: there is no checkpoint, no receiver function, or nothing that can be served.
        """
        if serving_input_receiver_fn is None:
            raise ValueError("An input_receiver_fn must be defined.")
        checkpoint_path = self._required_checkpoint(checkpoint_path)
        with self._graph():
            create_global_step()
            receiver = serving_input_receiver_fn()
            spec = self._call_model_fn(receiver.features, None, ModeKeys.PREDICT)
            return export(
                spec,
                receiver,
                checkpoint_path,
                os.fsdecode(export_dir_base),
                assets_extra,
                as_text,
                strip_default_attrs,
                self._own_session_config(),
            ).encode()

    def export_savedmodel(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """`export_saved_model` by its older name, which keeps default attributes."""
        return self.export_saved_model(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path, strip_default_attrs
        )

    @contextlib.contextmanager
    def _graph(self) -> Iterator[Graph]:
        with Graph().as_default() as graph:
            if self._config.tf_random_seed is not None:
                set_random_seed(self._config.tf_random_seed)
            yield graph

    def _call_model_fn(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        return call_model_fn(self._model_fn, features, labels, mode, self.params, self._config)

    def _device_fn(self) -> Callable[[Any], str] | None:
        """Variables to the ps tasks in turn, other ops to this task; None without a ps."""
        config = self._config
        if config.device_fn is not None:
            return config.device_fn
        worker = f"/job:{config.task_type}/task:{config.task_id}"
        return replica_device_setter(config.num_ps_replicas, worker_device=worker, cluster=config.cluster_spec or None)

    def _own_session_config(self) -> Any:
        """For sessions outside the cluster: nothing is filtered."""
        own = type(self._config.session_config)()
        own.CopyFrom(self._config.session_config)
        if not self._config.evaluation_master:
            del own.device_filters[:]
        return own

    def _required_checkpoint(self, checkpoint_path: str | None) -> str:
        found = checkpoint_path or self.latest_checkpoint()
        if not found:
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        return found


def step_of(checkpoint_path: str) -> int:
    """The global step of a checkpoint."""
    return int(checkpoint_utils.load_variable(checkpoint_path, "global_step"))


def _check_positive(**numbers: int | None) -> None:
    for name, value in numbers.items():
        if value is not None and value <= 0:
            raise ValueError(f"Must specify {name} > 0, given: {value}")


def _checked_hooks(hooks: Hooks) -> list[SessionRunHook]:
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook!r}")
    return list(hooks or ())
