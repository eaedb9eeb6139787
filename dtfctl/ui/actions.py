"""What the page may ask for: restart, stop, start, scale, down. First as a plan in words, then the same request that
the command line sends. Functions block, and are called in a thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from dtfctl.control import planned
from dtfctl.control.client import Reply
from dtfctl.control.cluster import Cluster
from dtfctl.control.verbs import Verb
from dtfctl.ui.documents import Document
from dtfctl.wire.messages import BadMessage, Shape, checked, each, fields, flag, name, one_of, whole

REPLICAS_MAX = 10_000
_VERBS = (Verb.RESTART, Verb.STOP, Verb.START, Verb.SCALE, Verb.DOWN)
_WHY = "from the page of dtfctl ui"

REQUEST: Shape = fields(
    {"cluster": name(), "do": one_of(*map(str, _VERBS)), "isPlan": flag},
    {"tasks": each(name(), 100_000), "job": name(), "replicas": whole(0, REPLICAS_MAX)},
)


@dataclass(frozen=True)
class Action:
    cluster: str
    verb: Verb
    is_plan: bool
    tasks: tuple[str, ...] = ()
    job: str = ""
    replicas: int = 0


def action_of(text: bytes) -> Action:
    """Raises BadMessage."""
    document = checked(text, REQUEST)
    verb = Verb(document["do"])
    action = Action(
        document["cluster"],
        verb,
        document["isPlan"],
        tuple(document.get("tasks", ())),
        document.get("job", ""),
        document.get("replicas", 0),
    )
    if verb in (Verb.RESTART, Verb.STOP, Verb.START) and not action.tasks:
        raise BadMessage(f'"tasks" is missing for {verb}')
    if verb == Verb.SCALE and not (action.job and "replicas" in document):
        raise BadMessage('"job" and "replicas" are missing for scale')
    return action


def perform(cluster: Cluster, action: Action) -> Document:
    """{lines} of the plan or of what was done, or {error}."""
    if not cluster.is_active():
        return {"error": f"{cluster.name} is not running"}
    if action.verb == Verb.SCALE:
        said: list[str] = []
        reply = cluster.scale(action.job, action.replicas, not action.is_plan, said.append)
        lines = [*said, *reply.get("changes", []), *reply.get("costs", [])]
        if not lines and action.is_plan:
            lines = [f"{action.job} has {action.replicas} tasks already; nothing would change"]
        return _answer(cluster, reply, lines)
    run, statuses = cluster.load()
    unknown = [task for task in action.tasks if task not in statuses]
    if unknown:
        return {"error": f'no task is called "{unknown[0]}"'}
    if action.is_plan:
        return {"lines": planned.in_words(run, statuses, action.verb, action.tasks)}
    if action.verb == Verb.DOWN:
        return _answer(cluster, cluster.down(f"stopped {_WHY}"), ["the cluster is stopping"])
    participle = {Verb.RESTART: "restarted", Verb.STOP: "stopped", Verb.START: "started"}[action.verb]
    reply = cluster.on_tasks(action.verb, action.tasks, f"{participle} {_WHY}")
    return _answer(cluster, reply, [*reply.get("costs", []), f"{', '.join(action.tasks)} will be {participle}"])


def _answer(cluster: Cluster, reply: Reply, lines: list[str]) -> Document:
    if "error" in reply:
        return {"error": str(reply["error"])}
    if reply.get("is") == "ending":
        return {"error": f"{cluster.name} is stopping"}
    return {"lines": lines}
