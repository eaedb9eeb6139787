"""What Ray is asked for, decided without Ray; tests/e2e/test_ray.py has the real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dtfctl import config
from dtfctl.errors import ConfigError, HostsUnusable
from dtfctl.launchers.bridge import group
from dtfctl.launchers.bridge.launcher import own_gpus
from dtfctl.launchers.ray import request

FILE = """
program: x
engine: {ray: {nodes: 3, spares: 1}}
jobs:
  ps: 1
  worker: {replicas: 3, cpus: 2, gpus: 1}
"""


def plan_of(*settings, text=FILE):
    return config.parse(text, "cluster.yaml", Path("/folder"), settings)


def test_a_host_gets_what_its_tasks_need_and_a_spare_as_much_as_any():
    plan = plan_of()
    cores = {host.name: 0 for host in plan.hosts}
    for task in plan.tasks():
        cores[task.host.name] += max(1, len(task.place.cpus))
    assert request.bundles(plan)[2]["CPU"] == max(cores.values())
    assert [bundle["CPU"] for bundle in request.bundles(plan)][:2] == [cores["node-1"], cores["node-2"]]
    assert request.bundles(plan)[2]["GPU"] == 2


def test_resources_of_the_file_replace_and_add_and_leave_out():
    plan = plan_of("engine.ray.resources=[CPU=8, ps=1]", "engine.ray.without=GPU")
    assert request.bundles(plan) == [{"CPU": 8, "ps": 1}] * 3
    none = plan_of("engine.ray.without=[CPU, GPU]")
    assert all(0 < bundle["CPU"] < 0.01 for bundle in request.bundles(none))
    with pytest.raises(ConfigError, match="NAME=AMOUNT"):
        request.bundles(plan_of("engine.ray.resources=CPU=many"))


def test_options_are_values_of_json_or_texts():
    plan = plan_of('engine.ray.options=["max_restarts=0", "runtime_env={\\"pip\\": [\\"x\\"]}", "name=n"]')
    values = request._values(plan.ray)
    assert values == {"max_restarts": 0, "runtime_env": {"pip": ["x"]}, "name": "n"}


def test_spares_must_leave_a_host():
    with pytest.raises(ConfigError, match="must leave a host"):
        plan_of("engine.ray.spares=3")


def test_a_running_cluster_keeps_its_hosts():
    hosts = {host.name: host for host in (*plan_of().hosts, *plan_of().idle_hosts)}
    running = group._on(plan_of(), replace(plan_of().ray, group="g"), hosts)
    changed = group.taken_over(plan_of("jobs.worker.replicas=2"), running)
    assert [host.target for host in changed.hosts] == [host.target for host in running.hosts]
    with pytest.raises(HostsUnusable, match="their number cannot change"):
        group.taken_over(plan_of("engine.ray.nodes=4"), running)


@pytest.mark.parametrize(
    ("chosen", "group_has", "expected"),
    [("0", ["2", "3"], "2"), ("1,0", ["2", "3"], "3,2"), ("0", [""], "0"), ("", ["2"], ""), ("1", ["2"], "1")],
)
def test_gpus_of_a_task_are_those_that_ray_has_given_the_host(chosen, group_has, expected):
    assert own_gpus({"CUDA_VISIBLE_DEVICES": chosen}, group_has) == {"CUDA_VISIBLE_DEVICES": expected}
