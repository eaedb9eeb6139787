"""What the page may ask for: restart, stop, start, scale, down. First as a plan in words, then the same request that
the command line sends. Functions block, and are called in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dtfctl.control.client import Reply
from dtfctl.control.cluster import Cluster
from dtfctl.control.verbs import Verb
from dtfctl.supervise import planned_ends
from dtfctl.ui.documents import Document
from dtfctl.values import state
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus
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
        return {"lines": plan_lines(run, statuses, action)}
    if action.verb == Verb.DOWN:
        return _answer(cluster, cluster.down(f"stopped {_WHY}"), ["the cluster is stopping"])
    participle = {Verb.RESTART: "restarted", Verb.STOP: "stopped", Verb.START: "started"}[action.verb]
    reply = cluster.on_tasks(action.verb, action.tasks, f"{participle} {_WHY}")
    return _answer(cluster, reply, [*reply.get("costs", []), f"{', '.join(action.tasks)} will be {participle}"])


def plan_lines(run: Run, statuses: Mapping[str, TaskStatus], action: Action) -> list[str]:
    """What an action on tasks, or `down`, would do: a line for each task, then the order and the cost. Pure."""
    names = list(statuses) if action.verb == Verb.DOWN else list(action.tasks)
    alive = {each for each in names if statuses[each].state in state.WITH_PROCESS}
    lines = []
    for task in names:
        present = statuses[task].state
        if action.verb == Verb.START:
            what = "nothing: it runs" if task in alive else "start"
        elif action.verb == Verb.RESTART:
            what = "restart" if task in alive else "start"
        else:
            what = "stop" if present not in state.ENDED else "nothing: it has ended"
        lines.append(f"{what:<9} {task:<11} {present} now")
    if action.verb == Verb.DOWN:
        lines.append("The run ends. Checkpoints stay; another `dtfctl up` goes on from the last one.")
    if action.verb == Verb.STOP:
        lines.append("The tasks stay down until they are started again. The cluster goes on.")
    if action.verb != Verb.START:
        lines += planned_ends.in_words(run.plan, alive)
    return lines


def _answer(cluster: Cluster, reply: Reply, lines: list[str]) -> Document:
    if "error" in reply:
        return {"error": str(reply["error"])}
    if reply.get("is") == "ending":
        return {"error": f"{cluster.name} is stopping"}
    return {"lines": lines}
