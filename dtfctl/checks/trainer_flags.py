"""What a trainer's text says of how it takes its place in the cluster: its flags and variables. Pure; by the syntax
tree, nothing of the program is run.

    flags_of("tf.app.flags.DEFINE_string('ps_hosts', '', '')").style == "hosts"

`dtfctl init trainer.py` writes the cluster file that fits.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

JOB = ("job_name", "job", "task_type", "role")
INDEX = ("task_index", "task_id", "task", "index", "worker_index")
FOLDERS = ("checkpoint_dir", "model_dir", "train_dir", "logdir", "log_dir", "checkpoint_path", "output_dir", "save_dir")
_CLUSTER = ("cluster_spec", "cluster")

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
      job_flag, index_flag, cluster_flag: what these flags are called, "" for none.
      host_flags: {job: flag with the addresses of its tasks}.
      folder_flag: the flag of the folder of checkpoints, "" for none.
      is_estimator: whether it calls train_and_evaluate.
      imports_tensorflow: whether it imports tensorflow, which dtf may stand for.
      flags: all of them.
    """

    style: str
    job_flag: str = ""
    index_flag: str = ""
    cluster_flag: str = ""
    host_flags: dict[str, str] = field(default_factory=dict)
    folder_flag: str = ""
    is_estimator: bool = False
    imports_tensorflow: bool = False
    flags: tuple[str, ...] = ()


def flags_of(source: str) -> TrainerFlags:
    """What the program of this text takes.

    Raises:
      SyntaxError: the text is not Python's.
    """
    tree = ast.parse(source)
    flags: list[str] = []
    texts: set[str] = set()
    imports: set[str] = set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            flags += _defined(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        elif isinstance(node, ast.Import):
            imports |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Name):
            names.add(node.id)
    known = tuple(dict.fromkeys(flags))
    hosts = {
        flag.removesuffix("_hosts").removesuffix("_host"): flag for flag in known if flag.endswith(("_hosts", "_host"))
    }
    job, index = _first(JOB, known), _first(INDEX, known)
    cluster = _first(_CLUSTER, known)
    is_estimator = bool({"train_and_evaluate", "RunConfig", "learn_runner"} & names)
    if hosts:
        style = HOSTS
    elif job and index:
        style = PLACE
    elif TF_CONFIG in texts or is_estimator:
        style = TF_CONFIG
    elif CLUSTER_SPEC in texts or "JOB_NAME" in texts:
        style = CLUSTER_SPEC
    else:
        style = ALONE
    return TrainerFlags(
        style, job, index, cluster, hosts, _first(FOLDERS, known), is_estimator, "tensorflow" in imports, known
    )


def cluster_file(trainer: str, found: TrainerFlags) -> str:
    """The cluster file for a program, commented.

    Args:
      trainer: its path, relative to the file's folder.
      found: what it takes.
    """
    words = ["python", trainer]
    says = {
        HOSTS: "It reads its place in the cluster from flags.",
        PLACE: "It reads its job and its number from flags; the addresses are also in TF_CONFIG and CLUSTER_SPEC.",
        TF_CONFIG: "It reads its place in the cluster from TF_CONFIG, which each task has in its environment.",
        CLUSTER_SPEC: "It reads its place in the cluster from CLUSTER_SPEC, JOB_NAME and TASK_INDEX.",
        ALONE: "It reads no flag and no variable with its place in a cluster, so it runs once.",
    }[found.style]
    words += [f"--{flag}={{{job}_hosts}}" for job, flag in found.host_flags.items()]
    if found.style in (HOSTS, PLACE):
        words += [
            f"--{flag}={value}" for flag, value in ((found.job_flag, "{job}"), (found.index_flag, "{task}")) if flag
        ]
        if found.cluster_flag:
            words.append(f"--{found.cluster_flag}={{cluster_spec}}")
    if found.folder_flag:
        words.append(f"--{found.folder_flag}={{checkpoint_dir}}")
    lines = [
        f"# Written by `dtfctl init {trainer}`, which has looked at the program's flags. {says}",
        "#     dtfctl validate      checks this file",
        "#     dtfctl up --attach   starts the cluster and stays until it ends",
        f"program: {' '.join(words)}",
    ]
    if found.imports_tensorflow:
        lines.append(
            "tensorflow: dtf             # `import tensorflow` gives dtf; installed: the installed TensorFlow"
        )
    if found.folder_flag:
        lines.append("checkpoint_dir: checkpoints")
    lines.append("jobs:")
    jobs = list(found.host_flags) or (["worker"] if found.style == ALONE else ["ps", "worker"])
    for job in jobs:
        lines.append(f"  {job}: {1 if job in ('ps', 'chief', 'master', 'evaluator') or found.style == ALONE else 2}")
    if found.style == TF_CONFIG and found.is_estimator:
        lines[-2:] = ["  chief: 1", "  ps: 1", "  worker: 1", "  evaluator: {replicas: 1, port: none}"]
        lines.append("success: [chief, worker, evaluator]")
    if found.style == ALONE:
        lines[-1] = "  worker: {replicas: 1, port: none}"
    return "\n".join(lines) + "\n"


def _defined(call: ast.Call) -> list[str]:
    """The flags that a call defines: DEFINE_string("name", ...), add_argument("--name"), click.option("--name")."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [*call.args, *(each.value for each in call.keywords if each.arg in ("name", "flag_name"))]
    texts = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if function.startswith("DEFINE_"):
        return texts[:1]
    if function in ("add_argument", "option"):
        return [text.lstrip("-") for text in texts if text.startswith("--")]
    return []


def _first(names: tuple[str, ...], flags: tuple[str, ...]) -> str:
    return next((name for name in names if name in flags), "")
