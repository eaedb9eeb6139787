"""The batch script with which a cluster runs on Slurm: its options, and the lines that run dtfctl in it. Pure.

Where nodes share no file system the script carries the cluster file's folder as a text, and unpacks it on the first
node; from there dtfctl copies it to the others.

The script runs on the allocation's first node, and dtfctl in it is the same as anywhere. Slurm's notice before the
time limit or a preemption (SIGUSR1, to the script alone) ends the cluster in order, so that the chief saves, and puts
the job back into the queue; it goes on there from the checkpoint.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence

from dtfctl.values.engines import SlurmGroup
from dtfctl.values.plan import ClusterPlan

NOTICE_S = 120
"""So long before the time limit comes the notice; Slurm may send it up to a minute earlier."""

_UNPACK = """\
umask 077
folder={folder}
log=$folder/slurm-$SLURM_JOB_ID.log
# Nobody can read the log of another machine after the job; Slurm keeps the comment for a while.
refuse() {{
    echo "error: $1"
    scontrol update JobId="$SLURM_JOB_ID" Comment="$1"
    exit 1
}}
mkdir -p "$folder" && : >> "$log" || refuse "$(hostname): $folder cannot be written; use another --state-dir"
exec >> "$log" 2>&1
command -v {python} > /dev/null ||
    refuse "$(hostname): "{python}" is not there; name another Python: engine.slurm.python"
{python} -c 'import dtfctl' || refuse "$(hostname): "{python}" has no dtfctl; install it there"
rm -rf "$folder/{source}" && mkdir "$folder/{source}" && base64 -d << 'END' | tar -xzf - -C "$folder/{source}" ||
{parcel}
END
    refuse "$(hostname): the folder cannot be unpacked in $folder/{source}: $(tail -n 1 "$log")"
"""
_COUNT = """\
    # At a notice before the time limit little time is left; at one before a preemption, which does not count, more.
    end=$(date -d "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)" +%s 2> /dev/null) || end=
    limits={folder}/limits-$SLURM_JOB_ID
    [ -z "$end" ] || [ "$((end - $(date +%s)))" -gt {within_s} ] || echo >> "$limits"
"""
_CONDITION = ' && [ "$(cat "$limits" 2> /dev/null | wc -l)" -le {requeues} ]'
LATER_S = 60
"""Slurm ends a job up to a minute after its time limit, and sends the notice up to a minute early."""

SOURCE = "source"
"""In the cluster's state folder on the first node: what the script has brought."""

_BODY = """\
set -u
{before}dtfctl() {{ {dtfctl} "$@"; }}
is_noticed=
# Without a cluster to end, `up` is still on its way.
leave() {{
    is_noticed=yes
{count}    dtfctl down {name} || kill -TERM "$main"
}}
trap leave USR1
{dtfctl} up {arguments} --attach --progress plain &
main=$!
trap 'kill -TERM "$main"' TERM
# A signal ends `wait` early; the cluster has ended only when its process has.
while :; do
    wait "$main"
    status=$?
    kill -0 "$main" 2> /dev/null || break
done
# The process may have ended while a trap ran; then that status is the signal's, and its own is still to be had.
wait "$main" 2> /dev/null
own=$?
[ "$own" -eq 127 ] || status=$own
if [ -n "$is_noticed" ] && [ "$status" -ne 0 ]{condition} && scontrol requeue "$SLURM_JOB_ID"; then
    exit 0
fi
exit "$status"
"""


def script(
    plan: ClusterPlan,
    dtfctl: Sequence[str],
    arguments: Sequence[str],
    output: str,
    before: str = "",
    folder: str = ".",
) -> str:
    """`dtfctl` is the command on the nodes, `arguments` are those of its `up`, `output` is the pattern of the job's
    log (see `log_pattern`). `before` are lines that come first: see `unpacking`. `folder` is the cluster's, where the
    ends by a time limit are counted."""
    first, *others = groups(plan)
    lines = [f"#SBATCH {option}" for option in options(plan, output, first)]
    for group in others:
        lines += ["#SBATCH hetjob", *(f"#SBATCH {option}" for option in options_of_nodes(plan, group))]
    counted = {"count": "", "condition": ""}
    if plan.slurm.requeues is not None:
        within_s = notice_s(options(plan, output, first)) + LATER_S
        counted = {"count": _COUNT.format(within_s=within_s, folder=shlex.quote(folder)), "condition": _CONDITION}
        counted["condition"] = _CONDITION.format(requeues=plan.slurm.requeues)
    values = {"dtfctl": shlex.join(dtfctl), "name": shlex.quote(plan.name), "arguments": shlex.join(arguments)}
    return "\n".join(["#!/bin/bash", *lines, _BODY.format(before=before, **counted, **values)])


