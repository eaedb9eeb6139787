"""One task of a benchmark cluster: `python -m tests.bench.task RUNTIME SPEC JOB INDEX PROGRAM [ARGUMENTS]`."""

from __future__ import annotations

import os
import sys

from tests.bench.cluster import load_runtime

DURABILITY = "DTF_BENCH_DURABILITY"
"""A folder: the ps of dtf are durable, and keep their state there."""


def main(runtime: str, spec: str, job: str, index: str, program: str, *arguments: str) -> None:
    tf = load_runtime(runtime)
    jobs = dict(part.split("=") for part in spec.split(";"))
    cluster = tf.train.ClusterSpec({name: hosts.split(",") for name, hosts in jobs.items()})
    config = tf.ConfigProto()
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    if job == "ps" and DURABILITY in os.environ:
        config.experimental.durability = "process"
        config.experimental.durability_folder = f"{os.environ[DURABILITY]}/ps-{index}"
    server = tf.train.Server(cluster, job_name=job, task_index=int(index), config=config)
    if program == "serve":
        server.join()
    else:
        from tests.bench import programs  # which a server has no use for

        programs.train(tf, server, cluster, int(index), program, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
