"""What dtfctl reads: cluster and environment files, lists of hosts, program lines, lines of its processes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dtfctl.checks.program_line import is_plain, steps_of
from dtfctl.config import hostlist, parse
from dtfctl.config.variables import read_env_file
from dtfctl.control.protocol import REQUESTS as CONTROL_REQUESTS
from dtfctl.control.protocol import plan_of
from dtfctl.errors import ConfigError
from dtfctl.launchers.agent import protocol as agent
from dtfctl.launchers.keeper import protocol as keeper
from dtfctl.values.plan import ClusterPlan, to_json
from dtfctl.wire.messages import BadMessage, message
from dtfctl.wire.typed import from_document
from tests.fuzz import mutate
from tests.fuzz.harness import Target

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path("/cluster")

CLUSTER = """
name: trial
program: python t.py {cluster_flags} --d={checkpoint_dir}
checkpoint_dir: c
hosts: {"node[0-3]": {ssh: "ml@node[0-3]", address: "10.0.0.[1-4]", slots: 4}}
jobs:
  ps: {replicas: 2, port: 2222}
  worker: {replicas: 4, cpus: 2, gpus: 1, tasks: {0-1: {environment: {A: "${B:-x}"}}}}
restart: {policy: exit-code, codes: "1-3, SIGKILL", backoff: 500ms}
readiness: {command: "test -e {port}", interval: 1s}
x-anchors: &a {limits: {memory: 1GiB}}
"""


def cluster_files() -> list[str]:
    found = [path.read_text() for path in sorted((ROOT / "clusters").rglob("*.yaml"))]
    return [CLUSTER, *found]


def mutated_text(chance: random.Random, examples: Sequence[str]) -> bytes:
    text = mutate.of_text(chance, chance.choice(examples)).encode("utf-8", "replace")
    return mutate.of_bytes(chance, text) if chance.random() < 0.1 else text


def read_cluster_file(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    plan = parse(text, "c.yaml", FOLDER, variables={"B": "b"})
    again = from_document(ClusterPlan, json.loads(json.dumps(to_json(plan))))
    assert again == plan, "the plan is another one after JSON"


def read_setting(data: bytes) -> None:
    parse(CLUSTER, "c.yaml", FOLDER, settings=[data.decode("utf-8", "replace")])


def read_hosts(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    names, numbers = ValueError, ValueError
    try:
        names = hostlist.expand_names(text)  # type: ignore[assignment]
    except ValueError as error:
        if not str(error):
            raise
    try:
        numbers = hostlist.numbers(text, 4095)  # type: ignore[assignment]
    except ValueError as error:
        if not str(error):
            raise
    if names is ValueError and numbers is ValueError:
        raise ValueError("neither names nor numbers")


def read_program_line(data: bytes) -> None:
    line = data.decode("utf-8", "replace")
    steps_of(line)
    is_plain(line)


LINES: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (CONTROL_REQUESTS, "do", {"do": "down", "why": "asked", "grace_period_s": 1.5}),
    (CONTROL_REQUESTS, "do", {"do": "restart", "tasks": ["worker:0", "ps:1"], "why": "asked", "id": "12ab"}),
    (CONTROL_REQUESTS, "do", {"do": "scale", "job": "worker", "replicas": 3, "apply": True, "id": "a", "hosts": {}}),
    (CONTROL_REQUESTS, "do", {"do": "move", "tasks": {"ps:0": "b"}, "without": ["a"], "apply": True, "hosts": {}}),
    (CONTROL_REQUESTS, "do", {"do": "watch"}),
    (
        CONTROL_REQUESTS,
        "do",
        {
            "do": "up", "environment": {"A": "b"}, "secrets": {"variable K": "v"}, "hosts": {},
            "plan": to_json(parse(CLUSTER, "c.yaml", FOLDER)),
        },
    ),
    (keeper.REQUESTS, "do", {"do": "hold", "id": 1, "task": "ps:0", "address": "127.0.0.1", "port": 0, "fixed": False}),
    (keeper.REQUESTS, "do", {"do": "signal", "task": "ps:0", "generation": 1, "number": 15}),
    (
        keeper.REQUESTS,
        "do",
        {
            "do": "start", "task": "w:0", "generation": 2, "argv": ["sh"], "environment": {"A": "b"},
            "working_dir": "/", "log": "/tmp/l", "address": None, "limits": {"nice": 3}, "files": {}, "logs": [1, 2],
        },
    ),
    (keeper.MESSAGES, "is", {"is": "exited", "task": "w:0", "generation": 2, "at": 1.5, "code": 1, "traceback": "x"}),
    (keeper.MESSAGES, "is", {"is": "listed", "known": [["w:0", 1], ["ps:0", 2]]}),
    (agent.REQUESTS, "do", {"do": "file", "id": 3, "path": "/x", "age_s": 1.0}),
    (agent.FIRST, "do", {"do": "sync", "folder": "~/x", "files": {"a": [1, 2, 420, ""]}}),
    (agent.TOLD, "is", {"is": "log", "file": "w-0.1", "offset": 0, "data": "x", "times": [[1, 2]]}),
]  # fmt: skip


def mutated_line(chance: random.Random, examples: Sequence[int]) -> bytes:
    number = chance.choice(examples)
    document = LINES[number][2]
    for _ in range(chance.choice((1, 1, 2, 4))):
        document = mutate.of_tree(chance, document)
    data = as_json(document)
    if chance.random() < 0.2:
        data = mutate.of_bytes(chance, data)
    return bytes([number]) + data


def as_json(document: Any) -> bytes:
    try:
        return json.dumps(document).encode()
    except (RecursionError, UnicodeEncodeError):
        return b"[" * 100_000


def read_line(data: bytes) -> None:
    shapes, key, _ = LINES[data[0] % len(LINES)]
    request = message(data[1:], key, shapes)
    if request.get("do") == "up":
        plan_of(request["plan"])


def texts(
    name: str, examples: Callable[[], list[str]], read: Callable[[bytes], Any], *refusals: type[Exception]
) -> Target:
    return Target(name, examples, mutated_text, read, refusals)


SETTINGS = ["jobs.worker.replicas=4", 'hosts."node0".slots=1', "jobs.ps={replicas: 2}", "x-a=[1, 2]", "name='b'"]
PROGRAM_LINES = [
    "cd src && exec env A=b python -um a.b > log 2>&1",
    "timeout -k 5 60 nice -n 5 bash x.sh 'a b' | tee l",
    "f() { a; }; f # x",
]


def read_environment(data: bytes) -> None:
    read_env_file(data.decode("utf-8", "replace"), "env")


TARGETS = (
    texts("cluster_file", cluster_files, read_cluster_file, ConfigError),
    texts("setting", lambda: SETTINGS, read_setting, ConfigError),
    texts("env_file", lambda: ["A=b\nexport C='d e' # x\n# y\n"], read_environment, ValueError),
    texts("hostlist", lambda: ["node[0-3,7]", "r[1-2]n[08-10],b", "0-3,6", "a[1-9999]"], read_hosts, ValueError),
    texts("program_line", lambda: PROGRAM_LINES, read_program_line),
    Target("line", lambda: list(range(len(LINES))), mutated_line, read_line, (BadMessage,)),
)