def notice_s(chosen: Sequence[str]) -> int:
    """So many seconds before the end the notice comes, by these options."""
    given = [option for option in chosen if _name(option) == "--signal"]
    match = re.search(r"@(\d+)", given[-1]) if given else None
    return int(match[1]) if match else NOTICE_S


def unpacking(python: str, folder: str, parcel: str) -> str:
    """Lines that bring the `parcel` to SOURCE in the cluster's state folder on the first node, and write the job's log
    there. A `parcel` is base64 of a compressed tar."""
    values = {"python": shlex.quote(python), "folder": shlex.quote(folder), "source": SOURCE}
    return _UNPACK.format(parcel=parcel.rstrip("\n"), **values)


def log_pattern(log: str) -> str:
    """The value of `--output` for the path `log`, in whose last part `%j` stands for the job's number.

    sbatch reads a script's options as words with quotes, and `%` as the beginning of a symbol; `%%` is the character.
    Slurm cannot write to a path with a backslash.
    """
    folder, name = os.path.split(log)
    pattern = os.path.join(folder.replace("%", "%%"), name)
    if not set(pattern) & set(" \t#\"'"):
        return pattern
    quoted = pattern.replace('"', '\\"')
    return f'"{quoted}"'


def groups(plan: ClusterPlan) -> tuple[SlurmGroup, ...]:
    """Those of a heterogeneous job, or all nodes as one."""
    every = SlurmGroup("", plan.slurm.nodes, (), tuple(host.name for host in plan.hosts))
    return plan.slurm.groups or (every,)


def options(plan: ClusterPlan, output: str, group: SlurmGroup | None = None) -> list[str]:
    """dtfctl's own options, but those that the file replaces or leaves out; then the file's. `group` has the nodes,
    and is the one on whose first node the script runs."""
    of_job = {
        "--output": output,
        "--open-mode": "append",
        "--requeue": "",
        "--signal": f"B:USR1@{NOTICE_S}",
        # The folder of this command need not be on the nodes.
        **({"--chdir": "/"} if plan.slurm.is_apart else {}),
    }
    group = group or groups(plan)[0]
    return _chosen(plan, group, {"--job-name": plan.name, **_of_nodes(plan, group), **of_job})


def options_of_nodes(plan: ClusterPlan, group: SlurmGroup) -> list[str]:
    """Those of another group of a heterogeneous job."""
    return _chosen(plan, group, _of_nodes(plan, group))


def _of_nodes(plan: ClusterPlan, group: SlurmGroup) -> dict[str, str]:
    cores = [count for host, count in _cores(plan).items() if host in group.members]
    places = [place for job in plan.jobs for place in job.places if place.host in group.members]
    gpus = max((max(place.gpus) + 1 for place in places if place.gpus), default=0)
    return {
        "--nodes": str(group.nodes),
        "--ntasks-per-node": "1",
        "--cpus-per-task": str(max(cores, default=1)),
        "--no-kill": "",
        **({"--gres": f"gpu:{gpus}"} if gpus else {}),
    }


def _chosen(plan: ClusterPlan, group: SlurmGroup, own: dict[str, str]) -> list[str]:
    names = set(map(_name, group.options))
    general = [option for option in plan.slurm.options if _name(option) not in names]
    given = {*map(_name, general), *names, *map(_name, plan.slurm.without)}
    kept = [f"{name}={value}" if value else name for name, value in own.items() if name not in given]
    return [*kept, *general, *group.options]


def _cores(plan: ClusterPlan) -> dict[str, int]:
    """How many cores the tasks of each host take, at least one each."""
    found: dict[str, int] = {}
    for task in plan.tasks():
        found[task.host.name] = found.get(task.host.name, 0) + max(1, len(task.place.cpus))
    return found


_LONG = {"-J": "--job-name", "-N": "--nodes", "-c": "--cpus-per-task", "-o": "--output", "-k": "--no-kill"}


def _name(option: str) -> str:
    """--nodes of `--nodes=4`, `--nodes 4`, `-N 4` and `-N4`."""
    word = option.replace("=", " ").split()[0] if option.split() else ""
    return word if word.startswith("--") else _LONG.get(word[:2], word)
