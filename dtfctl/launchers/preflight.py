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

from dtfctl.checks.questions import DOUBT, Where, questions, told
from dtfctl.errors import HostsUnusable
from dtfctl.launchers.agent.look import size_of
from dtfctl.launchers.here import HerePipe
from dtfctl.launchers.pipe import PipeError
from dtfctl.launchers.provision import AgentProvisioner, Provisioner
from dtfctl.launchers.sync import Synced, manifest
from dtfctl.launchers.ways import provisioner_of
from dtfctl.values.hosts import environments, resolved
from dtfctl.values.plan import ClusterPlan, HostPlan, Requirements, Task
from dtfctl.values.run import Run

CALLS_MAX = 32
"""So many hosts are asked at a time."""

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

        async def one(way: Provisioner) -> Finding:
            is_others = way.is_shared
            async with room:
                try:
                    return await _check(way, plan, where)
                finally:
                    # That of a supervisor at work is left to it.
                    if not is_others:
                        await way.release()

        return await asyncio.gather(*(one(provisioner_of(plan, host, sockets)) for host in plan.remote_hosts))

    return asyncio.run(look())


async def _prepare(
    plan: ClusterPlan, sockets: Path, say: Say, running: Run | None, only: Collection[str] | None, where: Where
) -> dict[str, Found]:
    ways = [provisioner_of(plan, host, sockets) for host in plan.remote_hosts if only is None or host.name in only]
    # Connections that a supervisor has made are left to it.
    own = [way for way in ways if not way.is_shared]
    held = set() if running is None else set(running.addresses.values())
    nothing = "nothing was started" if running is None else "nothing was changed"
    began = time.monotonic()
    room = asyncio.Semaphore(CALLS_MAX)

    async def look(way: Provisioner) -> Finding:
        async with room:
            return await _check(way, plan, where, held)

    try:
        findings = await asyncio.gather(*map(look, ways))
        away = [each for each in findings if each.is_away and running is not None and each.host in running.hosts]
        for finding in findings:
            for warning in finding.warnings:
                say(f"warning: {finding.host}: {warning}")
        for finding in away:
            say(f"warning: {finding.host}: {finding.errors[0][0]}; left unchanged")
        findings = [finding for finding in findings if finding not in away]
        _refuse(findings, f"cannot be used; {nothing}", len(ways))
        found = {finding.host: finding.found for finding in findings}
        present = [way for way in ways if way.host.name in found]
        if ways:
            say(f"hosts: {len(present)} of {len(ways)} are reachable ({time.monotonic() - began:.1f}s)")
        await _sync_all(plan, present, found, say, nothing)
        await _make_environments(plan, present, found, say, nothing)
    except BaseException:
        await asyncio.gather(*(way.release() for way in own))
        raise
    return found


async def _sync_all(
    plan: ClusterPlan, ways: list[Provisioner], found: Mapping[str, Found], say: Say, nothing: str
) -> None:
    began = time.monotonic()
    wanting = [way for way in ways if way.host.sync]
    if not wanting:
        return
    try:
        files = manifest(plan)
    except (ValueError, OSError) as error:
        raise HostsUnusable(str(error)) from None
    room = asyncio.Semaphore(CALLS_MAX)

    async def bring(way: Provisioner) -> Synced | Finding:
        host = found[way.host.name]
        try:
            async with room:
                return await way.bring(host["folder"], Path(plan.folder), files, host["has_rsync"])
        except PipeError as error:
            return Finding(way.host.name, errors=((f"the folder cannot be copied: {error.why}", error.command),))

    results = await asyncio.gather(*map(bring, wanting))
    failed = [result for result in results if isinstance(result, Finding)]
    _refuse(failed, f"did not receive the folder; {nothing}", len(wanting))
    brought = [result for result in results if isinstance(result, Synced)]
    count, size = sum(each.files for each in brought), sum(each.bytes for each in brought)
    what = f"{count} files ({size_of(size)}) copied to {len(wanting)} hosts" if count else "all files are up to date"
    say(f"sync: {what} ({time.monotonic() - began:.1f}s)")


