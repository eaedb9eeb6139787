"""The table of all keys of the cluster file: what reads each, what it means, and its default.

The reader, `dtfctl config`, `dtfctl schema` and the errors' suggestions all come from here. A default is written as
in a file; concepts.md has the same keys for people.
"""

from __future__ import annotations

import re
from typing import Any

from dtfctl.config import values
from dtfctl.config.kinds import AnyKind, Key, Kind, Section, Table
from dtfctl.values.plan import DTF, INSTALLED, NONE, POLICIES, PROGRESS, SCOPES, SUCCESS_RULES

REPLICAS_MAX = 10_000
PROBES = ("grpc", "tcp", "none")


def _check_job_name(name: str) -> str:
    good = re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name, re.ASCII)
    return "" if good else f'"{name}" is not a valid job name: use letters, digits, _ and - only'


def _check_variable_name(name: str) -> str:
    good = name and "=" not in name and name.isprintable() and not any(map(str.isspace, name))
    return "" if good else f'"{name}" is not a valid name of an environment variable'


def _check_property_name(name: str) -> str:
    good = re.fullmatch(r"[^=\s]+", name)
    return "" if good else f'"{name}" is not a valid name of a property of Spark'


def _check_host_name(name: str) -> str:
    good = re.fullmatch(values.HOST_PATTERN, name, re.ASCII)
    return (
        "" if good else f'"{name}" is not a valid host name: use letters, digits, ".", "_", "-", ranges like [0-3]'
    )


