"""`tf.test.create_local_cluster`: the servers of a cluster, all in this process."""

from __future__ import annotations

from typing import Any

from dtf.server import Server
from dtf.testing import ReservedPorts
from dtf.wire.cluster import ClusterSpec

__all__ = ["create_local_cluster"]


def create_local_cluster(
    num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: Any = None, ps_config: Any = None
) -> tuple[list[Server], list[Server]]:
    """Servers on free loopback ports.

        workers, ps = tf.test.create_local_cluster(num_workers=2, num_ps=1)
        sessions = [tf.Session(worker.target) for worker in workers]

    Args:
      worker_config, ps_config: a ConfigProto for the servers of the job.

    Returns:
      (the servers of the job "worker", the servers of the job "ps")
    """
    counts = {"worker": num_workers, "ps": num_ps}
    ports = ReservedPorts(num_workers + num_ps)
    numbers = iter(ports.numbers)
    spec = ClusterSpec({job: [f"127.0.0.1:{next(numbers)}" for _ in range(count)] for job, count in counts.items()})

    def started(job: str, config: Any) -> list[Server]:
        return [Server(spec, job, index, protocol=protocol, config=config) for index in range(counts[job])]

    try:
        return started("worker", worker_config), started("ps", ps_config)
    finally:
        ports.release()
