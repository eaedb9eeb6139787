"""Beginning and ending: up, down, wait."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NoReturn

import click

from dtfctl.commands.frame import (
    CHANGES_PENDING,
    ERROR,
    SIGNALLED,
    TIMED_OUT,
    Duration,
    Options,
    choose,
    command,
    exit_with_result,
    fail,
    lines_of,
    read_files,
    renamed,
    settle_engine,
    takes_cluster,
    takes_files,
    takes_plan,
    takes_progress,
    tell_troubles,
)

if TYPE_CHECKING:
    from pathlib import Path

    from dtfctl.checks.questions import Where
    from dtfctl.config import ClusterFile
    from dtfctl.control.client import Reply
    from dtfctl.control.cluster import Cluster
    from dtfctl.show.terminal import Terminal
    from dtfctl.values.plan import ClusterPlan


def add_to(group: click.Group) -> None:
    @command(group)
    @takes_files
    @click.option("-n", "--name", help="Use this name instead of the file's, to run it twice side by side.")
    @takes_plan
    @click.option("--attach", is_flag=True, help="Follow logs and progress to the end; exit with the job's result.")
    @click.option("-d", "--detach", is_flag=True, hidden=True, help="As docker compose has it; it is the default.")
    @click.option("--wait/--no-wait", default=True, help="Return when every task is ready (default), or at once.")
    @click.option("--timeout", type=Duration(), metavar="SECONDS", help="The longest wait until all tasks are ready.")
    @takes_progress
    def up(
        options: Options,
        file: str | None,
        more: tuple[str, ...],
        settings: tuple[str, ...],
        name: str | None,
        is_plan: bool,
        attach: bool,
        detach: bool,
        wait: bool,
        timeout: float | None,
    ) -> None:
        """Starts the cluster of FILE (default: cluster.yaml), and its supervisor.

        Training continues from an existing checkpoint. On a running cluster `up` changes only the tasks that the
        changed file affects; --plan shows the changes and makes none.
        """
        import time

        from dtfctl import hints
        from dtfctl.checks import validation
        from dtfctl.commands.logs import printer
        from dtfctl.control.cluster import Cluster
        from dtfctl.show.attach import Interrupts, Stayed, conclude, stay, wait_until_ready
        from dtfctl.storage.paths import ClusterPaths, state_root
        from dtfctl.values.plan import SLURM

        if attach and detach:
            raise click.UsageError("--attach stays with the cluster and --detach does not; give one of them")
        with Interrupts() if attach else nullcontext() as interrupts:
            started_at = time.monotonic()
            terminal = options.terminal()
            read = read_files(file, more, settings)
            plan = renamed(read.plan(), name)
            root = state_root(options.state_dir)
            cluster = Cluster(ClusterPaths(root / plan.name))
            _refuse_namesake(cluster, plan)
            # The keeper reports taken ports when it holds them.
            tell_troubles(validation.troubles(read, plan, root, has_ports=True), terminal.say)
            if plan.engine == SLURM and not plan.slurm.job:
                _submit(cluster, read, plan, is_plan, options, terminal, arguments=(file, more, settings, name))
                return
            if is_plan:
                changes = _changes(cluster, _on_running_hosts(cluster, plan))
                print("\n".join(changes) or f"{plan.name} matches the file; nothing would change")
                sys.exit(CHANGES_PENDING if changes else 0)
            settle_engine(cluster, plan)
            with _hosts_of(cluster, plan, terminal) as plan:
                is_new = _begin(cluster, plan, terminal, read.positions())
            deadline = None if timeout is None else started_at + timeout
            if interrupts is not None:
                show = printer(terminal, [task.name for task in plan.tasks()], is_prefixed=True)
                stayed = stay(cluster, interrupts, deadline, terminal, show, is_new)
                if stayed == Stayed.DETACHED:
                    back = hints.command("up", plan.file, *(["-n", name] if name else []), "--attach")
                    end = hints.command("down", plan.name)
                    terminal.say(f"detached; {plan.name} goes on. Back: {back}; end: {end}")
                    return
                conclude(cluster, terminal, is_followed=True)
                cluster.wait_for_end_of_supervisor()
                if interrupts.first:
                    sys.exit(SIGNALLED + interrupts.first)
                if stayed == Stayed.TOO_LATE:
                    fail(TIMED_OUT, f"not ready within {timeout:g}s, and stopped")
                exit_with_result(cluster)
            elif wait:
                look, end = hints.command("status", plan.name), hints.command("down", plan.name)
                if not wait_until_ready(cluster, deadline, terminal):
                    fail(TIMED_OUT, f"not ready within {timeout:g}s; the start continues ({look}; {end})")
                run, _ = cluster.load()
                if run.is_over:
                    conclude(cluster, terminal)
                    exit_with_result(cluster)
                terminal.say(f"all tasks are ready after {time.monotonic() - started_at:.1f}s")
                terminal.say(f"Next: {look}; {hints.command('logs', plan.name, '-f')}")

    @command(group)
    @takes_cluster
    @click.option("--purge", is_flag=True, help="Delete state and logs too. Checkpoints are never touched.")
    @click.option("--plan", "is_plan", is_flag=True, help="Only print what would end; exit with 20 then.")
    @click.option("--timeout", type=Duration(), metavar="SECONDS", help="The grace period, instead of the file's.")
    @takes_progress
    def down(options: Options, cluster: str | None, purge: bool, is_plan: bool, timeout: float | None) -> None:
        """Stops every task, workers before parameter servers. Returns when no process of the cluster is left.

        The first Ctrl-C changes nothing; the second kills the processes that are left.
        """
        from dtfctl.errors import StoreError
        from dtfctl.show.attach import Interrupts, conclude, stay_until_down

        terminal = options.terminal()
        chosen = choose(options, cluster, is_sure=purge and not is_plan, is_end=True)
        if is_plan:
            _plan_end(chosen, purge)
        try:
            chosen.settle()
            if chosen.is_active():
                with Interrupts() as interrupts:
                    reply = chosen.down("stopped by dtfctl down", timeout)
                    if "error" in reply and "is" in reply:
                        # Nobody can see from here when it is over.
                        fail(ERROR, f"{chosen.name}: {reply['error']}")
                    stay_until_down(chosen, interrupts, terminal)
                conclude(chosen, terminal)
            else:
                terminal.say(f"{chosen.name} is not running")
                for pid, host, command in chosen.clean_hosts():
                    terminal.say(f"still running: pid {pid} on {host}: {command}")
                _give_back_group(chosen, terminal)
            if not chosen.wait_for_end_of_supervisor():
                pid = chosen.supervisor_pid()
                to_do = f"kill {pid}; " if pid else ""
                words = f"the supervisor of {chosen.name} does not exit{f' (pid {pid})' if pid else ''}"
                fail(ERROR, f"{words}: {to_do}its log is {chosen.paths.daemon_log}")
            found = chosen.find()
            strays = () if found is None else found[0].strays
        except StoreError as error:
            if not purge:
                raise
            terminal.say(str(error).splitlines()[0])
            strays = ()
        if purge:
            chosen.purge()
            terminal.say(f"{chosen.name}: state and logs removed")
        if strays:
            sys.exit(ERROR)

    @command(group)
    @takes_cluster
    @click.option("--ready", is_flag=True, help="Only until every task is ready.")
    @click.option("--timeout", type=Duration(), metavar="SECONDS", help="The longest wait.")
    @takes_progress
    def wait(options: Options, cluster: str | None, ready: bool, timeout: float | None) -> None:
        """Returns when the training has ended, with its result; with --ready, when all tasks are ready.

        Returns at once if the cluster has ended already.
        """
        import time

        from dtfctl import hints
        from dtfctl.show.attach import conclude, wait_until_ready

        terminal = options.terminal()
        chosen = choose(options, cluster)
        look = hints.command("status", chosen.name)
        deadline = None if timeout is None else time.monotonic() + timeout
        if ready:
            if not wait_until_ready(chosen, deadline, terminal):
                fail(TIMED_OUT, f"not ready within {timeout:g}s; the start continues ({look})")
            if not chosen.load()[0].is_over:
                return
        elif not chosen.wait_until(lambda run, _: run.is_over, deadline):
            fail(TIMED_OUT, f"not done within {timeout:g}s; it continues ({look})")
        conclude(chosen, terminal)
        exit_with_result(chosen)


def _changes(cluster: Cluster, plan: ClusterPlan) -> list[str]:
    """The changes that `up` would make, one a line."""
    if cluster.is_active():
        return lines_of(_answered(plan, cluster.up(plan, lambda _: None)))
    return [f"{'start':<10}{task.name:<12}{task.host.name}" for task in plan.tasks()]


def _begin(cluster: Cluster, plan: ClusterPlan, terminal: Terminal, where: Where) -> bool:
    """Starts the cluster, or brings a running one to what the file says. Whether it is new."""
    from dtfctl.control.cluster import has_to_prepare

    reply = cluster.up(plan, terminal.say, where=where)
    if "error" in reply:
        reply["error"] += _position_of(reply["error"], plan, where)
    _answered(plan, reply)
    if reply["is"] == "started":
        jobs = ", ".join(f"{job.replicas} {job.name}" for job in plan.jobs)
        terminal.say(f"{plan.name}: starting {jobs} (logs: {cluster.paths.logs(cluster.load()[0].number)})")
        return True
    terminal.say(f"{plan.name} is running already" + (", and the file has changed:" if reply["changes"] else ""))
    for line in lines_of(reply):
        terminal.say(f"    {line}")
    # Some keys concern no task (metrics, notify, host_lost_after). The folder and the environments are brought up to
    # date for those that start from now on.
    if reply["changes"] or reply.get("differences") or has_to_prepare(plan):
        _answered(plan, cluster.up(plan, terminal.say, apply=True, where=where))
    return False


def _on_running_hosts(cluster: Cluster, plan: ClusterPlan) -> ClusterPlan:
    """The plan on its engine's hosts that the running cluster has, if it runs."""
    from dtfctl.values.plan import BRIDGED, MPI

    found = cluster.find()
    if plan.engine not in (*BRIDGED, MPI) or found is None or found[0].is_over:
        return plan
    if plan.engine == MPI:
        from dtfctl.launchers import mpi

        return mpi.taken_over(plan, found[0].plan)
    from dtfctl.launchers.bridge import group

    return group.taken_over(plan, found[0].plan)


