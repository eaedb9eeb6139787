"""A job of Slurm as seen from where it was submitted: submitting it, its state, and stepping into it."""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from dtfctl.errors import DtfctlError, HostsUnusable
from dtfctl.launchers.slurm import own_environment, step
from dtfctl.storage.paths import ClusterPaths
from dtfctl.values.engines import SlurmGroup, SlurmSettings
from dtfctl.values.plan import SLURM, HostPlan
from dtfctl.wire.messages import shown
from dtfctl.wording import reason_of

ANSWER_S = 60.0
ENDING_S = 60.0
LOOK_AGAIN_S = 0.5
LINES_SHOWN = 12
_SHOWN_MAX = 1000
SCRIPT = "slurm-job.sh"
QUEUED = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED")
COMPLETING = "COMPLETING"
AT_WORK = ("RUNNING", COMPLETING)
_OF_ACCOUNTING = re.compile(r"Limit|accounting|Invalid (account|qos)", re.IGNORECASE)
HOLDS_NODES = ("RUNNING", "SUSPENDED", "CONFIGURING", "RESIZING", "SIGNALING")
"""While a job is in one of these its processes may be at work; in COMPLETING, Slurm ends them."""


class CommandMissing(HostsUnusable):
    """This machine has not that command of Slurm."""


@dataclass(frozen=True)
class Job:
    """`state` and `reason` are Slurm's own words, "" for a job that it knows no more; `node` runs the script, `nodes`
    are all of the job as Slurm writes them. Of a heterogeneous job it is the leading one."""

    number: str
    state: str = ""
    reason: str = ""
    node: str = ""
    is_heterogeneous: bool = False
    nodes: str = ""

    def __str__(self) -> str:
        why = f", {self.reason}" if self.reason not in ("", "None") else ""
        return f"job {self.number} of Slurm is {self.state or 'gone'}{why}"


def submit(folder: Path, script: str, srun: str, file: str, apart: str = "") -> Job:
    """Raises HostsUnusable with sbatch's own words."""
    path = folder / SCRIPT
    path.write_text(script)
    number = _number_in(_run("sbatch", "--parsable", str(path)))
    try:
        ClusterPaths(folder).job.write_text("".join(f"{line}\n" for line in (number, srun, file, apart) if line))
    except OSError:
        # Nobody would know of it.
        cancel(number)
        raise
    try:
        return look(number)
    except HostsUnusable as error:
        return Job(number, "submitted", str(error))


def _number_in(answer: str) -> str:
    """That of the job, in what sbatch says; a site's own sbatch may say more."""
    for pattern in (r"(\d+)(?:;\S*)?", r"Submitted batch job (\d+)\b.*"):
        for line in reversed(answer.splitlines()):
            if match := re.fullmatch(pattern, line.strip()):
                return match[1]
    said = f"answers {shown(answer)}" if answer else "answers nothing"
    raise HostsUnusable(f"sbatch {said}, without the number of a job; to find and end one: squeue --me; scancel NUMBER")


@dataclass(frozen=True)
class Submitted:
    """The job of a cluster, the srun that steps into it, and the cluster file: the lines of `ClusterPaths.job`.
    `apart` is the Python that has dtfctl on nodes that share no file system with this machine, else ""."""

    number: str
    srun: str
    file: str
    apart: str = ""


def noted(folder: Path) -> Submitted | None:
    """What was submitted last for the cluster of this folder."""
    try:
        return Submitted(*ClusterPaths(folder).job.read_text().splitlines())
    except (OSError, TypeError):
        return None


def forget(folder: Path) -> None:
    """The cluster of this folder has no job any more."""
    ClusterPaths(folder).job.unlink(missing_ok=True)


def log_of(folder: Path, number: str) -> Path:
    """What the batch script writes; `%j` stands for the job's number."""
    return folder / f"slurm-{number}.log"


def last_words(log: Path) -> list[str]:
    """The end of a job's log; nothing where another `--output` was chosen."""
    try:
        return log.read_text(errors="replace").splitlines()[-LINES_SHOWN:]
    except OSError:
        return []


def look(number: str) -> Job:
    try:
        found = _run("squeue", "--noheader", f"--jobs={number}", "--format=%i|%T|%r|%B|%N")
    except HostsUnusable as error:
        if "Invalid job id" in str(error):
            return Job(number)
        raise
    # The leader of a heterogeneous job is NUMBER+0, and the others come with it.
    for line in found.splitlines():
        identity, *words = line.split("|")
        if identity in (number, f"{number}+0") and len(words) >= 3:
            state, reason, node, *nodes = words
            return Job(number, state, reason, node, "+" in identity, "".join(nodes))
    return _if_alive(number)


