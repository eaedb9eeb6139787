"""The hosts of Open MPI: mpirun knows them, by a batch system or a hostfile, and a call of it is the pipe to one.

`mpirun --host NODE -np 1 COMMAND` carries input and output byte for byte. All that a call has started ends with it, so
the keeper has a call of its own (agent `keep`) that lasts as long as the run. No MPI program is involved.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dtfctl.errors import HostsUnusable
from dtfctl.launchers.pipe import PipeError, ProcessCall, open_process
from dtfctl.launchers.ssh import PYTHONS
from dtfctl.values.engines import MpiSettings
from dtfctl.values.plan import MPI, ClusterPlan, HostPlan
from dtfctl.wording import reason_of

CONNECT_S = 60.0
"""A call takes a fraction of a second; a batch system's own starter may be slow."""

RANK = "OMPI_COMM_WORLD_RANK"
_WORD = "dtfctl-host"
_SAY = f'echo "{_WORD} ${RANK} $(uname -n)"'
_RULE = re.compile(r"-{20,}")
_NODE = re.compile(r"Data for node: (\S+)")
_PROCESS = re.compile(r"Process rank: (\d+)")
_NOISE = re.compile(r"\[[^\]]*:\d+\] ")
_PLAIN_END = ("non-zero exit code", "non-zero status", "exited on signal", "specified executable")


class MpiPipe:
    """See pipe.Pipe. The host's `target` is the name that mpirun has for it."""

    connect_timeout_s = CONNECT_S
    is_shared = False
    outlives = False

    def __init__(self, settings: MpiSettings, host: HostPlan, folder: Path) -> None:
        self.settings = settings
        self.host = host
        self._folder = folder

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.host.python, *PYTHONS)))

    async def open(self, command: Sequence[str]) -> ProcessCall:
        if not self.host.target:
            raise PipeError("the hosts of mpirun become known when the cluster starts", self.by_hand(), False)
        line = _on_host(self.settings, self.host.target, command)
        try:
            return await open_process(line, self._folder, own_environment(os.environ))
        except OSError as error:
            raise PipeError(_not_run(self.settings, error), self.by_hand()) from None

    def failure(self, status: int, words: str) -> PipeError:
        why, is_connection = explain(words, status)
        return PipeError(why, self.by_hand(), is_connection)

    def by_hand(self, *words: str) -> str:
        return shlex.join(_on_host(self.settings, self.host.target, words or ("true",)))

    def rsync_target(self, folder: str) -> None:
        return None

    async def disconnect(self) -> None:
        return None


def found(plan: ClusterPlan, environment: Mapping[str, str], say: Callable[[str], None]) -> ClusterPlan:
    """The plan on the hosts that mpirun reaches now. Raises HostsUnusable with mpirun's reason."""
    if RANK in environment:
        raise HostsUnusable("this dtfctl was started by mpirun; start it once, by itself: it calls mpirun")
    settings = plan.mpi
    line = (*_mpirun(settings), "--map-by", "ppr:1:node", "--display-map", "/bin/sh", "-c", _SAY)
    by_hand = shlex.join((*_mpirun(settings), "--map-by", "ppr:1:node", "uname", "-n"))
    say("MPI: asking mpirun for its hosts")
    try:
        done = subprocess.run(
            line,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=CONNECT_S,
            cwd=plan.folder,
            env=own_environment(environment),
        )
    except OSError as error:
        raise HostsUnusable(_not_run(settings, error)) from None
    except subprocess.TimeoutExpired:
        raise HostsUnusable(f"mpirun did not answer within {CONNECT_S:g}s\n       see: {by_hand}") from None
    if done.returncode:
        raise HostsUnusable(f"{explain(done.stderr, done.returncode)[0]}\n       see: {by_hand}")
    nodes = nodes_in(done.stdout)
    same = sorted({own for _, own in nodes if [other for _, other in nodes].count(own) > 1})
    if same:
        names = ", ".join(node for node, own in nodes if own == same[0])
        raise HostsUnusable(f"{names} are the same host, {same[0]}, and each host must be one\n       see: {by_hand}")
    if len(nodes) < settings.nodes:
        names = ", ".join(node for node, _ in nodes) or "none"
        raise HostsUnusable(
            f"mpirun reaches {len(nodes)} hosts ({names}), and engine.mpi.nodes is {settings.nodes}; ask the batch "
            f"system for more, or name them: engine: {{mpi: {{options: [--hostfile FILE]}}}}\n       see: {by_hand}"
        )
    return _on(plan, tuple(node for node, _ in nodes[: settings.nodes]))


