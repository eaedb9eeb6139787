"""The cluster file: YAML text in, a ClusterPlan or a ConfigError out. Touches no disk but for `load`.

A key that belongs to a job may also stand at the top, as the default of all jobs. Every error names file, line,
column and key, and the nearest key that exists. The keys are listed in README.md.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from dtfctl.errors import ConfigError
from dtfctl.expand import unknown_placeholders
from dtfctl.plan import POLICIES, ClusterPlan, JobPlan, Probe, RestartPolicy

DEFAULTABLE_KEYS = ("program", "python", "environment", "working_dir", "restart", "readiness", "grace_period")
JOB_KEYS = ("replicas", "port", *DEFAULTABLE_KEYS)
CLUSTER_KEYS = ("name", "checkpoint_dir", "jobs", "success", *DEFAULTABLE_KEYS)
RESTART_KEYS = ("policy", "attempts", "window", "backoff", "backoff_max", "healthy_after")
READINESS_KEYS = ("probe", "command", "file", "interval", "timeout")
PROBES = ("grpc", "tcp", "none")

REPLICAS_MAX = 10_000
HELPERS = frozenset({"ps", "evaluator", "tensorboard"})
"""Jobs that serve the others: by default they do not decide whether the training succeeded."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


def load(path: Path) -> ClusterPlan:
    """Reads a cluster file. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    return parse(text, str(path), Path(os.path.abspath(path)).parent)


def parse(text: str, file: str, folder: Path) -> ClusterPlan:
    """`file` is how errors name it; relative paths in it are relative to `folder`."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise ConfigError(f"{file}{where}: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None
    if root is None:
        raise ConfigError(f"{file}:1:1: the file is empty; it needs at least `program` and `jobs`")
    return _Reader(file, folder).cluster(root)


