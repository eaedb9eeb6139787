"""The machines: ssh to one of them, doctor for all that may be wrong here and there."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from dtfctl.commands.frame import ERROR, OK, UNKNOWN, Options, choose, command, fail, names_cluster, takes_files

if TYPE_CHECKING:
    from dtfctl.control.cluster import Cluster


def add_to(group: click.Group) -> None:
    @command(group, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
    @names_cluster
    @click.argument("host")
    @click.argument("words", nargs=-1, metavar="[--] [COMMAND]...", type=click.UNPROCESSED)
    def ssh(options: Options, cluster: str | None, host: str, words: tuple[str, ...]) -> None:
        """Logs in to a host of the cluster as dtfctl does, or runs a command there. HOST may also be a task."""
        from dtfctl.commands import exec_shell

        chosen = choose(options, cluster)
        run, statuses = chosen.load()
        hosts = {each.name: each for each in run.actual.hosts}
        found = run.task(host).host if host in statuses else hosts.get(host)
        if found is None:
            fail(UNKNOWN, f"no host is called {host} (hosts: {', '.join(hosts)})")
        if found.is_local:
            fail(ERROR, f"{found.name} is this machine")
        if found.probes_itself:
            fail(ERROR, f"{found.name} is no machine to log in to; exec runs a command in a task's pod")
        exec_shell.log_in(run.plan, found, words[words[:1] == ("--",) :])

    @command(group)
    @takes_files
    @click.option("-o", "--format", "style", type=click.Choice(["text", "json"]), default="text")
    def doctor(
        options: Options, file: str | None, more: tuple[str, ...], settings: tuple[str, ...], style: str
    ) -> None:
        """Finds problems of this machine, of the hosts of FILE, and of the leftovers of earlier runs.

        Changes nothing. Exits with 1 if a problem must be fixed before a cluster can run.
        """
        import json
        from pathlib import Path

        from dtfctl.checks import doctor as practice
        from dtfctl.commands.frame import read_files
        from dtfctl.control.cluster import CLUSTER_FILE, clusters
        from dtfctl.errors import ConfigError
        from dtfctl.storage.paths import state_root

        root = state_root(options.state_dir)
        earlier = practice.answered("earlier runs", practice.of_earlier_runs(clusters(root)))
        findings = [*practice.of_this_machine(root), *earlier]
        if file or more or Path(CLUSTER_FILE).is_file():
            try:
                read = read_files(file, more, settings)
                plan = read.plan()
            except ConfigError as error:
                findings.append(practice.Finding(practice.WRONG, "cluster file", str(error)))
            else:
                is_running = _is_running(clusters(root), plan.name)
                findings += practice.answered("cluster file", practice.of_plan(read, plan, root, is_running))
        if style == "json":
            print(json.dumps([vars(finding) for finding in findings], indent=2))
        else:
            print("\n".join(map(str, findings)))
        sys.exit(ERROR if any(finding.grade == practice.WRONG for finding in findings) else OK)


def _is_running(clusters: Iterable[Cluster], name: str) -> bool:
    """Whether that cluster runs, as far as its state can be read."""
    from dtfctl.errors import StoreError

    try:
        return any(each.name == name and each.is_active() for each in clusters)
    except StoreError:
        return False
