"""RunConfig: where and how an Estimator runs; the model is separate.

    config = tf.estimator.RunConfig(model_dir="model", save_checkpoints_steps=500)

The place in the cluster comes from TF_CONFIG when the object is made (see `cluster_place`), the rest from arguments.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/RunConfig
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from dtf.estimator.cluster_place import ClusterPlace, TaskType, place_from
from dtf.wire.cluster import ClusterSpec
from dtf.wire.pb import config_pb2, rewriter_config_pb2

_USE_DEFAULT: Any = object()
_SAVE_CHECKPOINTS_SECS = 600
_PROTOCOLS = (None, "grpc")
_FIXED = ("place",)


@dataclass(frozen=True)
class RunConfig:
    """The configuration of a run.

    Args:
      model_dir: folder of checkpoints, summaries and exports.
      tf_random_seed: seed of every graph that is made.
      save_summary_steps: steps between two summaries; 0 writes none.
      save_checkpoints_steps, save_checkpoints_secs: interval of checkpoints, at most one of them; every 600 s by
        default, None for both saves none.
      session_config: a ConfigProto for all sessions. By default a task of a cluster connects only to itself and the ps
        tasks, so that it waits for no other worker.
      keep_checkpoint_max: how many checkpoints are kept; 0 keeps all.
      keep_checkpoint_every_n_hours: one of this many hours is kept for good.
      log_step_count_steps: steps between two lines of loss and steps/s.
      train_distribute, eval_distribute, experimental_distribute: strategies, which are not supported; None.
      device_fn: takes an Operation, returns its device; by default variables go to the ps tasks in turn.
      protocol: of the servers that `train_and_evaluate` starts; "grpc".
      experimental_max_worker_delay_secs: `train_and_evaluate` starts worker i (i + 1) * 5 s late, at most this late,
        so that few workers make the first steps. By default (i + 1) * 0.2 s and at most 2 s.
      session_creation_timeout_secs: how long a worker waits until the chief has made the model ready.
      checkpoint_save_graph_def: whether the first checkpoint comes with graph.pbtxt.
      place: the task's place in the cluster, instead of TF_CONFIG.

    Raises:
      ValueError: a value is out of range, or TF_CONFIG is wrong.
      NotImplementedError: a strategy is given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/RunConfig
    """

    model_dir: str | None = None
    tf_random_seed: int | None = None
    save_summary_steps: int | None = 100
    save_checkpoints_steps: int | None = _USE_DEFAULT
    save_checkpoints_secs: float | None = _USE_DEFAULT
    session_config: Any = None
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_every_n_hours: float = 10000
    log_step_count_steps: int | None = 100
    train_distribute: None = None
    device_fn: Callable[[Any], str] | None = None
    protocol: str | None = None
    eval_distribute: None = None
    experimental_distribute: None = None
    experimental_max_worker_delay_secs: float | None = None
    session_creation_timeout_secs: float = 7200
    checkpoint_save_graph_def: bool = True
    place: ClusterPlace | None = None

    def __post_init__(self) -> None:
        place = place_from(os.environ) if self.place is None else self.place
        self._fill("place", place)
        if place.model_dir:
            if self.model_dir and self.model_dir != place.model_dir:
                raise ValueError(
                    f"model_dir is {self.model_dir!r} in RunConfig and {place.model_dir!r} in TF_CONFIG; give it once"
                )
            self._fill("model_dir", place.model_dir)
        if self.model_dir is not None:
            self._fill("model_dir", os.fsdecode(self.model_dir))
        if self.save_checkpoints_steps is _USE_DEFAULT and self.save_checkpoints_secs is _USE_DEFAULT:
            self._fill("save_checkpoints_secs", _SAVE_CHECKPOINTS_SECS)
        for name in ("save_checkpoints_steps", "save_checkpoints_secs"):
            if getattr(self, name) is _USE_DEFAULT:
                self._fill(name, None)
        if self.session_config is None:
            self._fill("session_config", _default_session_config(place))
        self._check()

    def replace(self, **kwargs: Any) -> RunConfig:
        """A RunConfig with other values; the place in the cluster is unchanged.

        Raises:
          ValueError: the name is none of the arguments, or a value is out of range.
        """
        allowed = {each.name for each in fields(self)} - set(_FIXED)
        for name in kwargs:
            if name not in allowed:
                raise ValueError(f"Replacing {name} is not supported. Allowed properties are {sorted(allowed)}.")
        # One interval takes the other's place.
        steps, secs = kwargs.get("save_checkpoints_steps"), kwargs.get("save_checkpoints_secs")
        if steps is not None and secs is None:
            kwargs["save_checkpoints_secs"] = None
        if secs is not None and steps is None:
            kwargs["save_checkpoints_steps"] = None
        return replace(self, **kwargs)

    @property
    def cluster_spec(self) -> ClusterSpec:
        """All tasks that train; empty without a cluster."""
        return self._place.cluster_spec

    @property
    def task_type(self) -> str:
        """The job of this task, "worker" without a cluster."""
        return self._place.task_type

    @property
    def task_id(self) -> int:
        """The index in the job."""
        return self._place.task_id

    @property
    def is_chief(self) -> bool:
        return self._place.is_chief

    @property
    def master(self) -> str:
        """The target of training sessions; "" without a cluster."""
        return self._place.master

    @property
    def evaluation_master(self) -> str:
        return self._place.evaluation_master

    @property
    def num_ps_replicas(self) -> int:
        return self._place.num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """Tasks that train, the chief among them."""
        return self._place.num_worker_replicas

    @property
    def global_id_in_cluster(self) -> int | None:
        """The number of this task among all: the chief is 0, then the workers, then the ps; None of an evaluator."""
        return self._place.global_id_in_cluster

    @property
    def service(self) -> Any:
        """The value of "service" in TF_CONFIG."""
        return self._place.service

    @property
    def _place(self) -> ClusterPlace:
        assert self.place is not None
        return self.place

    def _fill(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check(self) -> None:
        for name in ("train_distribute", "eval_distribute", "experimental_distribute"):
            if getattr(self, name) is not None:
                raise NotImplementedError(f"RunConfig.{name}: strategies are not supported; set TF_CONFIG instead")
        if self.save_checkpoints_steps is not None and self.save_checkpoints_secs is not None:
            raise ValueError("Set one of save_checkpoints_steps and save_checkpoints_secs, not both")
        for name in (
            "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "keep_checkpoint_max",
            "keep_checkpoint_every_n_hours", "log_step_count_steps", "experimental_max_worker_delay_secs",
            "session_creation_timeout_secs",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} should be >= 0, but is {value}")
        if self.tf_random_seed is not None and not isinstance(self.tf_random_seed, int):
            raise ValueError(f"tf_random_seed must be an integer, but is {self.tf_random_seed!r}")
        if not isinstance(self.session_config, config_pb2.ConfigProto):
            raise ValueError(f"session_config must be a ConfigProto, but is {self.session_config!r}")
        if self.protocol not in _PROTOCOLS:
            raise ValueError(f"protocol must be one of {_PROTOCOLS}, but is {self.protocol!r}")
        if self.device_fn is not None and list(inspect.signature(self.device_fn).parameters) != ["op"]:
            raise ValueError(f'device_fn must be a function with exactly one argument "op", but is {self.device_fn}')


def _default_session_config(place: ClusterPlace) -> Any:
    config = config_pb2.ConfigProto(allow_soft_placement=True)
    config.graph_options.rewrite_options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    if place.cluster_spec and place.task_type in (TaskType.CHIEF, TaskType.MASTER):
        config.device_filters.extend(["/job:ps", f"/job:{place.task_type}"])
    elif place.cluster_spec and place.task_type == TaskType.WORKER:
        config.device_filters.extend(["/job:ps", f"/job:worker/task:{place.task_id}"])
    return config