@contextmanager
def _hosts_of(cluster: Cluster, plan: ClusterPlan, terminal: Terminal) -> Iterator[ClusterPlan]:
    """The plan on hosts of its engine, where that is asked for them. They are given back if no cluster comes of it."""
    import os

    from dtfctl.values.plan import BRIDGED, MPI

    if plan.engine not in (*BRIDGED, MPI):
        yield plan
        return
    from dtfctl.launchers import mpi
    from dtfctl.launchers.bridge import group
    from dtfctl.storage.ownership import make_private

    found = cluster.find()
    if found is not None and not found[0].is_over and found[0].outcome:
        cluster.wait_until(lambda run, _: run.is_over, None)
    if cluster.is_active():
        yield _on_running_hosts(cluster, plan)
        return
    if plan.engine == MPI:
        yield mpi.found(plan, os.environ, terminal.say)
        return
    # The former run gives back its own hosts.
    cluster.wait_for_end_of_supervisor()
    make_private(cluster.paths.folder)
    try:
        yield group.allocate(plan, cluster.paths, terminal.say)
    except BaseException:
        if not cluster.is_active():
            group.give_back(cluster.paths, terminal.say)
        raise


def _plan_end(chosen: Cluster, purge: bool) -> NoReturn:
    from dtfctl.control import planned
    from dtfctl.control.verbs import Verb

    is_active = chosen.is_active()
    for line in planned.in_words(*chosen.load(), Verb.DOWN, ()) if is_active else [f"{chosen.name} is not running"]:
        print(line)
    if purge:
        print(f"delete    {chosen.paths.folder}")
    sys.exit(CHANGES_PENDING if is_active or purge else 0)


