"""How a trainer takes its place in the cluster, by its text: flags, arguments, variables. Pure.

    flags_of("tf.app.flags.DEFINE_string('ps_hosts', '', '')").style == "hosts"

Owns which names mean what, and the cluster file that fits; `definitions` reads the text. `dtfctl init trainer.py`
writes the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from dtfctl.checks.definitions import Definitions, definitions_of

JOB = (
    "job_name", "job", "jobname", "job_type", "task_type", "role", "server_type", "node_type", "task_name", "type",
)  # fmt: skip
INDEX = (
    "task_index", "task_id", "task", "taskindex", "taskid", "task_idx", "task_num", "task_number", "index",
    "job_index", "worker_index", "worker_id", "node_index", "replica_id", "rank",
)  # fmt: skip
FOLDERS = (
    "checkpoint_dir", "model_dir", "train_dir", "logdir", "log_dir", "logs_dir", "ckpt_dir", "checkpoint_path",
    "output_dir", "save_dir",
)  # fmt: skip
_CLUSTER = ("cluster_spec", "cluster")
_HOSTS = re.compile(r"(?P<job>[a-z_]+?)s?_(hosts?|hostports?|addrs?|address(es)?|servers?|nodes|list|endpoints|urls?)")
_JOBS = {
    "ps": "ps", "parameter_server": "ps", "param_server": "ps", "parameterserver": "ps", "worker": "worker",
    "wk": "worker", "chief": "chief", "master": "master", "evaluator": "evaluator",
}  # fmt: skip
_LOCAL = re.compile(r"(localhost|127\.0\.0\.1):(\d+)")

HOSTS = "hosts"
PLACE = "place"
TF_CONFIG = "TF_CONFIG"
CLUSTER_SPEC = "CLUSTER_SPEC"
ALONE = "alone"


@dataclass(frozen=True)
class TrainerFlags:
    """What a program takes.

    Attributes:
      style: "hosts" (--ps_hosts=... and its place), "place" (job and index alone), "TF_CONFIG", "CLUSTER_SPEC" (both of
        the environment), or "alone": it knows no cluster.
      words: what its command line has after its name, with placeholders.
      environment: {variable: placeholder} of variables that dtfctl does not set by itself.
      jobs: {job: replicas}.
      ports: {job: ports} that the program's text fixes on this machine.
      unknown: positional arguments whose meaning is not known.
      is_estimator: whether it calls train_and_evaluate.
      imports_tensorflow: whether it imports tensorflow, which dtf may stand for.
      has_folder: whether a flag takes the folder of checkpoints.
      flags: all of them.
    """

    style: str
    words: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, int] = field(default_factory=dict)
    ports: dict[str, list[int]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    is_estimator: bool = False
    imports_tensorflow: bool = False
    has_folder: bool = False
    flags: tuple[str, ...] = ()


def flags_of(source: str, *others: str) -> TrainerFlags:
    """What the program of this text takes.

    Args:
      source: the program's text.
      others: those of its own modules, which may define flags.

    Raises:
      SyntaxError: a text is not Python's.
    """
    found = definitions_of(source, *others)
    hosts = _host_flags(found)
    job, index = _first(JOB, found.flags), _first(INDEX, found.flags)
    place = [(job, "{job}"), (index, "{task}")] if job and index or hosts else []
    words = [f"{found.flags[flag]}={{{name}_hosts}}" for name, flag in hosts.items()]
    words += [f"{found.flags[flag]}={value}" for flag, value in place if flag]
    cluster = _first(_CLUSTER, found.flags)
    if cluster and place:
        words.append(f"{found.flags[cluster]}={{cluster_spec}}")
    arguments, unknown, has_place = _arguments(found)
    folder = _first(FOLDERS, found.flags)
    if folder:
        words.append(f"{found.flags[folder]}={{checkpoint_dir}}")
    environment = _environment(found)
    is_estimator = bool({"train_and_evaluate", "RunConfig", "learn_runner"} & found.names)
    if hosts:
        style = HOSTS
    elif place or has_place:
        style = PLACE
    elif TF_CONFIG in found.texts or is_estimator:
        style = TF_CONFIG
    elif environment or {CLUSTER_SPEC, "JOB_NAME"} & found.texts:
        style = CLUSTER_SPEC
    else:
        style = ALONE
    jobs, ports = _literal_jobs(found) if style in (PLACE, CLUSTER_SPEC) else ({}, {})
    jobs = jobs or _jobs(style, hosts, environment, is_estimator)
    return TrainerFlags(
        style, (*arguments, *words), environment, jobs, ports, unknown,
        is_estimator, any(each.partition(".")[0] == "tensorflow" for each in found.imports), bool(folder),
        tuple(found.flags),
    )  # fmt: skip


def cluster_file(trainer: str, found: TrainerFlags) -> str:
    """The cluster file for a program, commented.

    Args:
      trainer: its path, relative to the file's folder.
      found: what it takes.
    """
    says = {
        HOSTS: "It reads its place in the cluster from flags.",
        PLACE: "It reads its job and its number from flags; the addresses are also in TF_CONFIG and CLUSTER_SPEC.",
        TF_CONFIG: "It reads its place in the cluster from TF_CONFIG, which each task has in its environment.",
        CLUSTER_SPEC: "It reads its place in the cluster from CLUSTER_SPEC, JOB_NAME and TASK_INDEX.",
        ALONE: "It reads no flag and no variable with its place in a cluster, so it runs once.",
    }[found.style]
    if found.environment:
        says = f"It reads its place in the cluster from the variables {', '.join(found.environment)}."
    lines = [
        f"# Written by `dtfctl init {trainer}`, which has looked at the program's flags. {says}",
        "#     dtfctl validate      checks this file",
        "#     dtfctl up --attach   starts the cluster and stays until it ends",
    ]
    if found.ports:
        lines.append("# The program's text holds its addresses: the ports below are those.")
    if found.unknown:
        lines.append(f"# Not known: the arguments {', '.join(found.unknown)}. Add them to the line of the program.")
    lines.append(f"program: {' '.join(['python', trainer, *found.words])}")
    if found.imports_tensorflow:
        lines.append(
            "tensorflow: dtf             # `import tensorflow` gives dtf; installed: the installed TensorFlow"
        )
    if found.has_folder:
        lines.append("checkpoint_dir: checkpoints")
    if found.environment:
        lines.append("environment:")
        lines += [f'  {name}: "{value}"' for name, value in found.environment.items()]
    lines.append("jobs:")
    for job, replicas in found.jobs.items():
        if job in found.ports:
            lines.append(f"  {job}: {{replicas: {replicas}, port: {found.ports[job]}}}")
        elif found.style == ALONE or (job == "evaluator" and found.style == TF_CONFIG):
            lines.append(f"  {job}: {{replicas: {replicas}, port: none}}")
        else:
            lines.append(f"  {job}: {replicas}")
    if found.style == TF_CONFIG and found.is_estimator:
        lines.append("success: [chief, worker, evaluator]")
    return "\n".join(lines) + "\n"


def _host_flags(found: Definitions) -> dict[str, str]:
    """{job: flag with the addresses of its tasks}, in the program's order."""
    hosts: dict[str, str] = {}
    for flag in found.flags:
        if flag in found.numbers:
            continue
        if flag.endswith(("_hosts", "_host")):
            job = flag.removesuffix("_hosts").removesuffix("_host")
            job = _JOBS.get(job.removesuffix("s") if job != "ps" else job, job)
        else:
            match = _HOSTS.fullmatch(flag)
            known = _JOBS.get(match["job"], _JOBS.get(match["job"] + "s")) if match else None
            job = known or ""
        if job:
            hosts.setdefault(job, flag)
    plain = {job: flag for job in ("ps", "worker") for flag in (job, job + "s") if flag in found.flags}
    is_text = plain and not set(plain.values()) & found.numbers
    return hosts if hosts or not is_text or len(plain) < 2 else plain


