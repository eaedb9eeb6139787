"""Cluster files: validate, config, expand, schema, init. Nothing is started."""

from __future__ import annotations

import click

from dtfctl.commands.frame import (
    ERROR,
    Options,
    command,
    fail,
    read_files,
    takes_files,
    tell_troubles,
)

_MODULES_MAX = 50
_MODULE_BYTES_MAX = 1 << 20
ENGINE_TEXTS = ["slurm", "kubernetes", "jobset", "tfjob", "supervisor", "containerfile"]


def add_to(group: click.Group) -> None:
    @command(group)
    @takes_files
    def validate(options: Options, file: str | None, more: tuple[str, ...], settings: tuple[str, ...]) -> None:
        """Checks a cluster file, and that this machine has the programs and folders that it names. Starts nothing.

        `dtfctl doctor` and `dtfctl up` check the other machines.
        """
        from dtfctl.checks import validation
        from dtfctl.control.cluster import Cluster
        from dtfctl.storage.paths import ClusterPaths, state_root

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
        """Prints the cluster file with its files merged, and with variables and defaults filled in.

        The output is a cluster file too.
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
    @click.option("--as", "target", type=click.Choice(ENGINE_TEXTS), help="Print what an engine of clusters takes.")
    @click.option("--to", "folder", type=click.Path(), help="With --as: write manifests and a Containerfile there.")
    @click.option("--with-secrets", is_flag=True, help="With --as: include the Secret, with the values in it.")
    def expand(
        options: Options,
        file: str | None,
        more: tuple[str, ...],
        settings: tuple[str, ...],
        style: str,
        target: str | None,
        folder: str | None,
        with_secrets: bool,
    ) -> None:
        """Prints what the tasks of each host get: argv, TF_CONFIG, environment, limits.

        Ports chosen at `up` show as 0. --as prints a batch script of Slurm, objects of Kubernetes (supervisor:
        dtfctl itself there), or a Containerfile.
        """
        import json

        from dtfctl.plan import expand as expansion
        from dtfctl.show import view

        if target in ENGINE_TEXTS[1:]:
            from dtfctl.commands.manifests import write

            write(options, read_files(file, more, settings), target, folder, with_secrets, (file, more, settings))
            return
        read = read_files(file, more, settings)
        plan = read.plan()
        if target == "slurm":
            from dtfctl.commands.lifecycle import batch_script
            from dtfctl.storage.paths import state_root

            print(batch_script(read, plan, state_root(options.state_dir), file, more, settings, None), end="")
            return
        addresses = {
            task.name: f"{task.advertised_host}:{task.place.port}" for task in plan.tasks() if task.job.has_address
        }
        hosts = expansion.described(plan, addresses)
        print(json.dumps({"name": plan.name, "hosts": hosts}, indent=2) if style == "json" else view.expansion(hosts))

    @command(group)
    def schema(options: Options) -> None:
        """Prints the JSON schema of the cluster file. Editors use it to complete and check the file."""
        import json

        from dtfctl.config.schema import json_schema

        print(json.dumps(json_schema(), indent=2))

    @command(group)
    @click.argument("file", required=False, metavar="[TRAINER.py]")
    @click.argument("other", required=False, metavar="[FILE]")
    def init(options: Options, file: str | None, other: str | None) -> None:
        """Writes a commented cluster file (default: cluster.yaml) and a trainer.py that works. Never overwrites one.

        For a Python program that exists it reads the program's flags, without running it, and writes a file for them.
        """
        import os

        from dtfctl import hints
        from dtfctl.config import template
        from dtfctl.control.cluster import CLUSTER_FILE

        trainer = file if file and file.endswith(".py") else None
        path = (other if trainer else file) or CLUSTER_FILE
        is_new_trainer = bool(trainer) and not os.path.exists(trainer or "")
        text = template() if trainer is None or is_new_trainer else _fitting(trainer, path)
        if is_new_trainer:
            text = text.replace("trainer.py", os.path.relpath(trainer or "", os.path.dirname(os.path.abspath(path))))
        try:
            with open(path, "x", encoding="utf-8") as new:
                new.write(text)
        except FileExistsError:
            fail(ERROR, f"{path} exists already; it is not changed")
        check, up = hints.command("validate", path), hints.command("up", path, "--attach")
        beside = trainer if is_new_trainer else os.path.join(os.path.dirname(path), "trainer.py")
        if beside and (trainer is None or is_new_trainer) and _write_trainer(beside):
            options.terminal().say(f"wrote {beside}, a training to start from")
        options.terminal().say(f"wrote {path}. Next: {check}; {up}")


def _write_trainer(path: str) -> bool:
    """Whether the program of the template was written: not where there is one already."""
    from dtfctl.config import trainer_template

    try:
        with open(path, "x", encoding="utf-8") as new:
            new.write(trainer_template())
    except FileExistsError:
        return False
    return True


def _fitting(trainer: str, path: str) -> str:
    """The text of a cluster file at `path` for a program."""
    import os
    import stat
    import tokenize

    from dtfctl.checks.trainer_flags import cluster_file, flags_of

    try:
        status = os.stat(trainer)
        # A pipe, or a file that is all hole, would keep its reader for ever.
        if not stat.S_ISDIR(status.st_mode) and not (stat.S_ISREG(status.st_mode) and status.st_size <= 16 << 20):
            fail(ERROR, f"{trainer}: not a file of at most 16 MB")
        with tokenize.open(trainer) as file:
            source = file.read()
        found = flags_of(source, *_own_modules(trainer, source))
    except OSError as error:
        fail(ERROR, f"{trainer}: {error.strerror}")
    except (RecursionError, MemoryError):  # the parser's own stack
        fail(ERROR, f"{trainer}: an expression is nested too deeply to be read")
    except LookupError as error:
        fail(ERROR, f"{trainer}: {error}")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        advice = f"python -m dtf.check {trainer} says how to fix it"
        fail(ERROR, f"{trainer}:{line}: {getattr(error, 'msg', error)}; {advice}")
    return cluster_file(os.path.relpath(trainer, os.path.dirname(os.path.abspath(path))), found)


def _own_modules(trainer: str, source: str) -> list[str]:
    """The texts of modules beside a program that it imports, also by others. What cannot be read is skipped."""
    import os
    import tokenize

    from dtfctl.checks.definitions import definitions_of

    folder = os.path.dirname(os.path.abspath(trainer))
    texts: dict[str, str] = {}
    waiting = definitions_of(source).imports
    while waiting and len(texts) < _MODULES_MAX:
        stem = os.path.join(folder, *waiting.pop(0).split("."))
        for path in (f"{stem}.py", os.path.join(stem, "__init__.py")):
            if path in texts or not os.path.isfile(path) or os.path.getsize(path) > _MODULE_BYTES_MAX:
                continue
            try:
                with tokenize.open(path) as file:
                    text = file.read()
                waiting += definitions_of(text).imports
            except (OSError, SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
                continue
            texts[path] = text
    return list(texts.values())
