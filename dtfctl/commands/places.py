"""dtfctl promote: the backup of a durable parameter server serves from now on. It needs no supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dtfctl.commands.figures import client_tls
from dtfctl.commands.frame import ERROR, USAGE, Options, choose, command, complete_tasks, fail, names_cluster

if TYPE_CHECKING:
    from dtfctl.values.run import Run


def add_to(group: click.Group) -> None:
    @command(group)
    @click.argument("task", shell_complete=complete_tasks)
    @names_cluster
    @click.option(
        "--fenced",
        is_flag=True,
        help="No other process of the task lives, or can be reached by any client: you know that.",
    )
    def promote(options: Options, task: str, cluster: str | None, fenced: bool) -> None:
        """Makes the backup of a durable ps its primary: dtfctl promote ps:0.

        The training goes on at once, and nothing is lost. The former primary becomes the backup. With --fenced also a
        place that waits for another one serves from its state as it is: only if no other place has served since.
        """
        chosen = choose(options, cluster)
        run, _ = chosen.load()
        from dtfctl.plan.backups import other_place

        if not run.plan.has_task(task):
            fail(USAGE, f"no task is called {task} (tasks: {', '.join(each.name for each in run.plan.tasks())})")
        if not other_place(run.plan, task):
            fail(USAGE, f'{task} has no backup: that needs "durability: host"')
        import asyncio  # which slows the start of every command

        promoted, words = asyncio.run(_promote(run, task, fenced, client_tls(chosen, run)))
        if not promoted:
            fail(ERROR, words)
        print(words)


async def _promote(run: Run, task: str, is_fenced: bool, tls: object) -> tuple[str, str]:
    """(the name of the place that serves now, what to say), or ("", why none does)."""
    from dtfctl.plan.backups import other_place, peer_of
    from dtfctl.probes import places

    pair = (task, other_place(run.plan, task))
    states: dict[str, str] = {}
    for name in pair:
        address = run.addresses.get(peer_of(name), "")
        try:
            found = await places.ask(address, {"ask": "state"}, tls=tls)  # type: ignore[arg-type]
        except places.PlaceError as error:
            states[name] = str(error)
            continue
        states[name] = str(found)
        may = (found.role == "backup" and found.has_right) or (is_fenced and found.role in ("backup", "waiting"))
        if may:
            order = {"ask": "promote", "term": found.term, "fenced": is_fenced}
            try:
                after = await places.ask(address, order, places.ORDER_S, tls)  # type: ignore[arg-type]
            except places.PlaceError as error:
                states[name] = str(error)
                continue
            return name, f"{name} serves: {after}"
    described = "; ".join(f"{name}: {words}" for name, words in states.items())
    return "", f"no place of {task} can be promoted: {described}"
