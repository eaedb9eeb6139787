"""How a parameter server learns that training is over.

When a replica has trained, it puts its number into a queue of each ps. A ps that has the numbers of all replicas ends
its process with status 0. A restarted replica puts its number again; a failed one never does. So a ps outlives both;
otherwise it ends like any server, with SIGTERM.
"""

from __future__ import annotations

import threading
from typing import Any

from dtf import logging
from dtf.build.default_graph import device
from dtf.build.graph import Graph
from dtf.build.ops.data_flow import FIFOQueue
from dtf.estimator.run_config import RunConfig
from dtf.server import Server
from dtf.session import Session
from dtf.wire import dtypes, errors
from dtf.wire.pb import config_pb2

_QUEUE = "dtf_estimator_replicas_that_are_done"
_TELL_TIMEOUT_MS = 10_000
_CAPACITY = 10_000


def serve_until_all_are_done(server: Server, config: RunConfig) -> None:
    """Serves until all replicas have reported that they are done, or the server is stopped.

    In the main thread it ends the process then. In TensorFlow a ps serves for ever, so in existing programs only
    training tasks run the code after the training.

    Raises:
      SystemExit: with status 0, in the main thread.
    """

    def wait() -> None:
        try:
            with Graph().as_default(), Session(server.target, config=_only(config.task_id)) as session:
                next_replica = _queue(config.task_id).dequeue()
                done: set[int] = set()
                while len(done) < config.num_worker_replicas:
                    done.add(int(session.run(next_replica)))
            logging.info("All %d replicas are done: this ps ends.", len(done))
        except errors.OpError as error:
            if not isinstance(error, errors.CancelledError | errors.AbortedError | errors.UnavailableError):
                raise
            return  # the server has been stopped
        server.stop()

    threading.Thread(target=wait, name="ps-end", daemon=True).start()
    server.join()
    if threading.current_thread() is threading.main_thread():
        raise SystemExit(0)


def tell_parameter_servers(config: RunConfig) -> None:
    """Tells each ps that this replica is done. One that does not answer is passed over."""
    for task in range(config.num_ps_replicas):
        options = config_pb2.RunOptions(timeout_in_ms=_TELL_TIMEOUT_MS)
        try:
            with Graph().as_default():
                tell = _queue(task).enqueue([config.global_id_in_cluster])
                with Session(config.master, config=_only(task)) as session:
                    session.run(tell, options=options)
        except errors.OpError as error:
            logging.info("ps %d could not be informed that training is over: %s", task, error.message)


def _queue(task: int) -> Any:
    with device(f"/job:ps/task:{task}"):
        return FIFOQueue(_CAPACITY, [dtypes.int64], shapes=[[]], shared_name=_QUEUE)


def _only(task: int) -> Any:
    return config_pb2.ConfigProto(device_filters=[f"/job:ps/task:{task}"])
