"""Commands on single tasks: restart, stop, start, scale, exec."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from dtfctl.commands.frame import (
    CHANGES_PENDING,
    ERROR,
    NOT_RUNNING,
    TIMED_OUT,
    UNKNOWN,
    Duration,
    Options,
    again,
    choose_active,
    command,
    complete_tasks,
    fail,
    lines_of,
    names_cluster,
    takes_plan,
    takes_progress,
    takes_tasks,
)
from dtfctl.control.verbs import Verb

if TYPE_CHECKING:
    from dtfctl.control.cluster import Cluster
    from dtfctl.values.run import Run
    from dtfctl.values.task import TaskStatus


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _acts_on_tasks(wait_help: str) -> Callable[[_Function], _Function]:
    """The arguments and options of a command that ends or starts tasks."""

    def takes_all(function: _Function) -> _Function:
        options = (
            takes_tasks(is_required=False),
            click.option("-a", "--all", "is_all", is_flag=True, help="All tasks of the cluster."),
            names_cluster,
            takes_plan,
            click.option("--wait/--no-wait", default=True, help=wait_help),
            click.option("--timeout", type=Duration(), metavar="SECONDS", help="The longest wait."),
            takes_progress,
        )
        for option in reversed(options):
            function = option(function)
        return function

    return takes_all


def add_to(group: click.Group) -> None:
    @command(group)
    @_acts_on_tasks("Return when the tasks are ready again (default), or at once.")
    def restart(
        options: Options,
        tasks: tuple[str, ...],
        is_all: bool,
        cluster: str | None,
        is_plan: bool,
        wait: bool,
        timeout: float | None,
    ) -> None:
        """Starts a new process for tasks, on the same address and whatever their restart policy says.

        A TASK is worker:1, worker:0-3, a job (ps), or a pattern ('w*').
        """
        _do(options, Verb.RESTART, _meant(tasks, is_all), cluster, is_plan, wait, timeout)

    @command(group)
    @_acts_on_tasks("Return when the tasks have ended (default), or at once.")
    def stop(
        options: Options,
        tasks: tuple[str, ...],
        is_all: bool,
        cluster: str | None,
        is_plan: bool,
        wait: bool,
        timeout: float | None,
    ) -> None:
        """Ends tasks, and keeps them down until dtfctl start. The cluster goes on; dtfctl down ends all of it."""
        _do(options, Verb.STOP, _meant(tasks, is_all), cluster, is_plan, wait, timeout)

    @command(group)
    @_acts_on_tasks("Return when the tasks are ready (default), or at once.")
    def start(
        options: Options,
        tasks: tuple[str, ...],
        is_all: bool,
        cluster: str | None,
        is_plan: bool,
        wait: bool,
        timeout: float | None,
    ) -> None:
        """Starts stopped tasks again. Tasks that run are not changed."""
        _do(options, Verb.START, _meant(tasks, is_all), cluster, is_plan, wait, timeout)

    @command(group)
    @click.argument("numbers", nargs=-1, required=True, metavar="JOB=NUMBER...")
    @names_cluster
    @takes_plan
    @click.option("--wait/--no-wait", default=True, help="Return when all tasks are ready (default), or at once.")
    @click.option("--timeout", type=Duration(), metavar="SECONDS", help="The longest wait.")
    @takes_progress
    def scale(
        options: Options,
        numbers: tuple[str, ...],
        cluster: str | None,
        is_plan: bool,
        wait: bool,
        timeout: float | None,
    ) -> None:
        """Changes how many tasks a job has: dtfctl scale worker=4. The cluster file stays as it is.

        First it prints which tasks must restart, because their ClusterSpec changes, in which order, and what that
        costs. Workers end first, then the chief, which saves, then parameter servers. With cluster_spec: sparse the
        other tasks keep running.
        """
        wanted = [_number(text) for text in numbers]
        chosen = choose_active(options, cluster)
        terminal = options.terminal()
        is_changed = False
        for job, count in wanted:
            reply = chosen.scale(job, count, not is_plan, terminal.say)
            if "error" in reply:
                fail(ERROR, f"{chosen.name}: {reply['error']}")
            is_changed = is_changed or bool(reply.get("changes"))
            for line in lines_of(reply):
                if is_plan:
                    print(line)
                else:
                    terminal.say(f"    {line}")
        if is_plan:
            sys.exit(CHANGES_PENDING if is_changed else 0)
        if wait:
            _wait(options, chosen, list(chosen.load()[1]), Verb.START, timeout)

    @command(group, "exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
    @click.argument("task", shell_complete=complete_tasks)
    @click.argument("words", nargs=-1, required=True, metavar="[--] COMMAND...", type=click.UNPROCESSED)
    @names_cluster
    def execute(options: Options, task: str, words: tuple[str, ...], cluster: str | None) -> None:
        """Runs a command in the place of a task: on its host, in its folder, with its environment.

        For instance dtfctl exec worker:1 -- python -c 'import os; print(os.environ["TF_CONFIG"])'. The exit status is
        the command's.
        """
        from dtfctl.commands import exec_shell
        from dtfctl.commands.selection import choose_tasks

        chosen = choose_active(options, cluster)
        run, statuses = chosen.load()
        names = choose_tasks(list(statuses), [task])
        if len(names) > 1:
            fail(UNKNOWN, f"{task} matches several tasks; name one: {', '.join(names[:5])}")
        exec_shell.enter(run, statuses[names[0]], words[words[0] == "--" :])


def _meant(tasks: tuple[str, ...], is_all: bool) -> tuple[str, ...]:
    if bool(tasks) == is_all:
        raise click.UsageError("name tasks, or --all, not both" if tasks else "name tasks, or --all for all of them")
    return ("*",) if is_all else tasks


def _do(
    options: Options,
    verb: Verb,
    patterns: tuple[str, ...],
    given: str | None,
    is_plan: bool,
    wait: bool,
    timeout: float | None,
) -> None:
    from dtfctl.commands.selection import choose_tasks, in_short

    chosen = choose_active(options, given)
    run, statuses = chosen.load()
    names = choose_tasks(list(statuses), patterns)
    if is_plan:
        print_plan(run, statuses, verb, names)
    before = {name: statuses[name].generation for name in names}
    reply = chosen.on_tasks(verb, names, f"{_PARTICIPLES[verb]} by dtfctl {verb}")
    if "error" in reply:
        fail(ERROR, f"{chosen.name}: {reply['error']}")
    if reply["is"] == "ending":
        up = again(chosen.name, chosen.load()[0].plan.file)
        fail(NOT_RUNNING, f"{chosen.name} is stopping; start it again afterwards: {up}")
    for line in reply.get("costs", []):
        options.terminal().say(line)
    if not wait:
        options.terminal().say(f"{in_short(names)} will be {_PARTICIPLES[verb]}")
        return
    _wait(options, chosen, names, verb, timeout, before)
    options.terminal().say(f"{in_short(names)} {_RESULTS[verb]}")


def print_plan(run: Run, statuses: dict[str, TaskStatus], verb: Verb, names: list[str]) -> NoReturn:
    """What an action would do; the exit status says whether it would change anything."""
    from dtfctl.control import planned

    for line in planned.in_words(run, statuses, verb, names):
        print(line)
    sys.exit(CHANGES_PENDING if planned.changes(statuses, verb, names) else 0)


_PARTICIPLES = {Verb.RESTART: "restarted", Verb.STOP: "stopped", Verb.START: "started"}
_RESULTS = {Verb.RESTART: "restarted and ready", Verb.STOP: "stopped", Verb.START: "ready"}


def _wait(
    options: Options,
    chosen: Cluster,
    names: list[str],
    verb: Verb,
    timeout: float | None,
    before: dict[str, int] | None = None,
) -> None:
    """Until the tasks are as the command wants them. One that fails for good meanwhile ends the waiting."""
    import time

    from dtfctl import hints
    from dtfctl.show.attach import wait_for_tasks
    from dtfctl.values import state

    before = before or {}

    def is_done(run: Run, status: TaskStatus) -> bool:
        if verb == Verb.STOP:
            return status.state in state.ENDED
        is_new = verb != Verb.RESTART or status.generation > before[status.name]
        is_ready = status.ready and not status.renew
        return status.state == state.SUCCEEDED or (is_new and (is_ready or status.state in state.ENDED))

    terminal = options.terminal()
    deadline = None if timeout is None else time.monotonic() + timeout
    if not wait_for_tasks(chosen, names, is_done, deadline, terminal):
        fail(TIMED_OUT, f"not done within {timeout:g}s; it continues ({hints.command('status', chosen.name)})")
    run, statuses = chosen.load()
    failed = [name for name in names if name in statuses and statuses[name].state in state.UNFORGIVEN]
    if failed and verb != Verb.STOP:
        look = hints.command("logs", chosen.name, failed[0])
        fail(ERROR, f"{failed[0]} {statuses[failed[0]].reason} ({look})")
    if run.is_over and verb != Verb.STOP and not all(statuses[name].state == state.SUCCEEDED for name in names):
        fail(NOT_RUNNING, f"{chosen.name} ended in the meantime: {run.outcome} ({run.why})")


def _number(text: str) -> tuple[str, int]:
    job, equals, count = text.partition("=")
    if not equals or not count.isdecimal():
        raise click.UsageError(f"{text!r} must have the form JOB=NUMBER, such as worker=4")
    return job, int(count)