def _check_indices(text: str) -> str:
    good = re.fullmatch(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", text, re.ASCII)
    return "" if good else f'"{text}" is not a task: write a number, or a range such as 0-3'


ENVIRONMENT = Table(values.TEMPLATE, "^[^=]+$", _check_variable_name)

SECRET = Section(
    {
        "file": Key(values.PATH, "The file with the value; its last line end is removed."),
        "variable": Key(
            values.TEXT, "The variable of your environment that has the value; by default the same name."
        ),
    },
    may_be_empty=True,
    one_of=(("file", "variable"),),
    hint="must name the source of its value, {file: ...} or {variable: ...}; do not write the value itself here",
)

RESTART = Section(
    {
        "policy": Key(
            values.word(*POLICIES), "Which ends of a task are followed by a restart.", "on-failure"
        ),
        "attempts": Key(
            values.integer(0, 1_000_000), "The number of restarts within the window before giving up.", "5"
        ),
        "window": Key(values.duration(), "The period in which restarts are counted.", "10m"),
        "backoff": Key(values.duration(), "The first delay; it doubles with each restart.", "500ms"),
        "backoff_max": Key(values.duration(), "The longest delay.", "30s"),
        "jitter": Key(values.fraction(), "The random part by which a delay may be longer.", "0.25"),
        "healthy_after": Key(
            values.duration(), "After this time as ready, a task's restarts are counted from zero again.", "60s"
        ),
        "alike": Key(
            values.integer(0, 1000),
            "Give up after this many equal failures in a row, at once where a restart cannot help; 0: never.",
            "4",
        ),
        "codes": Key(
            values.CODES,
            "For the policy exit-code: the statuses that are retried; a signal n counts as 128 + n.",
            "128-255",
        ),
        "scope": Key(
            values.word(*SCOPES), "Which running tasks restart with it: itself alone, its job, or the cluster.", "task"
        ),
    },
    short="policy",
)


def _probe(interval: str, failures: bool) -> Section:
    keys = {
        "probe": Key(
            values.word(*PROBES, *([PROGRESS] if failures else [])),
            "grpc: the server answers GetStatus; tcp: the port takes connections; none."
            + (" progress: it runs steps, or the global step grows." if failures else ""),
        ),
        "command": Key(
            values.TEMPLATE, "A shell line that exits with 0, in the task's folder and environment."
        ),
        "file": Key(values.TEMPLATE, "A file that is newer than the task's start."),
        "interval": Key(values.duration(0.01), "The time between two probes.", interval),
        "timeout": Key(
            values.duration(0.01),
            "How long an answer may take" + ("; of progress: the longest time without any (10m)." if failures else "."),
            "2s",
        ),
    }
    if failures:
        keys["failures"] = Key(values.integer(1, 1000), "The failures in a row before a restart.", "3")
    return Section(keys, short="probe", one_of=(("probe", "command", "file"),))


READINESS = _probe("100ms", failures=False)
LIVENESS = _probe("10s", failures=True)
PREEMPTION = Section(
    {
        "command": Key(values.TEMPLATE, "A shell line that exits with 0 once the task's machine is to be taken away."),
        "file": Key(values.TEMPLATE, "A file that exists once the task's machine is to be taken away."),
        "interval": Key(values.duration(0.01), "The time between two probes.", "5s"),
        "timeout": Key(values.duration(0.01), "How long an answer may take.", "2s"),
    },
    one_of=(("command", "file"),),
)

LIMITS = Section(
    {
        "memory": Key(values.size(1 << 20), "Private writable memory of each process (RLIMIT_DATA)."),
        "open_files": Key(values.integer(16, 1 << 30), "Open files and sockets of each process."),
        "processes": Key(values.integer(1, 1 << 22), "Processes and threads of this user on the host."),
        "core": Key(values.size(), "The largest core dump; 0 for none."),
        "cpu_time": Key(values.duration(1), "CPU time in total; then SIGXCPU."),
        "nice": Key(values.integer(-20, 19), "Priority: 19 is the lowest."),
    }
)

LOGS = Section(
    {
        "max_size": Key(values.size(1 << 12), "The size at which a log is rotated.", "64MiB"),
        "count": Key(values.integer(0, 1000), "The number of rotated logs of a task that are kept.", "5"),
    }
)

REQUIREMENTS = Section(
    {
        "files": Key(values.one_or_list(values.PATH), "Files of requirements, as pip takes them."),
        "python": Key(values.TEXT, "The interpreter that makes the environment, by its path or name on the host."),
    },
    short="files",
)

SETTINGS = {
    "program": Key(
        values.PROGRAM, "What each task runs: a shell line, or a list of words; with placeholders."
    ),
    "python": Key(values.PATH, "The interpreter that `python` at the start of a program means."),
    "venv": Key(values.PATH, "A virtual environment, in place of `python`: its folder."),
    "requirements": Key(
        REQUIREMENTS, "The requirements from which `up` makes and updates the `venv` on each host."
    ),
    "working_dir": Key(values.PATH, "The folder in which the program starts; by default this file's."),
    "environment": Key(ENVIRONMENT, "Environment variables; they may hold placeholders."),
    "env_file": Key(
        values.one_or_list(values.PATH), "Files of NAME=value lines; `environment` comes before them."
    ),
    "secrets": Key(
        Table(SECRET, "^[^=]+$", _check_variable_name, from_list=True),
        "Environment variables whose values are read at `up` and shown nowhere.",
    ),
    "restart": Key(RESTART, "When a task is restarted after its end."),
    "readiness": Key(READINESS, "How a task is known to be ready; by default grpc, or none without a port."),
    "liveness": Key(LIVENESS, "How a task is known to be alive; a hung task is restarted."),
    "preemption": Key(
        PREEMPTION, "The provider's notice: the task is stopped, and restarted once the notice is withdrawn."
    ),
    "grace_period": Key(values.duration(), "The time between the stop signal and SIGKILL.", "10s"),
    "stop_signal": Key(values.signal_name(), "The signal that asks a task to end.", "SIGTERM"),
    "limits": Key(LIMITS, "The limits that the kernel sets for each task."),
    "threads": Key(
        values.integer(1, 4096), "Threads of arithmetic; by default as many as its cpus, or a fair share."
    ),
    "cpus": Key(
        values.devices(none_is_allowed=False),
        "Cores to run on: how many each task gets (2), or which (0-3, [0]).",
    ),
    "gpus": Key(
        values.devices(none_is_allowed=True), "GPUs: how many each task gets (1), which ([0, 1]), or none."
    ),
    "bind": Key(values.ADDRESS, "The address at which servers listen, when it is not the advertised one."),
    "advertise": Key(
        values.ADDRESS, "The address by which the other tasks reach a task; by default its host's."
    ),
    "cluster_spec": Key(
        values.word("full", "sparse", "elastic"),
        "Whether a task knows all addresses, or its own and those of the ps; elastic: all, and it runs on when others "
        "than the ps join or leave (servers of dtf).",
        "full",
    ),
    "tensorflow": Key(
        values.word(INSTALLED, DTF),
        "What `import tensorflow` gives the program: the installed TensorFlow, or dtf in its place.",
        INSTALLED,
    ),
    "durability": Key(
        values.DURABILITY,
        "process: what a ps of dtf holds outlives its process on the same host, and no update is lost. "
        "host: a backup on another host has each update.",
        NONE,
    ),
    "logs": Key(LOGS, "The size and number of the logs that are kept."),
}
"""They stand under a task, a job, or at the top for all jobs."""

ONE_OF = (("python", "venv"),)
TASK_KEYS = {
    **SETTINGS,
    "port": Key(values.integer(1, 65535), "This task's port."),
    "host": Key(values.TEXT, "This task's host."),
}
LEVEL = Section(SETTINGS, one_of=ONE_OF)
"""The settings of one level, or of several laid over each other."""

TASK = Section(TASK_KEYS, one_of=ONE_OF)

_PORT = Key(
    values.PORTS,
    "auto, none, a number (that of a host's first task), a range to choose from, or a list.",
    "auto",
)

JOB = Section(
    {
        "replicas": Key(
            values.integer(1, REPLICAS_MAX), "How many tasks; by default 1, or as its hosts say."
        ),
        "hosts": Key(values.HOST_NAMES, "The hosts of its tasks: names and ranges such as node[0-3]."),
        "tasks_per_host": Key(
            values.integer(1, REPLICAS_MAX), "The number of neighbouring tasks that run on each host."
        ),
        "spare_hosts": Key(values.HOST_NAMES, "Hosts that take over the tasks of a lost one."),
        "port": _PORT,
        "sidecar": Key(
            values.boolean(),
            "It is not part of the ClusterSpec, decides nothing, and ends with the training.",
            "false",
        ),
        **SETTINGS,
        "tasks": Key(
            Table(TASK, r"^\d+(-\d+)?(,\d+(-\d+)?)*$", _check_indices),
            "The settings that differ for a task, by its number.",
        ),
    },
    short="replicas",
    one_of=ONE_OF,
)

TENSORBOARD = Section(
    {
        "enabled": Key(values.boolean(), "Whether to run TensorBoard.", "true"),
        "logdir": Key(values.TEMPLATE, "The folder that it shows; by default the checkpoint_dir."),
        **{key: JOB.keys[key] for key in ("hosts", "port", *SETTINGS)},
    },
    short="enabled",
    may_be_empty=True,
    one_of=ONE_OF,
)

HOST = Section(
    {
        "ssh": Key(
            values.SSH, "The destination for ssh: a name, user@name or user@name:port; none is this machine."
        ),
        "user": Key(values.USER, "The user to log in as."),
        "port": Key(values.integer(1, 65535), "The port of its ssh server."),
        "address": Key(
            values.ADDRESS, "The address by which the other tasks reach its tasks; by default the ssh name."
        ),
        "bind": Key(values.ADDRESS, "The address at which its servers listen; by default the one above."),
        "python": Key(values.TEXT, "Its interpreter."),
        "venv": Key(values.TEXT, "Its virtual environment, in place of `python`."),
        "working_dir": Key(
            values.TEXT,
            "The folder in which programs start, and on another machine the copy of this file's folder.",
        ),
        "sync": Key(
            values.boolean(), "Whether this file's folder is copied there; set false where it is shared.", "true"
        ),
        "slots": Key(values.integer(1, REPLICAS_MAX), "The largest number of its tasks."),
        "cpus": Key(values.integer(1, values.CORES_MAX), "How many cores its tasks may use in all."),
        "gpus": Key(values.integer(0, values.CORES_MAX), "How many GPUs its tasks may use in all."),
    },
    may_be_empty=True,
    one_of=ONE_OF,
)

SUCCESS = Section(
    {
        "jobs": Key(
            values.one_or_list(values.TEXT), "The jobs that decide; the word chief stands for the usual one."
        ),
        "tasks": Key(values.word(*SUCCESS_RULES), "Which of their tasks must exit with 0.", "all"),
    },
    short="jobs",
)

SSH = Section(
    {
        "command": Key(values.TEXT, "The ssh to call, with options: ssh -F my_config (DTFCTL_SSH).", "ssh"),
        "host_keys": Key(
            values.word("known", "accept-new"),
            "known: your own known_hosts rules; accept-new: the key of a new host is accepted and kept.",
            "known",
        ),
        "timeout": Key(values.duration(1), "The longest time to make a connection.", "10s"),
    },
    short="command",
)

_SYNC = Key(values.boolean(), "Whether the folder is copied to the hosts; false for a shared file system.", "true")
_COPY = Key(values.TEXT, "Where the copy is; by default at the same path as here.")

SLURM_GROUP = Section(
    {
        "nodes": Key(values.integer(1, REPLICAS_MAX), "How many nodes the job has to itself.", "1"),
        "options": Key(values.one_or_list(values.LINE), "Options of sbatch for these nodes: --partition=gpu."),
    },
    short="nodes",
    may_be_empty=True,
)

SLURM = Section(
    {
        "groups": Key(
            Table(SLURM_GROUP, "^[A-Za-z][A-Za-z0-9_-]*$", _check_job_name),
            "Nodes by job, in place of `nodes`: a heterogeneous job. Jobs that are not named run on the first group.",
        ),
        "interface": Key(
            values.LINE, "The network interface whose IPv4 address other nodes use, in place of `address`: ib0."
        ),
        "nodes": Key(values.integer(1, REPLICAS_MAX), "How many nodes the allocation has.", "1"),
        "spares": Key(
            values.integer(0, REPLICAS_MAX),
            "How many of the nodes stay free, to take over the tasks of a node that is lost.",
            "0",
        ),
        "options": Key(
            values.one_or_list(values.LINE),
            "Options of sbatch, written as in a script: --partition=gpu. They override dtfctl's own options.",
        ),
        "without": Key(values.one_or_list(values.LINE), "Options that dtfctl leaves out: --requeue."),
        "address": Key(
            values.LINE, "The address of a node for other nodes; {node} is its name: {node}-ib.", "{node}"
        ),
        "requeues": Key(
            values.integer(0, REPLICAS_MAX),
            "How many times the job is queued again at its time limit; preemptions do not count. By default always.",
        ),
        "srun": Key(values.LINE, "The srun to call, with options.", "srun"),
        "sync": Key(values.boolean(), "Whether the folder is copied to the nodes, which have no shared one.", "false"),
        "working_dir": _COPY,
        "python": Key(values.LINE, "The Python on the nodes that has dtfctl. By default the path of the one here."),
    },
    may_be_empty=True,
)

KUBERNETES = Section(
    {
        "image": Key(values.LINE, "The image of the tasks' containers."),
        "context": Key(values.LINE, "A context of your kubeconfig; by default the current one."),
        "namespace": Key(values.LINE, "The namespace of the pods; by default that of the context."),
        "folder": Key(
            values.matching("/[^{}]*", "an absolute path"),
            "Where the image has the cluster file's folder.",
            "/app",
        ),
        "pull_secrets": Key(values.one_or_list(values.LINE), "Secrets of the namespace with which images are pulled."),
        "claim": Key(values.LINE, "The PersistentVolumeClaim for `checkpoint_dir`; with `storage` it is created."),
        "storage": Key(values.LINE, "The size of a new claim for `checkpoint_dir`: 10Gi."),
        "gpu": Key(values.LINE, "The resource that one of `gpus` stands for.", "nvidia.com/gpu"),
        "options": Key(
            values.one_or_list(values.LINE),
            "Parts of each pod, path=value with the value as YAML: spec.nodeSelector.pool=gpu.",
        ),
        "without": Key(values.one_or_list(values.LINE), "Parts of each pod that are left out: spec.tolerations."),
    },
    may_be_empty=True,
)

# Keys that engines share whose own client gives the hosts.
_SPARES = Key(
    values.integer(0, REPLICAS_MAX),
    "How many of the hosts stay free, to take over the tasks of a host that is lost.",
    "0",
)

RAY = Section(
    {
        "address": Key(values.LINE, "The Ray cluster; by default RAY_ADDRESS, or the one of this machine."),
        "nodes": Key(values.integer(1, REPLICAS_MAX), "How many hosts the placement group has.", "1"),
        "spares": _SPARES,
        "resources": Key(
            values.one_or_list(values.LINE),
            "What each host gets, NAME=AMOUNT: CPU=4. They override what its tasks need, or add to it.",
        ),
        "strategy": Key(
            values.word("STRICT_SPREAD", "SPREAD", "PACK", "STRICT_PACK"),
            "How Ray places the hosts on its nodes.",
            "STRICT_SPREAD",
        ),
        "options": Key(
            values.one_or_list(values.LINE),
            "Options of the actors, name=value with the value as JSON: max_restarts=0.",
        ),
        "without": Key(values.one_or_list(values.LINE), "Resources and options that dtfctl leaves out: CPU."),
        "python": Key(values.LINE, "The Python that has ray, as the Ray cluster's; by default dtfctl's own."),
        "wait": Key(values.duration(1), "How long to wait for the hosts; more where Ray has to add nodes.", "6s"),
        "sync": _SYNC,
        "working_dir": _COPY,
    },
    may_be_empty=True,
)

SPARK = Section(
    {
        "master": Key(values.LINE, "The master's URL, spark://HOST:7077; by default that of Spark's configuration."),
        "nodes": Key(values.integer(1, REPLICAS_MAX), "How many executors there are: each is a host.", "1"),
        "spares": _SPARES,
        "cores": Key(
            values.integer(1, values.CORES_MAX), "The cores of each executor; by default as many as its tasks need."
        ),
        "conf": Key(
            Table(values.LINE, r"^[^=\s]+$", _check_property_name),
            "Properties of the application, such as spark.executor.memory. They override dtfctl's own.",
        ),
        "python": Key(values.LINE, "The Python that has pyspark, also on the executors; by default dtfctl's own."),
        "wait": Key(values.duration(1), "How long to wait for the executors.", "60s"),
        "sync": _SYNC,
        "working_dir": _COPY,
    },
    may_be_empty=True,
)

MPI = Section(
    {
        "nodes": Key(values.integer(1, REPLICAS_MAX), "How many of mpirun's hosts to use, the first ones.", "1"),
        "spares": _SPARES,
        "mpirun": Key(values.LINE, "Open MPI's mpirun, with options.", "mpirun"),
        "options": Key(values.one_or_list(values.LINE), "Options of each call of mpirun: --hostfile=hosts."),
        "address": Key(values.LINE, "The address of a host for the others; {node} is its name: {node}-ib.", "{node}"),
        "sync": Key(values.boolean(), "Whether the folder is copied to the hosts, which have no shared one.", "false"),
        "working_dir": _COPY,
    },
    may_be_empty=True,
)

ENGINE = Section(
    {
        "name": Key(values.word("slurm", "kubernetes", "ray", "spark", "mpi"), "The engine, with its defaults."),
        "slurm": Key(SLURM, "An allocation of Slurm: up submits a batch script and runs in the allocation."),
        "kubernetes": Key(KUBERNETES, "A namespace of Kubernetes: each task is a pod."),
        "ray": Key(RAY, "A placement group of Ray: an actor on each of its hosts starts the tasks there."),
        "spark": Key(SPARK, "An application of Spark: its executors are the hosts."),
        "mpi": Key(MPI, "The hosts that Open MPI's mpirun reaches, by a batch system or a hostfile."),
    },
    short="name",
    one_of=(("name", "slurm", "kubernetes", "ray", "spark", "mpi"),),
)

NOTIFY = Section(
    {
        "succeeded": Key(values.NOTICE, "A command or a webhook's URL for the end of a training that succeeded."),
        "failed": Key(values.NOTICE, "The same for a training that failed."),
        "restarted": Key(values.NOTICE, "The same for each task that is restarted."),
        "stalled": Key(values.NOTICE, "The same for each task that runs and makes no progress."),
    },
    may_be_empty=True,
)

CLUSTER = Section(
    {
        "name": Key(
            values.matching(
                r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", 'letters, digits, ".", "_" and "-", at most 64'
            ),
            "The cluster's name; by default its folder's.",
        ),
        "jobs": Key(Table(JOB, "^[A-Za-z][A-Za-z0-9_-]*$", _check_job_name), "The jobs and their tasks."),
        "hosts": Key(
            Table(HOST, f"^{values.HOST_PATTERN}$", _check_host_name, from_list=True),
            "The machines, by name or range; without them all runs here, or jobs name ssh hosts.",
        ),
        "checkpoint_dir": Key(
            values.PATH_OR_URL,
            "The folder of checkpoints: for placeholders, progress and TensorBoard. "
            "A URL (s3://...) goes to the program; progress is read there through fsspec.",
        ),
        "success": Key(
            SUCCESS, "The tasks that decide that the training has succeeded: all, any, chief, jobs, or {jobs, tasks}."
        ),
        "tensorboard": Key(TENSORBOARD, "A TensorBoard beside the training."),
        "engine": Key(ENGINE, "What provides the hosts, in place of `hosts`: slurm, kubernetes, ray, spark, mpi."),
        "ssh": Key(SSH, "How hosts are reached; your own ssh config, agent and jump hosts count."),
        "host_lost_after": Key(
            values.duration(1),
            "A host that is unreachable for this time, while others answer, is lost: a spare takes over.",
            "10m",
        ),
        "fence_after": Key(
            values.duration(1),
            "Tasks of another machine that hears nothing of the supervisor for this time are killed there; less than "
            "`host_lost_after`. By default on Slurm 1m or less, elsewhere never.",
        ),
        "security": Key(
            values.word("none", "tls"), "tls: mutual TLS with a CA of the cluster's own.", "none"
        ),
        "metrics": Key(
            values.METRICS,
            "Where the supervisor gives figures to Prometheus: 127.0.0.1:9464, or a port of 127.0.0.1.",
        ),
        "notify": Key(
            NOTIFY,
            "Commands that get a JSON document on stdin, or URLs to which it is posted, when something happens.",
        ),
        "autoscale": Key(
            Table(values.limits(1, REPLICAS_MAX), "^[A-Za-z][A-Za-z0-9_-]*$", _check_job_name),
            "Jobs whose number of tasks follows hosts and steps/s, within [least, most].",
        ),
        "port": _PORT,
        **SETTINGS,
    },
    one_of=ONE_OF,
)


def json_schema() -> dict[str, Any]:
    """A JSON schema (draft 7) of the cluster file, as editors take it."""
    names = {
        id(JOB): "job",
        id(TASK): "task",
        id(HOST): "host",
        id(RESTART): "restart",
        id(READINESS): "readiness",
    }
    names |= {id(LIVENESS): "liveness", id(PREEMPTION): "preemption", id(LIMITS): "limits"}
    names |= {id(REQUIREMENTS): "requirements", id(LOGS): "logs", id(SECRET): "secret", id(ENVIRONMENT): "environment"}
    definitions: dict[str, Any] = {"variable": {"type": "string", "pattern": r"\$\{"}}

    def of(kind: AnyKind) -> dict[str, Any]:
        if isinstance(kind, Kind):
            return {"anyOf": [*kind.schema.get("anyOf", [kind.schema]), {"$ref": "#/definitions/variable"}]}
        name = names.get(id(kind))
        if name is None:
            return body(kind)
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = body(kind)
        return {"$ref": f"#/definitions/{name}"}

    def body(kind: Section | Table) -> dict[str, Any]:
        if isinstance(kind, Table):
            table = {
                "type": "object",
                "patternProperties": {kind.key_schema: of(kind.kind)},
                "additionalProperties": False,
            }
            names_only = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
            return {"anyOf": [table, names_only]} if kind.from_list else table
        section: dict[str, Any] = {
            "type": "object",
            "properties": {key: described(entry) for key, entry in kind.keys.items()},
            "patternProperties": {"^x-": {}},
            "additionalProperties": False,
        }
        for group in kind.one_of:
            pairs = [(first, second) for first in group for second in group if first < second]
            excluded = [{"not": {"required": list(pair)}} for pair in pairs]
            section["allOf"] = section.get("allOf", []) + excluded
        others = [of(kind.keys[kind.short].kind)] if kind.short else []
        if kind.may_be_empty:
            others.append({"type": "null"})
        return {"anyOf": [section, *others]} if others else section

    def described(key: Key) -> dict[str, Any]:
        document: dict[str, Any] = {"description": key.help, **of(key.kind)}
        if "$ref" in document:
            # Beside a reference draft 7 overlooks everything else.
            document = {"description": key.help, "allOf": [{"$ref": document["$ref"]}]}
        if key.default:
            document["default"] = plain(key.default)
        return document

    root = body(CLUSTER)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "dtfctl cluster file",
        **root,
        "required": ["jobs"],
        "definitions": definitions,
    }


def plain(text: str) -> Any:
    """The number, the boolean or the text that YAML would take it for."""
    if re.fullmatch(r"0|-?[1-9]\d{0,17}", text):
        return int(text)
    if re.fullmatch(r"\d{1,9}\.\d{1,9}", text) and str(float(text)) == text:
        return float(text)
    return {"true": True, "false": False}.get(text, text)
