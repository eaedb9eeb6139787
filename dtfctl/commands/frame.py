"""What all commands share: their options, which cluster they mean, and how errors become exit statuses."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from dtfctl.checks.questions import Trouble
    from dtfctl.config import ClusterFile
    from dtfctl.control.client import Reply
    from dtfctl.control.cluster import Cluster
    from dtfctl.show.terminal import Terminal
    from dtfctl.values.plan import ClusterPlan

_Function = TypeVar("_Function", bound="Callable[..., Any] | click.Command")

OK, ERROR, USAGE, NOT_RUNNING, UNKNOWN, TIMED_OUT, PARTLY_UP = 0, 1, 2, 3, 4, 5, 6
TRAINING_FAILED, CHANGES_PENDING = 10, 20
SIGNALLED = 128

CLUSTER_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
PROGRESS_MODES = ("auto", "tty", "plain", "json", "quiet")


@dataclass
class Options:
    """What stands before the command, and `--progress`."""

    state_dir: str | None
    debug: bool
    progress: str = "auto"

    def terminal(self) -> Terminal:
        from dtfctl.show.terminal import Terminal

        return Terminal(self.progress)


def command(group: click.Group, *arguments: Any, **settings: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Like click's: the function gets the Options first, and its errors become one message."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @wraps(function)
        def guarded(*values: Any, **named: Any) -> None:
            options = click.get_current_context().find_object(Options)
            assert options is not None
            if (progress := named.pop("progress", None)) is not None:
                options.progress = progress
            _run(function, options, values, named)

        made: click.Command = group.command(*arguments, **settings)(guarded)
        return made

    return decorate


def _run(function: Callable[..., None], options: Options, values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Operating errors become one message; anything else is dtfctl's own mistake, and says so."""
    from dtfctl.errors import DtfctlError
    from dtfctl.wording import reason_and_file, reason_of

    try:
        function(options, *values, **named)
    except (BrokenPipeError, click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except (DtfctlError, OSError) as error:
        if options.debug:
            raise
        if isinstance(error, DtfctlError):
            fail(error.exit_status, str(error))
        fail(ERROR, reason_and_file(error))
    except Exception as error:
        if options.debug:
            raise
        words = f"{type(error).__name__}: {reason_of(error)}"
        fail(ERROR, f"this is a bug in dtfctl: {words}  (--debug shows where)")


def takes_files(function: _Function) -> _Function:
    """For commands on a cluster file: FILE, more of them, and settings on top."""
    for decorate in (
        click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a value of FILE; repeatable."),
        click.option("-f", "--file", "more", multiple=True, metavar="FILE", help="Merge over FILE; repeatable."),
        click.argument("file", required=False, metavar="[FILE]", type=click.Path()),
    ):
        function = decorate(function)
    return function


def takes_progress(function: _Function) -> _Function:
    return click.option(
        "--progress",
        type=click.Choice(PROGRESS_MODES),
        envvar="DTFCTL_PROGRESS",
        help="How progress is shown: a live view, plain lines, JSON lines, or not at all.",
    )(function)


def takes_plan(function: _Function) -> _Function:
    help_line = "Only print what would change; exit with 20 then."
    return click.option("--plan", "is_plan", is_flag=True, help=help_line)(function)


def takes_cluster(function: _Function) -> _Function:
    return click.argument("cluster", required=False, metavar="[CLUSTER]", shell_complete=complete_clusters)(function)


def names_cluster(function: _Function) -> _Function:
    """For commands whose arguments are tasks."""
    return click.option(
        "-c", "--cluster", metavar="CLUSTER", shell_complete=complete_clusters, help="The cluster's name or file."
    )(function)


def takes_tasks(is_required: bool) -> Callable[[_Function], _Function]:
    metavar = "TASK..." if is_required else "[TASK]..."
    return click.argument("tasks", nargs=-1, required=is_required, metavar=metavar, shell_complete=complete_tasks)


_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str) -> float:
    """`90`, `90s`, `1h30m`. Raises ValueError."""
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text):
        return float(text)
    if not re.fullmatch(r"([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+", text):
        raise ValueError(text)
    return sum(float(count) * _UNITS_S[unit] for count, unit in re.findall(r"([0-9.]+)(ms|s|m|h|d)", text))


