"""Figures of clusters for programs and people: metrics. Nothing changes by it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from dtfctl.commands.frame import Options, choose, command, takes_cluster

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from dtfctl.control.cluster import Cluster
    from dtfctl.launchers.usage import Usage
    from dtfctl.values.run import Run


def add_to(group: click.Group) -> None:
    @command(group)
    @takes_cluster
    def metrics(options: Options, cluster: str | None) -> None:
        """Prints the figures of a cluster once, as Prometheus reads them (OpenMetrics).

        `metrics: 127.0.0.1:9464` in the cluster file gives the same at http://127.0.0.1:9464/metrics.
        """
        import asyncio

        from dtfctl.metrics.families import exposition
        from dtfctl.metrics.gather import Gatherer

        chosen = choose(options, cluster)
        run, statuses = chosen.load()

        async def elsewhere() -> Mapping[str, Usage]:
            return await asyncio.to_thread(usages_elsewhere, chosen)

        gatherer = Gatherer(chosen.history, elsewhere, client_tls(chosen, run))
        text, _ = exposition(asyncio.run(gatherer.look(run, statuses)), accept="application/openmetrics-text")
        sys.stdout.write(text.decode())


def client_tls(cluster: Cluster, run: Run) -> ssl.SSLContext | None:
    """What this process shows to the tasks of a running cluster with security: tls."""
    from dtfctl.storage.certificates import Certificates
    from dtfctl.values.plan import TLS

    if run.plan.security != TLS or run.is_over:
        return None
    return Certificates(cluster.paths.tls(run.number)).client_context()


def usages_elsewhere(cluster: Cluster) -> dict[str, Usage]:
    """What the tasks on other machines take, as the supervisor knows."""
    from dtfctl.launchers.usage import Usage

    return {
        name: Usage(**{key: value for key, value in values.items() if key != "at"})
        for name, values in cluster.usages().items()
    }
