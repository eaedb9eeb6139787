"""A task's place in its cluster, as TF_CONFIG tells it.

Owns the parsing and checking of TF_CONFIG; other settings of a run are in `run_config`. TF_CONFIG is the JSON of

    {"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"], "ps": ["host2:2222"]},
     "task": {"type": "worker", "index": 0}}

The evaluator is not part of the cluster: it does not train and no task connects to it. A job "evaluator" in the
cluster is therefore ignored.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/RunConfig
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dtf.wire.cluster import ClusterSpec

VARIABLE = "TF_CONFIG"


class TaskType:
    """The jobs that training knows."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


@dataclass(frozen=True)
class ClusterPlace:
    """The cluster and the task of this process; by default the only task."""

    cluster_spec: ClusterSpec = field(default_factory=lambda: ClusterSpec({}))
    task_type: str = TaskType.WORKER
    task_id: int = 0
    is_chief: bool = True
    master: str = ""
    evaluation_master: str = ""
    num_ps_replicas: int = 0
    num_worker_replicas: int = 1
    global_id_in_cluster: int | None = 0
    service: Mapping[str, Any] | None = None
    model_dir: str | None = None


def place_from(environment: Mapping[str, str]) -> ClusterPlace:
    """The place that the variable TF_CONFIG of an environment tells; the default one without it.

    Raises:
      ValueError: it is not a JSON object, or describes a task outside its cluster; the message names the fault.
    """
    text = environment.get(VARIABLE) or "{}"
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{VARIABLE} must be JSON: {error}. It is {text!r}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{VARIABLE} must be a JSON object, not {text!r}")
    jobs = {job: tasks for job, tasks in (config.get("cluster") or {}).items() if job != TaskType.EVALUATOR}
    task = config.get("task") or {}
    shared = {"service": config.get("service"), "model_dir": config.get("model_dir")}
    if not jobs:
        return _alone(config, task, shared)
    return _in_cluster(config, _cluster_of(jobs), task, shared)


def _alone(config: dict[str, Any], task: dict[str, Any], shared: dict[str, Any]) -> ClusterPlace:
    task_type, task_id = task.get("type", TaskType.WORKER), _index_of(task.get("index", 0))
    if task_type == TaskType.EVALUATOR:
        return _evaluator(config, task_id, shared)
    if task_type != TaskType.WORKER or task_id != 0:
        raise ValueError(
            f'Without a "cluster", {VARIABLE} can only describe worker 0 or the evaluator, not {task_type} {task_id}'
        )
    return ClusterPlace(
        master=config.get("session_master", ""), evaluation_master=config.get("eval_session_master", ""), **shared
    )


def _in_cluster(
    config: dict[str, Any], cluster: ClusterSpec, task: dict[str, Any], shared: dict[str, Any]
) -> ClusterPlace:
    if "type" not in task or "index" not in task:
        raise ValueError(f'With a "cluster", {VARIABLE} must name this task: {{"task": {{"type", "index"}}}}')
    task_type, task_id = str(task["type"]), _index_of(task["index"])
    chiefs = [job for job in (TaskType.CHIEF, TaskType.MASTER) if job in cluster.jobs]
    if len(chiefs) != 1 or cluster.num_tasks(chiefs[0]) != 1:
        raise ValueError(f'The "cluster" in {VARIABLE} must have exactly one "chief" task; it is {cluster}')
    if task_type == TaskType.EVALUATOR:
        return _evaluator(config, task_id, shared)
    if task_type not in cluster.jobs or task_id not in cluster.task_indices(task_type):
        raise ValueError(f'{VARIABLE} says that this is {task_type} {task_id}, which its "cluster" lacks: {cluster}')
    workers = cluster.num_tasks(TaskType.WORKER) if TaskType.WORKER in cluster.jobs else 0
    is_alone = sum(map(cluster.num_tasks, cluster.jobs)) == 1
    return ClusterPlace(
        cluster_spec=cluster,
        task_type=task_type,
        task_id=task_id,
        is_chief=task_type == chiefs[0],
        master="" if is_alone else "grpc://" + cluster.task_address(task_type, task_id),
        evaluation_master=config.get("eval_session_master", ""),
        num_ps_replicas=cluster.num_tasks(TaskType.PS) if TaskType.PS in cluster.jobs else 0,
        num_worker_replicas=1 + workers,
        global_id_in_cluster=_global_id(cluster, chiefs[0], task_type, task_id),
        **shared,
    )


def _evaluator(config: dict[str, Any], task_id: int, shared: dict[str, Any]) -> ClusterPlace:
    if task_id != 0:
        raise ValueError(f"There can be only one evaluator, task 0; {VARIABLE} says that this is {task_id}")
    return ClusterPlace(
        task_type=TaskType.EVALUATOR,
        is_chief=False,
        evaluation_master=config.get("eval_session_master", ""),
        num_worker_replicas=0,
        global_id_in_cluster=None,
        **shared,
    )


def _global_id(cluster: ClusterSpec, chief: str, task_type: str, task_id: int) -> int:
    """The number of a task among all: the chief, the workers, then the others by name."""
    others = sorted(set(cluster.jobs) - {chief, TaskType.WORKER})
    before = 0
    for job in (chief, TaskType.WORKER, *others):
        if job == task_type:
            return before + cluster.task_indices(job).index(task_id)
        before += cluster.num_tasks(job) if job in cluster.jobs else 0
    raise AssertionError("the task is in the cluster")


def _cluster_of(jobs: dict[str, Any]) -> ClusterSpec:
    try:
        return ClusterSpec({job: _tasks_of(tasks) for job, tasks in jobs.items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f'The "cluster" in {VARIABLE} is wrong: {error}') from error


def _tasks_of(tasks: Any) -> Any:
    """A job's tasks; in JSON the indices of a sparse job are texts."""
    return {_index_of(index): address for index, address in tasks.items()} if isinstance(tasks, dict) else tasks


def _index_of(value: Any) -> int:
    try:
        index = int(value)
    except (TypeError, ValueError):
        index = -1
    if index < 0:
        raise ValueError(f"A task index in {VARIABLE} must be a number from 0; found {value!r}")
    return index