class Duration(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic in click's latest only
    """Seconds, or with units as in the cluster file."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        try:
            return seconds(value)
        except ValueError:
            self.fail(f"{value!r} is not a duration (10, 90s, 1h30m)", param, ctx)


# -- clusters


def read_files(file: str | None, more: tuple[str, ...], settings: tuple[str, ...]) -> ClusterFile:
    from pathlib import Path

    from dtfctl import config
    from dtfctl.control.cluster import CLUSTER_FILE

    names = [*([file] if file else []), *more] or [CLUSTER_FILE]
    return config.read([Path(name) for name in names], settings)


def load_plan(
    file: str | None, more: tuple[str, ...] = (), settings: tuple[str, ...] = (), name: str | None = None
) -> ClusterPlan:
    return renamed(read_files(file, more, settings).plan(), name)


def renamed(plan: ClusterPlan, name: str | None) -> ClusterPlan:
    """The plan under the name of `-n`."""
    from dataclasses import replace

    if name is not None and not re.fullmatch(CLUSTER_NAME, name, re.ASCII):
        fail(USAGE, f'"{name}" is not a valid cluster name: use letters, digits, ".", "_" and "-", at most 64')
    return plan if name is None else replace(plan, name=name)


def tell_troubles(troubles: Iterable[Trouble], say: Callable[[str], None]) -> None:
    """The doubts are said; anything that is wrong ends the command."""
    from dtfctl.checks.questions import DOUBT

    found = list(troubles)
    for trouble in found:
        if trouble.grade == DOUBT:
            say(f"warning: {trouble}")
    wrong = [str(trouble) for trouble in found if trouble.grade != DOUBT]
    if wrong:
        fail(USAGE, "\n       ".join(wrong))


def choose(options: Options, given: str | None, is_sure: bool = False, is_end: bool = False) -> Cluster:
    """The cluster that is meant. Of one that waits in a queue it fails with what it waits for, or, when it is to end,
    with its cancellation."""
    from dtfctl.control import cluster as client
    from dtfctl.errors import StoreError
    from dtfctl.storage.paths import state_root

    # A command that was typed on another machine means this cluster, whatever its arguments name there.
    given = os.environ.get(client.CLUSTER_VARIABLE) or given
    chosen = client.choose(state_root(options.state_dir), given, options.terminal().say, is_sure)
    is_inside = "SLURM_JOB_ID" in os.environ
    if chosen.paths.job.exists():  # most have none, and commands start without the engine's modules
        from dtfctl.commands import in_job

        if is_inside:
            in_job.examine_first_node(chosen, is_end)
        else:
            in_job.follow(chosen, is_end)
    if not is_inside:
        try:
            settle_engine(chosen)
        except StoreError:
            if not is_sure:  # a damaged store can be purged
                raise
    return chosen


def settle_engine(cluster: Cluster, plan: ClusterPlan | None = None) -> None:
    """Ends the run on record of a job that has ended, before anybody takes it for a running one. With a `plan`, a new
    run is about to begin in its allocation."""
    from dtfctl.values.plan import SLURM

    if (cluster.engine() if plan is None else plan.engine) == SLURM:
        from dtfctl.supervise import allocation

        allocation.settle(cluster, None if plan is None else plan.slurm)


def lines_of(reply: Reply) -> list[str]:
    """What a change does to tasks, and what that costs."""
    return [*reply.get("changes", []), *reply.get("costs", [])]


def choose_active(options: Options, given: str | None) -> Cluster:
    """Fails when the cluster does not run."""
    cluster = choose(options, given)
    if not cluster.is_active():
        found = cluster.find()
        file = found[0].plan.file if found is not None else ""
        fail(NOT_RUNNING, f"{cluster.name} is not running; start it: {again(cluster.name, file)}")
    return cluster


def again(name: str, file: str) -> str:
    """The command that starts a cluster anew."""
    from dtfctl import hints

    return hints.command("up", file, *(["-n", name] if file and not _is_named(file, name) else []))


def _is_named(file: str, name: str) -> bool:
    """Whether a cluster file's cluster has that name without being told so."""
    try:
        return load_plan(file).name == name
    except Exception:
        # It was moved or changed since then; the command shows what is wrong with it.
        return True


def complete_clusters(context: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
    """For the shell: names, and files."""
    from click.shell_completion import CompletionItem

    from dtfctl.control.cluster import clusters
    from dtfctl.storage.paths import state_root

    root = state_root(context.find_root().params.get("state_dir"))
    names = [cluster.name for cluster in clusters(root) if cluster.name.startswith(incomplete)]
    return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]


def complete_tasks(context: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
    """For the shell: jobs and tasks of the cluster that is meant."""
    from click.shell_completion import CompletionItem

    from dtfctl.errors import DtfctlError

    try:
        cluster = choose(Options(context.find_root().params.get("state_dir"), False), context.params.get("cluster"))
        tasks = list(cluster.load()[1])
    except (DtfctlError, OSError):
        return []
    words = dict.fromkeys([*(task.partition(":")[0] for task in tasks), *tasks])
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


# -- ends


def exit_with_result(cluster: Cluster) -> NoReturn:
    run, _ = cluster.load()
    sys.exit({"succeeded": OK, "failed": TRAINING_FAILED}.get(run.outcome, NOT_RUNNING))


@contextmanager
def quiet_ctrl_c() -> Iterator[None]:
    """For commands without an end of their own: Ctrl-C ends them without a message."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(SIGNALLED + 2)


def fail(status: int, message: str) -> NoReturn:
    from dtfctl.show.terminal import for_terminal

    print(f"{_red('error:')} {for_terminal(message, sys.stderr)}", file=sys.stderr, flush=True)
    sys.exit(status)


def _red(text: str) -> str:
    is_plain = not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if is_plain else f"\x1b[31m{text}\x1b[0m"
