"""Cluster files: validate, config, expand, schema, init. Nothing is started."""

from __future__ import annotations

import click

from dtfctl.commands.frame import (
    ERROR,
    Options,
    command,
    fail,
    load_plan,
    read_files,
    takes_files,
    tell_troubles,
)


def add_to(group: click.Group) -> None:
    @command(group)
    @takes_files
    def validate(options: Options, file: str | None, more: tuple[str, ...], settings: tuple[str, ...]) -> None:
        """Checks a cluster file without starting anything: what it says, and whether this machine has what it names.

        What other machines lack is found by doctor, and by up.
        """
        from dtfctl import validation
        from dtfctl.client import Cluster
        from dtfctl.paths import ClusterPaths, state_root

        read = read_files(file, more, settings)
        plan, root = read.plan(), state_root(options.state_dir)
        has_ports = Cluster(ClusterPaths(root / plan.name)).is_active()
        tell_troubles(validation.troubles(read, plan, root, has_ports=has_ports), options.terminal().say)
        print(f"{plan.name}: {', '.join(f'{job.replicas} {job.name}' for job in plan.jobs)}")

    @command(group)
    @takes_files
    @click.option("-o", "--format", "style", type=click.Choice(["yaml", "json"]), default="yaml")
    def config(
        options: Options, file: str | None, more: tuple[str, ...], settings: tuple[str, ...], style: str
    ) -> None:
        """Prints the cluster file as it is understood: merged, variables and defaults filled in.

        It can be used as a cluster file in turn.
        """
        import json

        from dtfctl.config.resolved import document
        from dtfctl.config.source import write_yaml

        read = read_files(file, more, settings)
        read.plan()
        resolved = document(read.root, read.reader)
        print(json.dumps(resolved, indent=2) if style == "json" else write_yaml(resolved).rstrip())

    @command(group)
    @takes_files
    @click.option("-o", "--format", "style", type=click.Choice(["text", "json"]), default="text")
    def expand(
        options: Options, file: str | None, more: tuple[str, ...], settings: tuple[str, ...], style: str
    ) -> None:
        """Prints what the tasks of each host get: argv, TF_CONFIG, environment, limits.

        Ports chosen at `up` show as 0.
        """
        import json

        from dtfctl import expand as expansion
        from dtfctl import view

        plan = load_plan(file, more, settings)
        addresses = {
            task.name: f"{task.advertised_host}:{task.place.port}" for task in plan.tasks() if task.job.has_address
        }
        hosts = expansion.described(plan, addresses)
        print(json.dumps({"name": plan.name, "hosts": hosts}, indent=2) if style == "json" else view.expansion(hosts))

    @command(group)
    def schema(options: Options) -> None:
        """Prints the JSON schema of the cluster file, with which editors complete and check it."""
        import json

        from dtfctl.config.schema import json_schema

        print(json.dumps(json_schema(), indent=2))

    @command(group)
    @click.argument("file", required=False, metavar="[FILE]")
    def init(options: Options, file: str | None) -> None:
        """Writes a commented cluster file to start from (default: cluster.yaml). Never overwrites one."""
        from dtfctl import hints
        from dtfctl.client import CLUSTER_FILE
        from dtfctl.config import template

        path = file or CLUSTER_FILE
        try:
            with open(path, "x", encoding="utf-8") as new:
                new.write(template())
        except FileExistsError:
            fail(ERROR, f"{path} is there already; it is left as it is")
        check, up = hints.command("validate", path), hints.command("up", path, "--attach")
        options.terminal().say(f"{path} is written. Next: {check}; {up}")