def _give_back_group(cluster: Cluster, terminal: Terminal) -> None:
    """What a supervisor that was killed has left."""
    from dtfctl.values.plan import BRIDGED

    found = cluster.find()
    if found is None or found[0].plan.engine in BRIDGED:
        from dtfctl.launchers.bridge import group

        group.give_back(cluster.paths, terminal.say)


def batch_script(
    read: ClusterFile,
    plan: ClusterPlan,
    root: Path,
    file: str | None,
    more: tuple[str, ...],
    settings: tuple[str, ...],
    name: str | None,
    is_shown: bool = False,
) -> str:
    """The script that runs this very `up` in an allocation of Slurm; paths are those of this machine. A script that
    `is_shown` to a person says what else it carries. Raises HostsUnusable where that is too much."""
    import os

    from dtfctl.control.cluster import CLUSTER_FILE
    from dtfctl.launchers import slurm_job
    from dtfctl.plan.batch_script import SOURCE, log_pattern, script, unpacking

    files = [os.path.abspath(each) for each in [*([file] if file else []), *more] or [CLUSTER_FILE]]
    python = plan.slurm.python or sys.executable
    before, log = "", log_pattern(str(slurm_job.log_of(root / plan.name, "%j")))
    if plan.slurm.is_apart:
        from dtfctl.launchers.slurm_parcel import packed

        folder, parcel = str(root / plan.name), packed(plan, files, read.reads())
        before = unpacking(python, folder, f"({parcel.words})" if is_shown else parcel.text)
        files, log = [f"{folder}/{SOURCE}/{each}" for each in parcel.files], os.devnull
        # The copies lie where those of the folder here would.
        settings = (*settings, f"engine.slurm.working_dir={plan.hosts[0].folder}")
    words = [files[0], *(word for each in files[1:] for word in ("-f", each))]
    words += [word for setting in settings for word in ("--set", setting)]
    words += ["-n", name] if name else []
    dtfctl = (python, "-m", "dtfctl", "--state-dir", str(root))
    return script(plan, dtfctl, words, log, before, str(root / plan.name))