def _if_alive(number: str) -> Job:
    """A job that squeue does not list has ended; a cluster must not end because one answer was incomplete."""
    try:
        told = _run("scontrol", "--oneliner", "show", "job", number)
    except HostsUnusable as error:
        if isinstance(error, CommandMissing) or "Invalid job id" in str(error):
            return Job(number)
        raise
    found = dict(word.partition("=")[::2] for word in told.splitlines()[-1].split()) if told else {}
    state = found.get("JobState", "")
    if state not in (*QUEUED, *AT_WORK, *HOLDS_NODES):
        return Job(number)
    reason, node, nodes = (found.get(key, "") for key in ("Reason", "BatchHost", "NodeList"))
    return Job(number, state, reason, node, "HetJobId" in found, nodes)


def look_after_end(number: str) -> Job:
    """The same, of a job that is ending when it has ended, or after a time limit."""
    deadline = time.monotonic() + ENDING_S
    while (job := look(number)).state == COMPLETING and time.monotonic() < deadline:
        time.sleep(LOOK_AGAIN_S)
    return job


def has_lost_script(job: Job) -> bool:
    """Whether the node that ran the script is lost: with --no-kill Slurm keeps the job even so, and nothing in it."""
    if job.state != "RUNNING" or not (job.node and job.nodes):
        return False
    return job.node not in _run("scontrol", "show", "hostnames", job.nodes).split()


@dataclass(frozen=True)
class Ended:
    """How a job has ended, in Slurm's words: its state, reason and exit code, the node that ran its script, and its
    comment; all "" when Slurm has forgotten it."""

    words: str = ""
    node: str = ""
    comment: str = ""


def last_seen(number: str) -> Ended:
    try:
        told = _run("scontrol", "--oneliner", "show", "job", number)
    except HostsUnusable:
        return Ended()
    found = dict(word.partition("=")[::2] for word in told.split() if "=" in word)
    state, reason, exit_code = (found.get(key, "") for key in ("JobState", "Reason", "ExitCode"))
    words = [state, *([reason] if reason not in ("", "None") else [])]
    words += [f"exit code {exit_code}"] if exit_code not in ("", "0:0") else []
    # What the script had to say where nobody can read its log.
    comment = re.search(r" Comment=(.*?)(?= [A-Z]\w*=|$)", told)
    return Ended(", ".join(words), found.get("BatchHost", ""), comment[1] if comment else "")


def cancel(number: str) -> None:
    _run("scancel", number)


def requeue(number: str) -> None:
    """The job begins again, from its script as it was submitted, on nodes that are chosen anew."""
    _run("scontrol", "requeue", number)


def step_into(
    job: Job, srun: str, words: tuple[str, ...], is_terminal: bool, folder: str | None = None
) -> NoReturn:
    """Becomes a step on the node where the cluster's supervisor is, in a `folder` there or the present one's path."""
    node = HostPlan(job.node, job.node, "", "", via=SLURM, target=job.node)
    groups = (SlurmGroup("", members=(job.node,)),) if job.is_heterogeneous else ()
    line = step(SlurmSettings(job.number, srun=srun, groups=groups), node, is_terminal, words, folder)
    try:
        os.execvpe(line[0], line, own_environment(os.environ))
    except OSError as error:
        raise DtfctlError(f"{line[0]}: {error.strerror}") from None


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=ANSWER_S,
            env=own_environment(os.environ),
        )
    except OSError as error:
        why = f"{command[0]} cannot be run: {reason_of(error)}; engine: slurm needs a machine with Slurm's commands"
        raise CommandMissing(why) from None
    except subprocess.TimeoutExpired as error:
        told = _told(command[0], (error.stderr or b"").decode(errors="replace"))
        words = f" ({told})" if told else ""
        raise HostsUnusable(f"{command[0]} did not answer within {ANSWER_S:g}s{words}; see: scontrol ping") from None
    if done.returncode:
        told = _told(command[0], done.stderr) or f"exit status {done.returncode}"
        hint = "see: squeue --me"
        if command[0] == "sbatch":
            # Limits of users and accounts are Slurm's accounting's.
            hint = "see: sacctmgr show assoc user=$USER" if _OF_ACCOUNTING.search(told) else "see: sinfo"
        raise HostsUnusable(f"{command[0]}: {told}; {hint}")
    return done.stdout.strip()


def _told(name: str, words: str) -> str:
    """The errors of a command, in one line: all of them, since the last line may say only that it failed."""
    lines = [line.strip().removeprefix(f"{name}: ").removeprefix("error: ") for line in words.splitlines()]
    text = "; ".join(dict.fromkeys(filter(None, lines)))
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