class _Reader:
    """Walks the YAML nodes, which know their positions, and turns each into its value."""

    def __init__(self, file: str, folder: Path) -> None:
        self.file = file
        self.folder = folder

    def cluster(self, root: yaml.Node) -> ClusterPlan:
        keys = self.mapping(root, "", CLUSTER_KEYS)
        if "jobs" not in keys:
            raise self.error(root, 'the key "jobs" is missing: it says which tasks there are')
        job_nodes = self.mapping(keys["jobs"], "jobs", None)
        if not job_nodes:
            raise self.error(keys["jobs"], '"jobs" names no job')
        defaults = {key: keys[key] for key in DEFAULTABLE_KEYS if key in keys}
        names = tuple(job_nodes)
        jobs = tuple(self.job(name, node, defaults, names) for name, node in job_nodes.items())
        self.check_ports(jobs, job_nodes)
        if "name" in keys:
            name = self.cluster_name(keys["name"])
        else:
            name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.folder.name).strip("-._") or "cluster"
        checkpoint_dir = self.path(keys["checkpoint_dir"], "checkpoint_dir") if "checkpoint_dir" in keys else ""
        success = self.success(keys["success"], names) if "success" in keys else default_success(names)
        file = str(self.folder / Path(self.file).name)
        return ClusterPlan(name, file, str(self.folder), checkpoint_dir, jobs, success)

    def job(self, name: str, node: yaml.Node, defaults: dict[str, yaml.Node], names: tuple[str, ...]) -> JobPlan:
        where = f"jobs.{name}"
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
            raise self.error(node, f'"{name}" is no name for a job: letters, digits, _ and - only')
        if isinstance(node, yaml.ScalarNode):
            own: dict[str, yaml.Node] = {"replicas": node}
        else:
            own = self.mapping(node, where, JOB_KEYS)
        keys = {**defaults, **own}
        if "program" not in keys:
            raise self.error(node, f'the key "program" is missing, both at the top and under {where}')
        replicas = self.integer(keys["replicas"], f"{where}.replicas", 1, REPLICAS_MAX) if "replicas" in keys else 1
        ports = self.ports(keys["port"], f"{where}.port", replicas) if "port" in keys else None
        environment: dict[str, str] = {}
        for level in (defaults, own):
            if "environment" in level:
                environment.update(self.environment(level["environment"], where, names))
        default_probe = Probe("none" if ports == () else "grpc")
        return JobPlan(
            name=name,
            replicas=replicas,
            program=self.program(keys["program"], where, names),
            python=self.path(keys["python"], "python") if "python" in keys else sys.executable,
            working_dir=self.path(keys["working_dir"], "working_dir") if "working_dir" in keys else str(self.folder),
            environment=environment,
            ports=ports,
            restart=self.restart(keys["restart"]) if "restart" in keys else RestartPolicy(),
            readiness=self.readiness(keys["readiness"], ports) if "readiness" in keys else default_probe,
            grace_period_s=self.duration(keys["grace_period"], "grace_period") if "grace_period" in keys else 10.0,
        )

    def program(self, node: yaml.Node, where: str, names: tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(node, yaml.SequenceNode):
            words = tuple(self.text(word, "program") for word in node.value)
            if not words or not words[0]:
                raise self.error(node, '"program" is empty')
            for word, word_node in zip(words, node.value, strict=True):
                self.check_placeholders(word, word_node, names)
            return words
        line = self.text(node, "program")
        if not line.strip():
            raise self.error(node, '"program" is empty')
        self.check_placeholders(line, node, names)
        return line

    def environment(self, node: yaml.Node, where: str, names: tuple[str, ...]) -> dict[str, str]:
        values = {}
        for key, value in self.mapping(node, f"{where}.environment", None).items():
            values[key] = self.text(value, f"environment.{key}")
            if not key or "=" in key or "\0" in key:
                raise self.error(value, f'"{key}" is no name for an environment variable')
            self.check_placeholders(values[key], value, names)
        return values

    def ports(self, node: yaml.Node, where: str, replicas: int) -> tuple[int, ...] | None:
        if isinstance(node, yaml.SequenceNode):
            ports = tuple(self.integer(port, where, 1, 65535) for port in node.value)
            if len(ports) != replicas:
                raise self.error(node, f'"{where}" lists {len(ports)} ports for {replicas} tasks')
            return ports
        word = self.text(node, where)
        if word == "auto":
            return None
        if word == "none":
            return ()
        if not word.isdecimal():
            raise self.error(node, f'"{where}" must be auto, none, a number or a list of numbers, not "{word}"')
        first = self.integer(node, where, 1, 65535 - replicas + 1)
        return tuple(range(first, first + replicas))

    def check_ports(self, jobs: Iterable[JobPlan], nodes: dict[str, yaml.Node]) -> None:
        owners: dict[int, str] = {}
        for job in jobs:
            for index, port in enumerate(job.ports or ()):
                task = f"{job.name}:{index}"
                if port in owners:
                    raise self.error(nodes[job.name], f"port {port} is that of {owners[port]} and of {task}")
                owners[port] = task

    def restart(self, node: yaml.Node) -> RestartPolicy:
        if isinstance(node, yaml.ScalarNode):
            return RestartPolicy(policy=self.word(node, "restart", POLICIES))
        keys = self.mapping(node, "restart", RESTART_KEYS)
        default = RestartPolicy()

        def duration(key: str, otherwise: float) -> float:
            return self.duration(keys[key], f"restart.{key}") if key in keys else otherwise

        return RestartPolicy(
            policy=self.word(keys["policy"], "restart.policy", POLICIES) if "policy" in keys else default.policy,
            attempts=(
                self.integer(keys["attempts"], "restart.attempts", 0, 1_000_000)
                if "attempts" in keys
                else default.attempts
            ),
            window_s=duration("window", default.window_s),
            backoff_s=duration("backoff", default.backoff_s),
            backoff_max_s=duration("backoff_max", default.backoff_max_s),
            healthy_s=duration("healthy_after", default.healthy_s),
        )

    def readiness(self, node: yaml.Node, ports: tuple[int, ...] | None) -> Probe:
        kind, target, default = "none", "", Probe()
        keys: dict[str, yaml.Node] = {}
        if isinstance(node, yaml.ScalarNode):
            kind = self.word(node, "readiness", PROBES)
        else:
            keys = self.mapping(node, "readiness", READINESS_KEYS)
            kinds = [key for key in ("probe", "command", "file") if key in keys]
            if len(kinds) != 1:
                raise self.error(node, '"readiness" needs exactly one of the keys "probe", "command" and "file"')
            if kinds == ["probe"]:
                kind = self.word(keys["probe"], "readiness.probe", PROBES)
            else:
                kind = kinds[0]
                target = self.text(keys[kind], f"readiness.{kind}")
                if kind == "file":
                    target = str(self.folder / target)
        if kind in ("grpc", "tcp") and ports == ():
            raise self.error(node, f'readiness by {kind} needs a port, and "port" is none')
        return Probe(
            kind,
            target,
            self.duration(keys["interval"], "readiness.interval", 0.01) if "interval" in keys else default.interval_s,
            self.duration(keys["timeout"], "readiness.timeout", 0.01) if "timeout" in keys else default.timeout_s,
        )

    def success(self, node: yaml.Node, names: tuple[str, ...]) -> tuple[str, ...]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        chosen = tuple(self.word(item, "success", names) for item in nodes)
        if not chosen:
            raise self.error(node, '"success" names no job')
        return chosen

    # -- values of one kind

    def mapping(self, node: yaml.Node, where: str, known: Iterable[str] | None) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, f"{_subject(where)} must be a mapping of keys to values, not {_kind(node)}")
        found: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.error(key_node, f"a key must be a word, not {_kind(key_node)}")
            key = key_node.value
            if key in found:
                raise self.error(key_node, f'the key "{key}" is there twice{_under(where)}')
            if known is not None and key not in known:
                raise self.error(key_node, f'unknown key "{key}"{_under(where)}{_nearest(key, known)}')
            found[key] = value
        return found

    def text(self, node: yaml.Node, where: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, f'"{where}" must be one value, not {_kind(node)}')
        if node.tag == "tag:yaml.org,2002:null":
            raise self.error(node, f'"{where}" has no value')
        if "\0" in node.value:
            raise self.error(node, f'"{where}" holds a zero byte')
        return node.value

    def integer(self, node: yaml.Node, where: str, least: int, most: int) -> int:
        word = self.text(node, where)
        if not re.fullmatch(r"\d{1,9}", word, re.ASCII) or not least <= int(word) <= most:
            raise self.error(node, f'"{where}" must be a whole number from {least} to {most}, not "{word}"')
        return int(word)

    def duration(self, node: yaml.Node, where: str, least: float = 0.0) -> float:
        word = self.text(node, where)
        match = _DURATION.fullmatch(word)
        if not match:
            raise self.error(node, f'"{where}" must be a duration such as 500ms, 10s, 5m or 1h, not "{word}"')
        seconds = float(match[1]) * _UNIT_S[match[2]]
        if not least <= seconds <= 1e9:
            raise self.error(node, f'"{where}" must be at least {least:g}s and at most 1e9s, not "{word}"')
        return seconds

    def word(self, node: yaml.Node, where: str, known: tuple[str, ...]) -> str:
        word = self.text(node, where)
        if word not in known:
            choice = known[0] if len(known) == 1 else f"{', '.join(known[:-1])} or {known[-1]}"
            raise self.error(node, f'"{where}" must be {choice}, not "{word}"{_nearest(word, known)}')
        return word

    def path(self, node: yaml.Node, where: str) -> str:
        word = os.path.expanduser(self.text(node, where))
        if not word:
            raise self.error(node, f'"{where}" is empty')
        return os.path.normpath(self.folder / word)

    def cluster_name(self, node: yaml.Node) -> str:
        name = self.text(node, "name")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            raise self.error(node, f'"name" must be letters, digits, ".", "_" and "-", at most 64, not "{name}"')
        return name

    def check_placeholders(self, text: str, node: yaml.Node, names: tuple[str, ...]) -> None:
        for unknown, known in unknown_placeholders(text, names):
            raise self.error(node, f'unknown placeholder "{{{unknown}}}"{_nearest(unknown, known)}')

    def error(self, node: yaml.Node, message: str) -> ConfigError:
        mark = node.start_mark
        return ConfigError(f"{self.file}:{mark.line + 1}:{mark.column + 1}: {message}")


def default_success(names: tuple[str, ...]) -> tuple[str, ...]:
    """The chief decides where there is one, else the workers, else every job that does not serve another."""
    for choice in ("chief", "master", "worker"):
        if choice in names:
            return (choice,)
    return tuple(name for name in names if name not in HELPERS) or names


def _subject(where: str) -> str:
    return f'"{where}"' if where else "a cluster file"


def _under(where: str) -> str:
    return f" under {where}" if where else ""


def _nearest(word: str, known: Iterable[str]) -> str:
    candidates = list(known)
    near = difflib.get_close_matches(word.lower(), candidates, 1, 0.6)
    return f' (did you mean "{near[0]}"?)' if near else f" (known: {', '.join(candidates)})"


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return f'"{node.value}"' if node.value else "nothing"