async def _make_environments(
    plan: ClusterPlan, ways: list[Provisioner], found: Mapping[str, Found], say: Say, nothing: str
) -> None:
    """On all machines, this one among them, side by side."""
    began = time.monotonic()

    async def make(host: HostPlan, way: Provisioner, venv: str, wanted: Requirements) -> Finding | bool:
        folder = host.folder or plan.folder
        try:
            reply = await way.make_environment(venv, wanted, folder)
        except PipeError as error:
            return Finding(host.name, errors=((f"{venv}: {error.why}", error.command),))
        if not reply["error"]:
            return bool(reply["made"])
        shown = way.by_hand(reply["command"]) if reply["command"] else ""
        return Finding(host.name, errors=((f"{venv}: {reply['error']}", shown),))

    pairs: list[tuple[HostPlan, Provisioner]] = [
        (host, AgentProvisioner(HerePipe(host))) for host in plan.hosts if host.is_local
    ]
    pairs += [(resolved(way.host, plan, found[way.host.name]), way) for way in ways]
    making = [
        asyncio.ensure_future(make(host, way, venv, wanted))
        for host, way in pairs
        for venv, wanted in environments(host, plan).items()
    ]
    if not making:
        return
    _, pending = await asyncio.wait(making, timeout=PATIENCE_S)
    if pending:
        say(f"environment: {len(pending)} of {len(making)} are being made or brought up to date (pip install)")
    results = await asyncio.gather(*making)
    failed = [result for result in results if isinstance(result, Finding)]
    _refuse(failed, f"did not get a Python environment; {nothing}", len(pairs))
    count = sum(result is True for result in results)
    what = f"{count} of {len(making)} made or brought up to date" if count else "all match the requirements"
    say(f"environment: {what} ({time.monotonic() - began:.1f}s)")


async def _check(way: Provisioner, plan: ClusterPlan, where: Where, held: Collection[str] = ()) -> Finding:
    host = way.host
    sent_at = time.time()
    asked = questions(plan, host, where)
    wanted = {**request(host, plan, held), "questions": [each.question for each in asked]}
    try:
        found = await way.look(wanted)
    except PipeError as error:
        return Finding(host.name, errors=((error.why, error.command),), is_away=error.is_connection)
    skew_s = found["time"] - time.time() if found["time"] > time.time() else min(0.0, found["time"] - sent_at)
    troubles = told(asked, found.pop("answers", []))
    errors = [(what, way.by_hand(*words)) for what, words in problems(host, found)]
    interface, there = plan.slurm.interface, found.get("interfaces", {})
    if interface and interface not in there:
        known = ", ".join(f"{name} {address}" for name, address in there.items())
        what = f"it has no network interface {interface} with an IPv4 address (engine.slurm.interface; it has {known})"
        errors.append((what, way.by_hand("ip", "-4", "address")))
    errors += [(str(trouble), "") for trouble in troubles if trouble.grade != DOUBT]
    warnings = [*doubts(found, skew_s), *(str(trouble) for trouble in troubles if trouble.grade == DOUBT)]
    return Finding(host.name, found, tuple(errors), tuple(warnings))


def request(host: HostPlan, plan: ClusterPlan, held: Collection[str] = ()) -> dict[str, Any]:
    """What the agent is to look at: all that the tasks of this host, or those it may take over, need there. The ports
    of addresses that the cluster has `held` so far are not free, and need not be."""
    tasks = list(plan.tasks_on(host.name))
    others = (task for task in plan.tasks_for(host.name) if task.host.name != host.name)
    tasks += [Task(task.job, task.index, host, plan.folder) for task in others]
    # An address by interface is known only once the host was looked at; the keeper finds ports that are taken.
    served = [task for task in tasks if task.job.has_address and not plan.slurm.interface]
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
        yield f"only {size_of(found['free_bytes'])} of disk are free for {found['folder']}", ("df", "-h", "~")
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
        yield f"only {size_of(found['free_bytes'])} of disk are free for {found['folder']}"


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
