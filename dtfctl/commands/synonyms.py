"""The words of other tools, for fingers that know docker compose, kubectl or systemctl. What only looks works; of what
would change something the command of dtfctl is named instead."""

from __future__ import annotations

from typing import Any

import click

import dtfctl
from dtfctl.commands.frame import USAGE, Options, choose, command, complete_tasks, fail, names_cluster

INSTEAD = {
    "kill": "dtfctl stop TASK ends a task and keeps it down, dtfctl restart TASK gives it a new process, "
    "dtfctl down --timeout 0 kills the whole cluster at once",
    "delete": "dtfctl down ends a cluster, dtfctl down --purge deletes its state and logs too",
    "rm": "dtfctl down --purge deletes a cluster's state and logs",
    "apply": "dtfctl up starts a cluster, and brings a running one to what its file says; --plan shows the changes",
    "create": "dtfctl init writes a cluster file, dtfctl up starts its cluster",
    "run": "dtfctl up --attach starts a cluster and stays with it to its end",
    "submit": "dtfctl up starts the cluster; with `engine: slurm` it submits a job",
    "cancel": "dtfctl down ends a cluster, also one that waits in a queue",
    "pause": "dtfctl stop TASK keeps tasks down until dtfctl start TASK",
    "attach": "dtfctl up --attach stays with a cluster that runs already, too; dtfctl logs -f follows its logs",
    "rollout": "dtfctl up changes a running cluster, dtfctl restart JOB gives its tasks new processes",
}
"""Words that say what is meant."""


def add_to(group: click.Group) -> None:
    status, ls, events = (group.commands[name] for name in ("status", "ls", "events"))

    @command(group, "ps", hidden=True, add_help_option=False, context_settings=_ANY)
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def ps(options: Options, words: tuple[str, ...]) -> None:
        """As `dtfctl status`."""
        _invoke(status, words)

    @command(group, "get", hidden=True, add_help_option=False, context_settings=_ANY)
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def get(options: Options, words: tuple[str, ...]) -> None:
        """As `dtfctl status`, `ls` or `events`, by what follows."""
        kinds = {"clusters": ls, "cluster": ls, "runs": ls, "events": events, "event": events}
        kinds |= dict.fromkeys(("tasks", "task", "pods", "pod", "all", "status"), status)
        first = words[0] if words else ""
        found = kinds.get(first)
        _invoke(found or status, words[1:] if found is not None else words)

    @command(group, hidden=True)
    @click.argument("task", shell_complete=complete_tasks)
    @names_cluster
    def describe(options: Options, task: str, cluster: str | None) -> None:
        """All that is known of a task: its state, its address, what it runs, its events."""
        import shlex
        import time

        from dtfctl.commands.selection import choose_tasks
        from dtfctl.plan import expand
        from dtfctl.show import view
        from dtfctl.values.snapshot import take

        chosen = choose(options, cluster)
        run, statuses = chosen.load()
        names = choose_tasks(list(statuses), [task])
        snapshot = take(run, statuses, time.monotonic(), time.time())
        history = chosen.history(run)
        for document in view.document(snapshot)["tasks"]:
            if document["name"] not in names:
                continue
            name = document["name"]
            planned = run.task(name)
            shown = {**document, "command": shlex.join(expand.argv(run.plan, planned, run.addresses))}
            log = chosen.paths.log(run.number, name, statuses[name].generation)
            shown |= {"working_dir": planned.working_dir, "log": str(log)}
            print("\n".join(f"{key + ':':13}{'-' if value in (None, '') else value}" for key, value in shown.items()))
            print("events:")
            for happening in history:
                if happening.task == name:
                    print(f"  {view.event(happening, len(name), is_json=False)}")

    @command(group, hidden=True)
    def version(options: Options) -> None:
        """Prints the version."""
        print(f"dtfctl, version {dtfctl.__version__}")

    for word, instead in INSTEAD.items():
        _say_instead(group, word, instead)


_ANY: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


def _say_instead(group: click.Group, word: str, instead: str) -> None:
    @command(group, word, hidden=True, add_help_option=False, context_settings=_ANY)
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def refused(options: Options, words: tuple[str, ...]) -> None:
        fail(USAGE, f"dtfctl has no {word}: {instead}")


def _invoke(found: click.Command, words: tuple[str, ...]) -> None:
    """As if the command had been typed."""
    parent = click.get_current_context().parent
    with found.make_context(found.name, list(words), parent=parent) as context:
        found.invoke(context)
