"""The checkpoints of a cluster: list, verify, prune, compact. dtf's own command does it; this finds the folder."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import NoReturn

import click

from dtfctl.commands.frame import ERROR, USAGE, Options, choose, command, complete_clusters, fail

VERBS = ("list", "verify", "prune", "compact")


def add_to(group: click.Group) -> None:
    @command(group)
    @click.argument("words", nargs=-1, metavar="[CLUSTER] [list|verify|prune|compact] [NAME]...", shell_complete=_words)
    @click.option("--folder", metavar="DIR", help="The folder, instead of a cluster's checkpoint_dir.")
    @click.option("--keep", type=click.IntRange(min=1), metavar="N", help="prune: the newest N stay (5).")
    @click.option(
        "--every-hours",
        type=click.FloatRange(min=0, min_open=True),
        metavar="H",
        help="prune: one for each H hours too.",
    )
    @click.option("--dry-run", is_flag=True, help="prune: remove nothing, only say.")
    @click.option("-o", "--format", "style", type=click.Choice(["table", "json"]), default="table")
    def checkpoints(
        options: Options,
        words: tuple[str, ...],
        folder: str | None,
        keep: int | None,
        every_hours: float | None,
        dry_run: bool,
        style: str,
    ) -> None:
        """Lists, verifies, prunes or compacts the checkpoints in a cluster's checkpoint_dir.

        \b
        list     step, time, size, state, and what is missing (the default)
        verify   reads all of them, or those named, and names each damaged tensor; exit status 1 if there is one
        prune    removes all but the newest --keep, damaged ones, and what killed saves have left
        compact  makes increments whole, so that they need no other checkpoint and TensorFlow reads them
        """
        verb_at = next((place for place, word in enumerate(words[:2]) if word in VERBS), None)
        before = words[:verb_at] if verb_at is not None else words
        verb, names = ("list", ()) if verb_at is None else (words[verb_at], words[verb_at + 1 :])
        if len(before) > 1:
            fail(USAGE, f'"{before[1]}" is none of {", ".join(VERBS)}')
        if names and verb not in ("verify", "compact"):
            fail(USAGE, f'{verb} takes no names of checkpoints: "{names[0]}"')
        if verb != "prune" and (keep is not None or every_hours is not None or dry_run):
            fail(USAGE, "--keep, --every-hours and --dry-run belong to prune")
        if folder is not None and before:
            fail(USAGE, f'either the cluster "{before[0]}" or --folder {folder}')
        if folder is None:
            folder = _folder(options, before[0] if before else None)
        flags = ["--json"] if style == "json" else []
        flags += ["--keep", str(keep)] if keep is not None else []
        flags += ["--every-hours", str(every_hours)] if every_hours is not None else []
        _become_dtf([folder, verb, *flags, *(["--dry-run"] if dry_run else []), *(["--", *names] if names else [])])


def _folder(options: Options, cluster: str | None) -> str:
    chosen = choose(options, cluster)
    run, _ = chosen.load()
    if not run.plan.checkpoint_folder:
        fail(ERROR, f"{chosen.name} has no checkpoint_dir on this machine; name its folder with --folder")
    return run.plan.checkpoint_folder


def _become_dtf(words: list[str]) -> NoReturn:
    from dtfctl.commands import exec_shell

    if importlib.util.find_spec("dtf") is None:
        fail(ERROR, "dtf, which reads checkpoints, is not installed here: pip install dtf")
    exec_shell.become((sys.executable, "-m", "dtf.checkpoints", *words), dict(os.environ))


def _words(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[object]:
    from click.shell_completion import CompletionItem

    given = context.params.get("words") or ()
    verbs = [CompletionItem(verb) for verb in VERBS if verb.startswith(incomplete) and not set(given) & set(VERBS)]
    return [*verbs, *([] if given else complete_clusters(context, parameter, incomplete))]