def _submit(
    cluster: Cluster,
    read: ClusterFile,
    plan: ClusterPlan,
    is_plan: bool,
    options: Options,
    terminal: Terminal,
    arguments: tuple[str | None, tuple[str, ...], tuple[str, ...], str | None],
) -> None:
    from dtfctl import hints
    from dtfctl.launchers import slurm_job
    from dtfctl.storage.ownership import make_private
    from dtfctl.storage.paths import state_root

    text = batch_script(read, plan, state_root(options.state_dir), *arguments, is_shown=is_plan)
    if is_plan:
        print(text, end="")
        sys.exit(CHANGES_PENDING)
    noted = slurm_job.noted(cluster.paths.folder)
    former = slurm_job.look(noted.number) if noted is not None else None
    if former is not None and slurm_job.has_lost_script(former):
        slurm_job.requeue(former.number)
        lost = f"job {former.number} of Slurm has lost its first node, {former.node}"
        terminal.say(f"{plan.name}: {lost}, and is queued again; Next: {hints.command('status', plan.name)}")
        return
    if former is not None and former.state:
        fail(ERROR, f"{plan.name}: {former} already; {hints.command('down', plan.name)} ends it")
    make_private(cluster.paths.folder)
    apart = (plan.slurm.python or sys.executable) if plan.slurm.is_apart else ""
    job = slurm_job.submit(cluster.paths.folder, text, plan.slurm.srun, plan.file, apart)
    terminal.say(f"{plan.name}: {job}; Next: {hints.command('status', plan.name)}")


def _position_of(error: str, plan: ClusterPlan, where: Where) -> str:
    """Where the file names a port that could not be had."""
    match = re.match(r"port \d+ of ([\w-]+:\d+): ", error)
    return f" ({where(plan.task(match[1]), 'port')})" if match else ""


def _answered(plan: ClusterPlan, reply: Reply) -> Reply:
    if "error" in reply:
        fail(ERROR, f"{plan.name} cannot {'be changed' if reply.get('is') == 'running' else 'start'}: {reply['error']}")
    return reply


def _refuse_namesake(cluster: Cluster, plan: ClusterPlan) -> None:
    found = cluster.find()
    if found is not None and not found[0].is_over and found[0].plan.file != plan.file:
        fail(
            ERROR,
            f"a cluster called {plan.name} already runs, from {found[0].plan.file}; another name: -n NAME",
        )
