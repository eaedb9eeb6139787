"""`expand --as` for Kubernetes: objects and a Containerfile, printed or written to a folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from dtfctl.commands.frame import USAGE, Options, fail

if TYPE_CHECKING:
    from dtfctl.config import ClusterFile
    from dtfctl.values.plan import ClusterPlan

CONTAINERFILE = "Containerfile"


Arguments: TypeAlias = tuple[str | None, tuple[str, ...], tuple[str, ...]]


def write(
    options: Options,
    file: ClusterFile,
    target: str,
    folder: str | None,
    with_secrets: bool,
    arguments: Arguments = (None, (), ()),
) -> None:
    """`arguments` are the file, more files and settings of the command. Raises ConfigError, SecretMissing."""
    from dtfctl.manifests import containerfile

    plan = _plan(file)
    if target == "containerfile":
        print(containerfile.text(plan), end="")
        return
    texts = {f"{target}.yaml": _manifests(plan, target, with_secrets, options, arguments)}
    if folder is None:
        print(*texts.values(), sep="", end="")
        return
    os.makedirs(folder, exist_ok=True)
    texts[CONTAINERFILE] = containerfile.text(plan)
    for name, text in texts.items():
        path = os.path.join(folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as written:
            written.write(text)
        options.terminal().say(f"wrote {path}")


def _plan(file: ClusterFile) -> ClusterPlan:
    from dtfctl.values.plan import KUBERNETES

    plan = file.on(KUBERNETES).plan()
    if plan.engine != KUBERNETES:
        fail(USAGE, f"{plan.file} names engine: {plan.engine}; objects of Kubernetes need --set engine=kubernetes")
    return plan


def _manifests(plan: ClusterPlan, target: str, with_secrets: bool, options: Options, arguments: Arguments) -> str:
    from dtfctl.control.cluster import read_secrets
    from dtfctl.manifests import pods, shared
    from dtfctl.manifests.written import SUPERVISOR, manifests, of_supervisor

    sources = shared.secret_names(plan)
    values: dict[str, str] = {}
    if with_secrets:
        found = read_secrets(plan, os.environ)
        values = {name: found[source] for name, source in sources.items()}
    if target == SUPERVISOR:
        text = of_supervisor(plan, _up_words(plan, arguments), values)
    else:
        text = manifests(plan, target, values)
    if sources and not with_secrets:
        words = " ".join(f"--from-literal={name}=..." for name in sources)
        create = f"kubectl create secret generic {pods.secrets_name(plan)} {words}"
        options.terminal().say(f"the pods need a Secret, which is not printed: {create}; or --with-secrets")
    return text


def _up_words(plan: ClusterPlan, arguments: Arguments) -> list[str]:
    """The same `up` in the image, which has the file's folder."""
    _, more, settings = arguments
    files = [os.path.relpath(os.path.abspath(each), plan.folder) for each in (plan.file, *more)]
    outside = next((each for each in files if each.startswith("..")), "")
    if outside:
        fail(USAGE, f"{outside} is outside {plan.folder}, the folder that the image has")
    words = [files[0], *(word for each in files[1:] for word in ("-f", each))]
    return words + [word for setting in settings for word in ("--set", setting)]