def _arguments(found: Definitions) -> tuple[list[str], tuple[str, ...], bool]:
    """(words of the positional arguments, those not known, whether they say the place)."""
    names = found.positionals or [found.argv.get(at, "") for at in range(1, max(found.argv, default=0) + 1)]
    words: list[str] = []
    for name in names:
        plain = name.replace("-", "_").lower()
        matched = _HOSTS.fullmatch(plain)
        known = matched and _JOBS.get(matched["job"], _JOBS.get(matched["job"] + "s"))
        word = "{job}" if plain in JOB else "{task}" if plain in INDEX else f"{{{known}_hosts}}" if known else ""
        words.append(word)
    has_place = "{job}" in words
    if not has_place:
        return [], (), False
    numbered = enumerate(zip(names, words, strict=True), 1)
    unknown = tuple(name or f"number {at}" for at, (name, word) in numbered if not word)
    known_words = words[: words.index("")] if "" in words else words
    return known_words, unknown, True


def _environment(found: Definitions) -> dict[str, str]:
    """{variable: placeholder} of variables with a task's place that dtfctl does not set."""
    result: dict[str, str] = {}
    for variable in found.variables:
        plain = variable.lower()
        matched = _HOSTS.fullmatch(plain)
        job = _JOBS.get(matched["job"], _JOBS.get(matched["job"] + "s")) if matched else None
        if job:
            result[variable] = f"{{{job}_hosts}}"
        elif variable in ("JOB_NAME", "TASK_INDEX", CLUSTER_SPEC, TF_CONFIG):
            continue
        elif plain in JOB and variable.isupper():
            result[variable] = "{job}"
        elif plain in INDEX and variable.isupper() and plain != "rank":
            result[variable] = "{task}"
    return result


def _literal_jobs(found: Definitions) -> tuple[dict[str, int], dict[str, list[int]]]:
    """(replicas, ports) of a cluster that the program's text holds; ports are those of this machine."""
    for cluster in found.clusters:
        matches = {job: [_LOCAL.fullmatch(each) for each in addresses] for job, addresses in cluster.items()}
        if cluster and all(matched and all(matched) for matched in matches.values()):
            ports = {job: [int(each[2]) for each in matched if each] for job, matched in matches.items()}
            return {job: len(each) for job, each in ports.items()}, ports
        if cluster:
            return {job: len(addresses) for job, addresses in cluster.items()}, {}
    return {}, {}


def _jobs(style: str, hosts: Iterable[str], environment: dict[str, str], is_estimator: bool) -> dict[str, int]:
    if style == ALONE:
        return {"worker": 1}
    if style == TF_CONFIG and is_estimator:
        return {"chief": 1, "ps": 1, "worker": 1, "evaluator": 1}
    named = sorted(value[1 : -len("_hosts}")] for value in environment.values() if value.endswith("_hosts}"))
    jobs = list(dict.fromkeys([*hosts, *named])) or ["ps", "worker"]
    return {job: 1 if job in ("ps", "chief", "master", "evaluator") else 2 for job in jobs}


def _first(names: tuple[str, ...], flags: Iterable[str]) -> str:
    known = set(flags)
    return next((name for name in names if name in known), "")
