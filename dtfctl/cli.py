"""The command line. Parses, calls, prints, and turns every error into one message and an exit status.

Imports of the other modules stand in the commands that need them, so that --help and mistakes are answered at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from dtfctl.client import Cluster
    from dtfctl.config import ClusterFile
    from dtfctl.plan import ClusterPlan

OK, ERROR, NOT_RUNNING, TIMED_OUT, TRAINING_FAILED = 0, 1, 3, 5, 10
SIGNALLED = 128

EPILOG = """\b
Exit status: 0 done, or the training succeeded; 1 something failed, or processes were left behind;
2 wrong usage or an invalid cluster file; 3 not running; 4 unknown cluster or task;
5 not ready in time; 7 the supervisor cannot be reached; 8 hosts cannot be reached or used; 10 the training failed;
130 and 143 interrupted.
"""


def main() -> None:
    try:
        commands(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        print("interrupted; dtfctl status shows whether anything goes on, dtfctl down ends it", file=sys.stderr)
        sys.exit(SIGNALLED + 2)
    except BrokenPipeError:
        # Whoever read stdout has seen enough; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(SIGNALLED + 13)


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--state-dir",
    metavar="FOLDER",
    help="Where the clusters' state lies (DTFCTL_STATE_DIR; by default ~/.local/state/dtfctl).",
)
@click.option("--debug", is_flag=True, help="Show Python's traceback of an error.")
@click.version_option(package_name=None, version="0.1.0", prog_name="dtfctl")
@click.pass_context
def commands(context: click.Context, state_dir: str | None, debug: bool) -> None:
    """Runs distributed training from one YAML file, and keeps it running.

    CLUSTER is a cluster's name or its file. Without one, this folder's cluster.yaml is meant, or the only cluster.
    """
    context.obj = {"state_dir": state_dir, "debug": debug}


def takes_files(command: Callable) -> Callable:
    """For commands on a cluster file: FILE, more of them, and settings on top."""
    for decorate in (
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="As if FILE said so; repeatable."),
        click.option("-f", "--file", "more", multiple=True, metavar="FILE", help="Laid over FILE; repeatable."),
        click.argument("file", required=False, metavar="[FILE]"),
    ):
        command = decorate(command)
    return command


@commands.command()
@takes_files
@click.option("-n", "--name", help="Another name than the file's, to run it twice side by side.")
@click.option("--attach", is_flag=True, help="Follow logs and progress to the end; exit with the job's result.")
@click.option("--wait/--no-wait", default=True, help="Return when every task is ready (default), or at once.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="At most so long until all are ready.")
@click.pass_obj
def up(
    options: dict,
    file: str | None,
    more: tuple[str, ...],
    settings: tuple[str, ...],
    name: str | None,
    attach: bool,
    wait: bool,
    timeout: float | None,
) -> None:
    """Starts the cluster of FILE (default: cluster.yaml), and its supervisor.

    A checkpoint that is there is continued from. On a cluster that runs already nothing changes.
    """
    import time
    from pathlib import Path

    from dtfctl.attach import Interrupts, conclude, say_on_stderr, stay, wait_until_ready
    from dtfctl.client import Cluster
    from dtfctl.paths import ClusterPaths, state_root

    with _errors(options), Interrupts() if attach else nullcontext() as interrupts:
        started_at = time.monotonic()
        plan = _load_plan(file, more, settings, name)
        cluster = Cluster(ClusterPaths(state_root(options["state_dir"]) / plan.name))
        _refuse_namesake(cluster, plan)
        reply = cluster.up(plan, say_on_stderr)
        if "error" in reply:
            _fail(ERROR, f"{plan.name} cannot start: {reply['error']}")
        if reply["is"] == "running":
            differences = reply["differences"]
            say_on_stderr(f"{plan.name} is running already" + (", and not as the file says:" if differences else ""))
            for difference in differences:
                say_on_stderr(f"    {difference}")
            if differences:
                _fail(ERROR, "To change it: dtfctl down, then dtfctl up")
        else:
            jobs = ", ".join(f"{job.replicas} {job.name}" for job in plan.jobs)
            say_on_stderr(f"{plan.name}: starting {jobs} (logs: {cluster.paths.logs(cluster.load()[0].number)})")
        deadline = None if timeout is None else started_at + timeout
        if interrupts is not None:
            show = _prefixed_printer([task.name for task in plan.tasks()], always=True)
            is_in_time = stay(cluster, interrupts, deadline, say_on_stderr, show)
            conclude(cluster, say_on_stderr)
            cluster.wait_for_end_of_supervisor()
            if interrupts.first:
                sys.exit(SIGNALLED + interrupts.first)
            if not is_in_time:
                _fail(TIMED_OUT, f"not ready within {timeout:g}s, and stopped")
            _exit_with_result(cluster)
        elif wait:
            if not wait_until_ready(cluster, deadline, say_on_stderr):
                _fail(
                    TIMED_OUT,
                    f"not ready within {timeout:g}s; it goes on starting (dtfctl status, dtfctl down)",
                )
            run, _ = cluster.load()
            if run.is_over:
                conclude(cluster, say_on_stderr)
                _exit_with_result(cluster)
            say_on_stderr(f"all tasks are ready after {time.monotonic() - started_at:.1f}s")
            say_on_stderr(f"Next: dtfctl status {Path(plan.file).name if file is None else file}, dtfctl logs -f")


@commands.command()
@click.argument("cluster", required=False, metavar="[CLUSTER]")
@click.option("-o", "--format", "style", type=click.Choice(["table", "wide", "json"]), default="table")
@click.pass_obj
def status(options: dict, cluster: str | None, style: str) -> None:
    """Shows the tasks of a cluster, running or ended."""
    import json
    import time

    from dtfctl import view

    with _errors(options):
        chosen = _choose(options, cluster)
        if chosen.is_active():
            chosen.wake()
        run, statuses = chosen.load()
        if style == "json":
            print(json.dumps(view.document(run, statuses), indent=2))
        else:
            print(view.table(run, statuses, time.monotonic(), style == "wide"))


@commands.command()
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster's name or file.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until the cluster ends.")
@click.option("-n", "--tail", type=click.IntRange(min=0), metavar="LINES", help="Only so many last lines of each task.")
@click.pass_obj
def logs(options: dict, tasks: tuple[str, ...], cluster: str | None, follow: bool, tail: int | None) -> None:
    """Prints what tasks have written. A TASK is worker:1, a job (ps), or a pattern ('w*'); by default all."""
    from dtfctl.attach import TICK_S
    from dtfctl.logs import LogFollower, choose_tasks

    with _errors(options):
        chosen = _choose(options, cluster)
        run, statuses = chosen.load()
        names = choose_tasks(list(statuses), tasks)
        show = _prefixed_printer(names)
        follower = LogFollower(chosen.paths.logs(run.number), names)
        lines = follower.poll() if tail is None else follower.skip_to_last(tail)
        while True:
            for task, line in lines:
                show(task, line)
            if run.is_over or not follow:
                break
            if chosen.wait_for_change(TICK_S):
                run = chosen.load()[0]
            lines = follower.poll()
        for task, line in follower.poll(is_last=True) if tail != 0 else []:
            show(task, line)


@commands.command()
@click.argument("cluster", required=False, metavar="[CLUSTER]")
@click.option("--purge", is_flag=True, help="Forget state and logs too. Checkpoints are never touched.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Grace period instead of the file's.")
@click.pass_obj
def down(options: dict, cluster: str | None, purge: bool, timeout: float | None) -> None:
    """Stops every task, workers before parameter servers. Returns when nothing of the cluster is left."""
    from dtfctl.attach import conclude, say_on_stderr
    from dtfctl.errors import StoreError

    with _errors(options):
        chosen = _choose(options, cluster)
        try:
            if chosen.is_active():
                chosen.down("stopped by dtfctl down", timeout)
                chosen.wait_until(lambda run, _: run.is_over, None)
                conclude(chosen, say_on_stderr)
            else:
                say_on_stderr(f"{chosen.name} is not running")
            if not chosen.wait_for_end_of_supervisor():
                _fail(ERROR, f"the supervisor of {chosen.name} does not end")
            strays = chosen.load()[0].strays
        except StoreError as error:
            if not purge:
                raise
            say_on_stderr(str(error).splitlines()[0])
            strays = ()
        if purge:
            chosen.purge()
            say_on_stderr(f"{chosen.name}: state and logs are removed")
        if strays:
            sys.exit(ERROR)


@commands.command()
@takes_files
@click.pass_obj
def validate(options: dict, file: str | None, more: tuple[str, ...], settings: tuple[str, ...]) -> None:
    """Checks a cluster file without starting anything."""
    with _errors(options):
        plan = _load_plan(file, more, settings)
        print(f"{plan.name}: {', '.join(f'{job.replicas} {job.name}' for job in plan.jobs)}")


@commands.command()
@takes_files
@click.option("-o", "--format", "style", type=click.Choice(["yaml", "json"]), default="yaml")
@click.pass_obj
def config(options: dict, file: str | None, more: tuple[str, ...], settings: tuple[str, ...], style: str) -> None:
    """Prints the cluster file as it is understood: merged, variables and defaults filled in. It can be used in turn."""
    import json

    from dtfctl.config.resolved import document
    from dtfctl.config.source import write_yaml

    with _errors(options):
        read = _read_files(file, more, settings)
        read.plan()
        resolved = document(read.root, read.reader)
        print(json.dumps(resolved, indent=2) if style == "json" else write_yaml(resolved).rstrip())


@commands.command()
@takes_files
@click.option("-o", "--format", "style", type=click.Choice(["text", "json"]), default="text")
@click.pass_obj
def expand(options: dict, file: str | None, more: tuple[str, ...], settings: tuple[str, ...], style: str) -> None:
    """Prints what the tasks of each host get: argv, TF_CONFIG, environment, limits. Ports chosen at `up` show as 0."""
    import json

    from dtfctl import expand as expansion
    from dtfctl import view

    with _errors(options):
        plan = _load_plan(file, more, settings)
        addresses = {
            task.name: f"{task.advertised_host}:{task.place.port}" for task in plan.tasks() if task.job.has_address
        }
        hosts = expansion.described(plan, addresses)
        print(json.dumps({"name": plan.name, "hosts": hosts}, indent=2) if style == "json" else view.expansion(hosts))


@commands.command()
@click.pass_obj
def schema(options: dict) -> None:
    """Prints the JSON schema of the cluster file, with which editors complete and check it."""
    import json

    from dtfctl.config.schema import json_schema

    with _errors(options):
        print(json.dumps(json_schema(), indent=2))


@commands.command()
@click.argument("file", required=False, metavar="[FILE]")
@click.pass_obj
def init(options: dict, file: str | None) -> None:
    """Writes a commented cluster file to start from (default: cluster.yaml). Never overwrites one."""
    from dtfctl.attach import say_on_stderr
    from dtfctl.client import CLUSTER_FILE
    from dtfctl.config import template

    path = file or CLUSTER_FILE
    with _errors(options):
        try:
            with open(path, "x", encoding="utf-8") as new:
                new.write(template())
        except FileExistsError:
            _fail(ERROR, f"{path} is there already; it is left as it is")
        say_on_stderr(f"{path} is written. Next: dtfctl validate {path}, dtfctl up {path} --attach")


def _read_files(file: str | None, more: tuple[str, ...], settings: tuple[str, ...]) -> ClusterFile:
    from pathlib import Path

    from dtfctl import config
    from dtfctl.client import CLUSTER_FILE

    names = [*([file] if file else []), *more] or [CLUSTER_FILE]
    return config.read([Path(name) for name in names], settings)


def _load_plan(
    file: str | None, more: tuple[str, ...] = (), settings: tuple[str, ...] = (), name: str | None = None
) -> ClusterPlan:
    from dataclasses import replace

    plan = _read_files(file, more, settings).plan()
    return plan if name is None else replace(plan, name=name)


def _refuse_namesake(cluster: Cluster, plan: ClusterPlan) -> None:
    found = cluster.find()
    if found is not None and not found[0].is_over and found[0].plan.file != plan.file:
        _fail(
            ERROR,
            f"a cluster called {plan.name} runs already, that of {found[0].plan.file}; another name: -n NAME",
        )


def _choose(options: dict, given: str | None) -> Cluster:
    from dtfctl.client import choose
    from dtfctl.paths import state_root

    return choose(state_root(options["state_dir"]), given)


def _exit_with_result(cluster: Cluster) -> NoReturn:
    run, _ = cluster.load()
    sys.exit({"succeeded": OK, "failed": TRAINING_FAILED}.get(run.outcome, NOT_RUNNING))


def _prefixed_printer(tasks: list[str], always: bool = False) -> Callable[[str, str], None]:
    """Prints whole lines, each after its task's name when there are several."""
    width = max(map(len, tasks), default=0)
    is_prefixed = always or len(tasks) > 1
    has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    colours = {task: 31 + position % 6 for position, task in enumerate(tasks)}

    def show(task: str, line: str) -> None:
        prefix = f"{task.ljust(width)} | " if is_prefixed else ""
        if has_colour and prefix:
            prefix = f"\x1b[{colours[task]}m{prefix}\x1b[0m"
        sys.stdout.write(f"{prefix}{line}\n")
        sys.stdout.flush()

    return show


@contextmanager
def _errors(options: dict) -> Iterator[None]:
    """Operating errors become one message; anything else is dtfctl's own mistake, and says so."""
    from dtfctl.errors import DtfctlError

    try:
        yield
    except BrokenPipeError:
        raise
    except (DtfctlError, OSError) as error:
        if options["debug"]:
            raise
        _fail(error.exit_status if isinstance(error, DtfctlError) else ERROR, str(error))
    except Exception as error:
        if options["debug"]:
            raise
        _fail(ERROR, f"this is a mistake in dtfctl itself: {type(error).__name__}: {error}  (--debug shows where)")


def _fail(status: int, message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr, flush=True)
    sys.exit(status)
