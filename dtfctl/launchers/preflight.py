"""Before anything is started: all other machines are looked at, all at once, and get the cluster file's folder.

What is wrong is told together, each with the command that shows it to a person.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtfctl.checks import DOUBT, Where, questions, told
from dtfctl.errors import HostsUnusable
from dtfctl.hosts import environments, resolved
from dtfctl.launchers.ssh import Ssh, SshError, ask_here, by_hand
from dtfctl.launchers.sync import Synced, manifest, sync
from dtfctl.plan import ClusterPlan, HostPlan, Requirements, Task
from dtfctl.store import Run

CALLS_MAX = 32
"""So many hosts are asked at a time."""

CHECK_S = 30.0
MAKE_S = 1800.0
"""At most so long pip and venv may take on a host."""

PATIENCE_S = 2.0
SKEW_S_MAX = 30.0
FREE_BYTES_MIN = 64 << 20
FREE_BYTES_FEW = 1 << 30

Found = Mapping[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Finding:
    """What one host was found to be. `errors` are (what, the command that shows it); who `is_away` did not answer."""

    host: str
    found: Found = field(default_factory=dict)
    errors: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    is_away: bool = False


def nowhere(*_: object) -> str:
    """The position of what nobody can place any more."""
    return ""


def prepare(
    plan: ClusterPlan,
    sockets: Path,
    say: Say,
    running: Run | None = None,
    only: Collection[str] | None = None,
    where: Where = nowhere,
) -> dict[str, Found]:
    """Looks at all other machines, or `only` at some, brings them the folder and makes their Python environments; what
    each has, by its name. `where` is what the cluster file's values stand at. Raises HostsUnusable.

    Where the cluster is `running` already its own ports may be taken, and a machine that it knows and that does not
    answer now is left as it is.
    """
    return asyncio.run(_prepare(plan, sockets, say, running, only, where))


def examine(plan: ClusterPlan, sockets: Path, where: Where = nowhere) -> list[Finding]:
    """Looks at all other machines, and changes nothing."""

    async def look() -> list[Finding]:
        room = asyncio.Semaphore(CALLS_MAX)

        async def one(ssh: Ssh) -> Finding:
            is_others = ssh.is_shared
            async with room:
                try:
                    return await _check(ssh, plan, where)
                finally:
                    # That of a supervisor at work is left to it.
                    if not is_others:
                        await ssh.disconnect()

        return await asyncio.gather(*(one(Ssh(plan.ssh, host, sockets)) for host in plan.remote_hosts))

    return asyncio.run(look())


async def _prepare(
    plan: ClusterPlan, sockets: Path, say: Say, running: Run | None, only: Collection[str] | None, where: Where
) -> dict[str, Found]:
    calls = [Ssh(plan.ssh, host, sockets) for host in plan.remote_hosts if only is None or host.name in only]
    # Connections that a supervisor has made are left to it.
    own = [ssh for ssh in calls if not ssh.is_shared]
    held = set() if running is None else set(running.addresses.values())
    nothing = "nothing was started" if running is None else "nothing was changed"
    began = time.monotonic()
    room = asyncio.Semaphore(CALLS_MAX)

    async def look(ssh: Ssh) -> Finding:
        async with room:
            return await _check(ssh, plan, where, held)

    try:
        findings = await asyncio.gather(*map(look, calls))
        away = [each for each in findings if each.is_away and running is not None and each.host in running.hosts]
        for finding in findings:
            for warning in finding.warnings:
                say(f"warning: {finding.host}: {warning}")
        for finding in away:
            say(f"warning: {finding.host}: {finding.errors[0][0]}; it is left as it is")
        findings = [finding for finding in findings if finding not in away]
        _refuse(findings, f"cannot be used; {nothing}", len(calls))
        found = {finding.host: finding.found for finding in findings}
        present = [ssh for ssh in calls if ssh.host.name in found]
        if calls:
            say(f"hosts: {len(present)} of {len(calls)} are reachable ({time.monotonic() - began:.1f}s)")
        await _sync_all(plan, present, found, say, nothing)
        await _make_environments(plan, present, found, say, nothing)
    except BaseException:
        await asyncio.gather(*(ssh.disconnect() for ssh in own))
        raise
    return found


async def _sync_all(
    plan: ClusterPlan, calls: list[Ssh], found: Mapping[str, Found], say: Say, nothing: str
) -> None:
    began = time.monotonic()
    wanting = [ssh for ssh in calls if ssh.host.sync]
    if not wanting:
        return
    try:
        files = manifest(plan)
    except (ValueError, OSError) as error:
        raise HostsUnusable(str(error)) from None
    room = asyncio.Semaphore(CALLS_MAX)

    async def bring(ssh: Ssh) -> Synced | Finding:
        host = found[ssh.host.name]
        try:
            async with room:
                return await sync(ssh, host["folder"], Path(plan.folder), files, host["has_rsync"])
        except SshError as error:
            return Finding(ssh.host.name, errors=((f"the folder cannot be copied: {error.why}", error.command),))

    results = await asyncio.gather(*map(bring, wanting))
    failed = [result for result in results if isinstance(result, Finding)]
    _refuse(failed, f"did not get the folder; {nothing}", len(wanting))
    brought = [result for result in results if isinstance(result, Synced)]
    count, size = sum(each.files for each in brought), sum(each.bytes for each in brought)
    what = f"{count} files ({_size(size)}) brought to {len(wanting)} hosts" if count else "all files are there"
    say(f"sync: {what} ({time.monotonic() - began:.1f}s)")


async def _make_environments(
    plan: ClusterPlan, calls: list[Ssh], found: Mapping[str, Found], say: Say, nothing: str
) -> None:
    """On all machines, this one among them, side by side."""
    began = time.monotonic()

    async def make(host: HostPlan, ssh: Ssh | None, venv: str, wanted: Requirements) -> Finding | bool:
        folder = plan.folder if ssh is None else host.folder
        request: dict[str, Any] = {"do": "environment", "venv": venv, "folder": folder, "timeout_s": MAKE_S}
        request |= {"files": wanted.files, "python": wanted.python}
        try:
            reply = await (ask_here(request, MAKE_S + CHECK_S) if ssh is None else ssh.ask(request, MAKE_S + CHECK_S))
        except SshError as error:
            reply = {"error": error.why, "command": "" if ssh is None else error.command}
        if not reply["error"]:
            return reply["made"]
        shown = reply["command"] if ssh is None or not reply["command"] else by_hand(plan.ssh, host, reply["command"])
        return Finding(host.name, errors=((f"{venv}: {reply['error']}", shown),))

    pairs: list[tuple[HostPlan, Ssh | None]] = [(host, None) for host in plan.hosts if host.is_local]
    pairs += [(resolved(ssh.host, plan, found[ssh.host.name]), ssh) for ssh in calls]
    making = [
        asyncio.ensure_future(make(host, ssh, venv, wanted))
        for host, ssh in pairs
        for venv, wanted in environments(host, plan).items()
    ]
    if not making:
        return
    _, pending = await asyncio.wait(making, timeout=PATIENCE_S)
    if pending:
        say(f"environment: {len(pending)} of {len(making)} are being made or brought up to date (pip install)")
    results = await asyncio.gather(*making)
    failed = [result for result in results if isinstance(result, Finding)]
    _refuse(failed, f"did not get their Python environment; {nothing}", len(pairs))
    count = sum(result is True for result in results)
    what = f"{count} of {len(making)} made or brought up to date" if count else "all are as the requirements say"
    say(f"environment: {what} ({time.monotonic() - began:.1f}s)")


async def _check(ssh: Ssh, plan: ClusterPlan, where: Where, held: Collection[str] = ()) -> Finding:
    host = ssh.host
    sent_at = time.time()
    asked = questions(plan, host, where)
    wanted = {**request(host, plan, held), "questions": [each.question for each in asked]}
    try:
        found = await ssh.ask(wanted, plan.ssh.timeout_s + CHECK_S)
    except SshError as error:
        return Finding(host.name, errors=((error.why, error.command),), is_away=error.is_connection)
    skew_s = found["time"] - time.time() if found["time"] > time.time() else min(0.0, found["time"] - sent_at)
    troubles = told(asked, found.pop("answers", []))
    errors = [(what, by_hand(plan.ssh, host, *words)) for what, words in problems(host, found)]
    errors += [(str(trouble), "") for trouble in troubles if trouble.grade != DOUBT]
    warnings = [*doubts(found, skew_s), *(str(trouble) for trouble in troubles if trouble.grade == DOUBT)]
    return Finding(host.name, found, tuple(errors), tuple(warnings))


def request(host: HostPlan, plan: ClusterPlan, held: Collection[str] = ()) -> dict[str, Any]:
    """What the agent is to look at: all that the tasks of this host, or those it may take over, need there. The ports
    of addresses that the cluster has `held` so far are not free, and need not be."""
    tasks = [task for task in plan.tasks() if task.host.name == host.name]
    tasks += [Task(task.job, task.index, host, plan.folder) for task in plan.tasks() if host.name in task.job.spares]
    served = [task for task in tasks if task.job.has_address]
    made = {f"{venv}/bin/python" for venv in environments(host, plan)}
    own = ({task.python for task in tasks} | {host.python}) - made
    # What comes with the folder is not there yet.
    brought = (f"{host.folder}/", f"{plan.folder}/")
    return {
        "do": "check",
        "folder": host.folder,
        "addresses": sorted({task.bind_host for task in served}),
        "names": sorted({task.advertised_host for task in served}),
        "ports": sorted(
            {
                (task.bind_host, task.place.port)
                for task in served
                if task.place.port and f"{task.advertised_host}:{task.place.port}" not in held
            }
        ),
        # The one that nobody named is the one that was found.
        "pythons": sorted(
            python for python in own if python not in ("", "python", "python3") and not python.startswith(brought)
        ),
        "needs_folder": not host.sync,
    }


def problems(host: HostPlan, found: Found) -> Iterable[tuple[str, tuple[str, ...]]]:
    """(what hinders tasks on this host, the words of a remote command that shows it)."""
    own = f"hosts: {{{host.name}: {{...}}}}"
    if found["folder_error"]:
        yield f"{found['folder_error']} (working_dir under {own})", ("ls", "-ld", found["folder"])
    if found["free_bytes"] < FREE_BYTES_MIN:
        yield f"only {_size(found['free_bytes'])} of disk are free for {found['folder']}", ("df", "-h", "~")
    for name, why in found["names"].items():
        if why:
            yield f"its own address {name} is not known there: {why} (address under {own})", ("getent", "hosts", name)
    bad = {address for address, why in found["addresses"].items() if why}
    for address in sorted(bad):
        why = found["addresses"][address]
        yield f"servers cannot listen at {address}: {why} (address or bind under {own})", ("ip", "address")
    for address, port, why in found["ports"]:
        if why and address not in bad:
            yield f"port {port} at {address}: {why}", ("ss", "-ltnp")
    for python, why in found["pythons"].items():
        if why:
            yield f"{python}: {why}", (python, "--version")


def doubts(found: Found, skew_s: float) -> Iterable[str]:
    """What may become a hindrance."""
    if abs(skew_s) > SKEW_S_MAX:
        yield f"its clock is {abs(skew_s):.0f}s {'ahead of' if skew_s > 0 else 'behind'} this machine's"
    if FREE_BYTES_MIN <= found["free_bytes"] < FREE_BYTES_FEW:
        yield f"only {_size(found['free_bytes'])} of disk are free for {found['folder']}"


def report(findings: Iterable[Finding], words: str, count: int) -> str:
    """The errors of all hosts as one text."""
    bad = [finding for finding in findings if finding.errors]
    width = max(len(finding.host) for finding in bad)
    lines = [f"{len(bad)} of {count} hosts {words}"]
    for finding in bad:
        heading = finding.host
        for what, hand in finding.errors:
            for line in [*what.splitlines(), *([f"see: {hand}"] if hand else [])]:
                lines.append(f"  {heading.ljust(width)}  {line}")
                heading = ""
    return "\n".join(lines)


def _refuse(findings: list[Finding], words: str, count: int) -> None:
    if any(finding.errors for finding in findings):
        raise HostsUnusable(report(findings, words, count))


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
