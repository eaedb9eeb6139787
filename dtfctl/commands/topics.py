"""The texts of `dtfctl help TOPIC`. The cluster file's is made of the table that its reader is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

EXIT_STATUSES = {
    0: "done, or the training succeeded",
    1: "something failed, or processes were left behind",
    2: "wrong usage, an invalid cluster file, or a secret that cannot be read",
    3: "not running, or stopped before it had succeeded or failed",
    4: "unknown cluster, task, host or topic",
    5: "not ready, or not done, within --timeout",
    6: "some tasks are not ready (status --exit-code)",
    7: "the supervisor cannot be reached",
    8: "hosts cannot be reached or used",
    10: "the training failed",
    20: "there is something to change (up --plan, scale --plan)",
    130: "interrupted by Ctrl-C",
    141: "the reader of the output closed it",
    143: "interrupted by SIGTERM",
}


def title(text: str) -> str:
    return text.splitlines()[0].removeprefix("# ")


def _exit_codes() -> str:
    rows = "\n".join(f"  {number:>3}  {words}" for number, words in EXIT_STATUSES.items())
    return f"""Exit statuses

{rows}

The same for all commands but exec and ssh, which return the status of their command. up --attach and wait
exit with the result of the training: 0, 10, or 3 when it was stopped."""


def _tasks() -> str:
    return """Names of tasks, and their states

  worker:1      one task             worker:0-3, worker:0,2   several of a job
  ps            all of a job         'w*', '*:0'              patterns, quoted against the shell

  pending    it will be started                      stopping   it was asked to end
  starting   its process is not ready yet            stopped    it was asked to end, and has
  running    it is ready                             succeeded  it exited with 0, and that was all it had to do
  backoff    its process ended; a new one comes      failed     its process ended, and the policy wants no new one
  unreachable   its host does not answer             gave-up    its process ended too often

A failed task whose failure is not forgiven ends the cluster. restart gives a task a new process whatever its state and
policy; stop keeps it down while the cluster goes on; start ends that."""


def _environment() -> str:
    return """Environment variables

That dtfctl reads:
  DTFCTL_STATE_DIR   the folder of the clusters' state (--state-dir); else $XDG_STATE_HOME/dtfctl, ~/.local/state/dtfctl
  DTFCTL_PROGRESS    auto, tty, plain, json or quiet (--progress)
  DTFCTL_SSH         the ssh to call, with options, in place of the cluster file's
  DTFCTL_AUTOSCALE_AFTER   seconds of steps that autoscale measures before a decision (30)
  NO_COLOR, TERM     no colours; TERM=dumb: no live view either
  and those that the cluster file names as ${NAME} or under secrets, also from a file .env beside it

That each task finds, besides the environment in which `up` was typed and what the cluster file adds:
  TF_CONFIG          the cluster and the task's own place in it, as TensorFlow reads them
  CLUSTER_SPEC, JOB_NAME, TASK_INDEX   the same as JSON and words
  CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS and the like, where the file says gpus, cpus or threads
  DTF_BIND           the address at which dtf's servers listen, if bind differs from the advertised address
  DTF_ELASTIC        1 with cluster_spec: elastic: dtf's synchronous replicas follow the workers that exist
  DTF_DURABILITY, DTF_DURABILITY_DIR   with durability: process, that and the folder of a ps in /dev/shm
  DTF_TLS_CA, DTF_TLS_CERT, DTF_TLS_KEY   with security: tls, its private files: dtf then speaks mutual TLS only.
                     A client of yours takes those in runs/<n>/tls: ca.pem, client.pem, client.key

dtfctl exec TASK -- env shows them."""


def _files() -> str:
    return """Files and folders

  cluster.yaml           the cluster file; dtfctl init writes one, dtfctl validate checks it
  <state>/<cluster>/     one private folder per cluster name:
    store.sqlite           the present or last run: plan, tasks, events
    daemon.log             the supervisor's log
    runs/<n>/logs/         <task>.<process>.log of the last five runs
    runs/<n>/times/        when each log grew; kept beside them for --since, -t and the order of lines

A log grows to max_size * (count + 1) of `logs:` in the cluster file, 384 MiB by default; then its head is given back
to the disk up to the end of a line, while its apparent size (ls -l) goes on growing; du shows what it takes.
dtfctl down --purge deletes all of it. Checkpoints are never touched."""


def _output() -> str:
    return """Output for programs

Data goes to stdout, messages go to stderr. JSON keys stay as they are; times are RFC 3339 in UTC.
  status -o json     one document: name, state, hosts, tasks [{name, state, ready, pid, host, address, ...}]
  status -o yaml     the same; status --field 'tasks[ready=false].name' picks values of it, one a line
  status -o name     the tasks, one a line                  ls -q      the clusters, one a line
  logs -o json       a line each: time, task, attempt, line     events -o json   time, task, what, cause
  top -o json        a line each look: progress and tasks [{name, cpu_cores, memory_bytes, ...}]
  ls, config, expand, doctor, explain, checkpoints -o json     one document
  metrics            OpenMetrics, for Prometheus             trace     Chrome's JSON; its key "dtf" is for programs
  plot --csv         run,tag,step,time,value
  --progress json    the messages of up, down, restart, wait ... as lines {time, message, ...} on stderr

  dtfctl status -o json | jq -r '.tasks[] | select(.ready | not) | .name'"""


def _cluster_file() -> str:
    from dtfctl.config.schema import json_schema

    schema = json_schema()
    parts = ["The keys of the cluster file"]
    for heading, properties in (
        ("At the top", schema["properties"]),
        ("Under a job", schema["definitions"]["job"]),
        ("Under a host", schema["definitions"]["host"]),
    ):
        parts.append(f"{heading}:\n" + "\n".join(_keys(properties)))
    parts.append("dtfctl init writes a commented file, dtfctl config shows yours with everything filled in.")
    return "\n\n".join(parts)


def _keys(schema: dict[str, Any]) -> list[str]:
    """Of the first place in the schema that has keys."""
    if "properties" in schema and isinstance(schema["properties"], dict) and "type" not in schema["properties"]:
        schema = schema["properties"]
    elif "anyOf" in schema:
        schema = next(each["properties"] for each in schema["anyOf"] if "properties" in each)
    width = max(map(len, schema))
    return [f"  {key:{width}}  {value.get('description', '')}" for key, value in schema.items()]


GUIDES = ("tutorial", "how-to", "troubleshooting", "faq", "changelog")
"""Pages of dtfctl/guide."""


def _guide(name: str) -> str:
    return (Path(__file__).parents[1] / "guide" / f"{name}.md").read_text(encoding="utf-8").rstrip()


TOPICS: dict[str, Callable[[], str]] = {
    "tutorial": partial(_guide, "tutorial"),
    "cluster-file": _cluster_file,
    "tasks": _tasks,
    "exit-codes": _exit_codes,
    "environment": _environment,
    "files": _files,
    "output": _output,
    **{name: partial(_guide, name) for name in GUIDES[1:]},
}
