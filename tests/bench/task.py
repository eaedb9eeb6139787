"""One task of a benchmark cluster: `python -m tests.bench.task RUNTIME SPEC JOB INDEX PROGRAM [ARGUMENTS]`."""

from __future__ import annotations

import json
import os
import sys

from tests.bench.cluster import load_runtime

DURABILITY = "DTF_BENCH_DURABILITY"
"""The ps of dtf are durable: [level, folder, places, place] as JSON."""


def main(runtime: str, spec: str, job: str, index: str, program: str, *arguments: str) -> None:
    tf = load_runtime(runtime)
    jobs = dict(part.split("=") for part in spec.split(";"))
    cluster = tf.train.ClusterSpec({name: hosts.split(",") for name, hosts in jobs.items()})
    config = tf.ConfigProto()
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    if job == "ps" and os.environ.get(DURABILITY):
        level, folder, places, place = json.loads(os.environ[DURABILITY])
        config.experimental.durability = level
        config.experimental.durability_folder = folder
        config.experimental.durability_places = places
        config.experimental.durability_place = place
    server = tf.train.Server(cluster, job_name=job, task_index=int(index), config=config)
    if program == "serve":
        server.join()
    else:
        from tests.bench import programs  # which a server has no use for

        programs.train(tf, server, cluster, int(index), program, *arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
