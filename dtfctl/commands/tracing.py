"""One step over all tasks: trace, explain. The training goes on as it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from dtfctl.commands.frame import ERROR, Duration, Options, choose_active, command, fail, takes_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtfctl.control.cluster import Cluster
    from dtfctl.trace.model import Trace

STEPS = 5
PAUSE = 2
"""So many runs at least between two traced ones are not traced. A task makes more of them, so that tracing costs it a
few percent of its time."""


def takes_steps(function: Any) -> Any:
    for decorate in (
        click.option("--timeout", type=Duration(), default=60.0, metavar="SECONDS", help="The longest wait for steps."),
        click.option(
            "--steps", type=click.IntRange(1, 100), default=STEPS, help=f"Steps of each worker to trace ({STEPS})."
        ),
    ):
        function = decorate(function)
    return function


def add_to(group: click.Group) -> None:
    @command(group)
    @takes_cluster
    @takes_steps
    @click.option("-o", "--output", metavar="FILE", help="The file to write (default: CLUSTER-trace.json; -: stdout).")
    def trace(options: Options, cluster: str | None, steps: int, timeout: float, output: str | None) -> None:
        """Traces a few steps of a running training over all tasks, and writes a file for ui.perfetto.dev.

        The program needs no change. The file shows each task's operations, the messages between tasks as arrows, what
        waits, and the critical path.
        """
        import json

        from dtfctl.trace.explain import explain
        from dtfctl.trace.perfetto import document

        chosen = choose_active(options, cluster)
        say = options.terminal().say
        found = traced(chosen, steps, timeout, say)
        text = json.dumps(document(found, explain(found)), separators=(",", ":"))
        if output == "-":
            print(text)
            return
        path = output or f"{chosen.name}-trace.json"
        write_whole(path, text)
        size = f"{os.stat(path).st_size / 1e6:.1f} MB"
        say(f"wrote {path} ({size}): {len(found.steps)} steps; open it at https://ui.perfetto.dev")

    @command(group, "explain")
    @takes_cluster
    @takes_steps
    @click.option("-i", "--input", "path", metavar="FILE", help="A file of `dtfctl trace`, in place of new steps.")
    @click.option("-o", "--format", "style", type=click.Choice(["text", "json"]), default="text")
    def explain_command(
        options: Options, cluster: str | None, steps: int, timeout: float, path: str | None, style: str
    ) -> None:
        """Says in numbers why a training's step takes as long as it does, and what to try.

        It traces a few steps, as `dtfctl trace` does, and follows each from its end to its start.
        """
        import json

        from dtfctl.trace.explain import explain, lines
        from dtfctl.trace.perfetto import explanation_document, explanation_of

        if path is None:
            found = traced(choose_active(options, cluster), steps, timeout, options.terminal().say)
            explanation = explain(found)
        else:
            explanation = explanation_of(_read(path))
        if style == "json":
            print(json.dumps(explanation_document(explanation), indent=2))
        else:
            print("\n".join(lines(explanation)))


def _read(path: str) -> Any:
    import json

    from dtfctl.wire.messages import BadMessage, value_of

    try:
        with open(path, "rb") as file:
            return value_of(file.read())
    except (BadMessage, json.JSONDecodeError) as error:
        fail(ERROR, f"{path}: not a file of dtfctl trace: {error}")


def traced(cluster: Cluster, steps: int, timeout_s: float, say: Callable[[str], None]) -> Trace:
    """Traces so many steps of each worker. Raises TraceImpossible."""
    import asyncio

    from dtfctl.commands.figures import client_tls
    from dtfctl.errors import TraceImpossible
    from dtfctl.metrics.gather import asked
    from dtfctl.probes.step_traces import Tracing
    from dtfctl.trace.documents import trace_of
    from dtfctl.values.plan import LOCALHOST

    run, statuses = cluster.load()
    addresses = asked(run, statuses)
    if not addresses:
        raise TraceImpossible(f"{cluster.name}: no task is ready that could be traced")
    hosts = {name: LOCALHOST if run.task(name).host.is_local else run.host_of(statuses[name]) for name in addresses}
    expected = [name for name in addresses if run.plan.job_decides(run.task(name))]
    tracing = Tracing(addresses, hosts, LOCALHOST, client_tls(cluster, run))

    async def both() -> Any:
        clocks = await tracing.clocks()
        return clocks, *await tracing.traces(steps, PAUSE, expected, timeout_s, say)

    clocks, answers, missing = asyncio.run(both())
    if not answers:
        if missing:
            why = f"{', '.join(missing)} made no step within {timeout_s:g}s"
        else:
            why = "no task runs sessions of dtf; only programs of dtf can be traced, once they train"
        raise TraceImpossible(f"{cluster.name}: {why}")
    helpers = [name for name in statuses if run.plan.has_task(name) and run.plan.task(name).job.stops_last]
    return trace_of(cluster.name, answers, clocks, missing, helpers)


def write_whole(path: str, text: str) -> None:
    """Writes a file so that it is complete or absent. Raises OSError.

    A device or a pipe, such as /dev/null, is written to: a rename would put a file in its place.
    """
    is_device = os.path.exists(path) and not os.path.isfile(path)
    aside = path if is_device else f"{path}.part"
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text)
    if not is_device:
        os.replace(aside, path)
