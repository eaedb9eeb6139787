"""The shapes of what the control socket is asked and answers (server.py has the meaning), and the plan in an `up`."""

from __future__ import annotations

import signal
from typing import Any

from dtfctl.control.verbs import Verb
from dtfctl.launchers.agent.protocol import FOUND
from dtfctl.values.plan import (
    ELASTIC,
    FULL,
    HOST,
    NONE,
    POLICIES,
    PROCESS,
    PROGRESS,
    SPARSE,
    SUCCESS_RULES,
    TLS,
    ClusterPlan,
    Settings,
)
from dtfctl.wire.messages import (
    BadMessage,
    Shape,
    each,
    fields,
    flag,
    maybe,
    name,
    number,
    one_of,
    system_text,
    table,
    text,
    whole,
)
from dtfctl.wire.typed import from_document, shape_of

ID = text(100)
JOB = name()
TASKS = each(name(), 100_000)
REPLICAS_MAX = 10_000

_ON_TASKS = fields({"tasks": TASKS, "why": text()}, {"id": ID})
_HOSTS = table(FOUND, text(300))

REQUESTS: dict[str, Shape] = {
    Verb.UP: fields(
        {
            "plan": shape_of(ClusterPlan),
            "environment": table(system_text()),
            "secrets": table(system_text()),
            "hosts": _HOSTS,
        },
        {"apply": flag, "id": ID},
    ),
    Verb.DOWN: fields({"why": text(), "grace_period_s": maybe(number(0, 1e9))}),
    Verb.RESTART: _ON_TASKS,
    Verb.STOP: _ON_TASKS,
    Verb.START: _ON_TASKS,
    Verb.SCALE: fields({"job": JOB, "replicas": whole(0, REPLICAS_MAX)}, {"hosts": _HOSTS, "apply": flag, "id": ID}),
    Verb.MOVE: fields(
        {"tasks": table(text(300), name())},
        {"without": each(text(300), 10_000), "hosts": _HOSTS, "apply": flag, "id": ID},
    ),
    Verb.USAGE: fields({}),
    Verb.WATCH: fields({}),
}


def plan_of(document: dict[str, Any]) -> ClusterPlan:
    """The plan of a request that has the shape above. Raises BadMessage where its parts do not fit each other."""
    plan = from_document(ClusterPlan, document)
    name()(plan.name, "plan.name")
    one_of("none", TLS)(plan.security, "plan.security")
    one_of(*SUCCESS_RULES)(plan.success_rule, "plan.success_rule")
    hosts = {host.name for host in plan.hosts}
    for number_of_job, job in enumerate(plan.jobs):
        where = f"plan.jobs[{number_of_job}]"
        name()(job.name, f"{where}.name")
        for place in job.places:
            if place.host not in hosts:
                raise BadMessage(f'"{where}.places" names the host {place.host!a}, which is not among "plan.hosts"')
            whole(0, 65535)(place.port, f"{where}.places.port")
        for spare in job.spares:
            if spare not in hosts:
                raise BadMessage(f'"{where}.spares" names the host {spare!a}, which is not among "plan.hosts"')
        for settings in (job.settings, *job.overrides.values()):
            _check_settings(settings, where)
        if job.overrides and max(job.overrides) >= job.replicas:
            raise BadMessage(f'"{where}.overrides" is about task {max(job.overrides)}, which the job does not have')
    if len({job.name for job in plan.jobs}) < len(plan.jobs):
        raise BadMessage('two of "plan.jobs" have the same name')
    return plan


def _check_settings(settings: Settings, where: str) -> None:
    one_of(*(number.name for number in signal.Signals))(settings.stop_signal, f"{where}.stop_signal")
    one_of(*POLICIES)(settings.restart.policy, f"{where}.restart.policy")
    one_of(FULL, SPARSE, ELASTIC)(settings.cluster_spec, f"{where}.cluster_spec")
    one_of(NONE, PROCESS, HOST)(settings.durability, f"{where}.durability")
    if not settings.program:
        raise BadMessage(f'"{where}.program" is empty')
    for key, probe in (("readiness", settings.readiness), ("liveness", settings.liveness)):
        kinds = ("grpc", "tcp", "command", "file", "none", *([PROGRESS] if key == "liveness" else []))
        one_of(*kinds)(probe.kind, f"{where}.{key}.kind")
        number(0.001)(probe.interval_s, f"{where}.{key}.interval_s")
        number(0.001)(probe.timeout_s, f"{where}.{key}.timeout_s")