def taken_over(plan: ClusterPlan, running: ClusterPlan) -> ClusterPlan:
    """A changed plan of a running cluster, on the hosts that this one has."""
    if running.engine != MPI or len(running.mpi.hosts) != plan.mpi.nodes:
        raise HostsUnusable(
            f"{plan.name} runs on {len(running.mpi.hosts)} hosts of MPI, and their number cannot change while it "
            "runs: dtfctl down, then up"
        )
    return _on(plan, running.mpi.hosts)


def _on(plan: ClusterPlan, names: tuple[str, ...]) -> ClusterPlan:
    by_host = {f"node-{number + 1}": name for number, name in enumerate(names)}

    def placed(hosts: tuple[HostPlan, ...]) -> tuple[HostPlan, ...]:
        return tuple(
            replace(
                host,
                target=by_host[host.name],
                address=plan.mpi.address.replace("{node}", by_host[host.name]),
            )
            if host.via == MPI
            else host
            for host in hosts
        )

    hosts, idle = placed(plan.hosts), placed(plan.idle_hosts)
    return replace(plan, hosts=hosts, idle_hosts=idle, mpi=replace(plan.mpi, hosts=names))


def nodes_in(text: str) -> list[tuple[str, str]]:
    """(mpirun's name of a node, its own name) by rank, from a map of the processes and the words of each."""
    named: dict[int, str] = {}
    node = ""
    own: dict[int, str] = {}
    for line in text.splitlines():
        words = line.split()
        if match := _NODE.search(line):
            node = match[1]
        elif match := _PROCESS.search(line):
            named[int(match[1])] = node
        elif len(words) == 3 and words[0] == _WORD and words[1].isdecimal():
            own[int(words[1])] = words[2]
    return [(named.get(rank, own[rank]), own[rank]) for rank in sorted(own)]


def explain(words: str, status: int) -> tuple[str, bool]:
    """(why a call came to nothing, whether no command was started), from what mpirun and the command wrote."""
    own: list[str] = []
    boxes: list[list[str]] = []
    is_boxed = False
    for line in words.splitlines():
        if _RULE.fullmatch(line.strip()):
            is_boxed = not is_boxed
            if is_boxed:
                boxes.append([])
        elif is_boxed:
            boxes[-1].append(line.strip())
        elif line.strip() and not _NOISE.match(line):
            own.append(line.strip())
    heads = [_paragraph(box) for box in boxes]
    is_plain = any(word in head for head in heads for word in _PLAIN_END)
    if "specified executable" in "".join(heads):
        return heads[0], False
    if own:
        return own[-1] if is_plain else own[0].removeprefix("mpirun: Error: "), bool(heads) and not is_plain
    if heads and not is_plain:
        return heads[0], True
    return f"mpirun exits with status {status}", status < 0


def _paragraph(lines: Sequence[str]) -> str:
    """The first one, as a line, without what announces a list."""
    text = " ".join("\n".join(lines).strip().split("\n\n")[0].split())
    whole, stop, rest = text.rpartition(". ")
    return (whole if stop and rest.endswith(":") else text).rstrip(".:")


def own_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """For mpirun: in a job of Slurm it starts its daemons as steps, and a second call must not wait for the first."""
    return {**environment, "SLURM_OVERLAP": "1"}


def _on_host(settings: MpiSettings, node: str, command: Sequence[str]) -> tuple[str, ...]:
    place = ("--host", node, "-np", "1") if node else ("--map-by", "ppr:1:node")
    return (*_mpirun(settings), *place, *command)


def _mpirun(settings: MpiSettings) -> tuple[str, ...]:
    """Without a binding: the tasks of a host would all get the one core of their keeper."""
    options = [word for option in settings.options for word in shlex.split(option)]
    return (*shlex.split(settings.mpirun), "--bind-to", "none", *options)


def _not_run(settings: MpiSettings, error: OSError) -> str:
    what = shlex.split(settings.mpirun)[0]
    return f"{what} cannot be run: {reason_of(error)}; install Open MPI, or name it: engine: {{mpi: {{mpirun: ...}}}}"
