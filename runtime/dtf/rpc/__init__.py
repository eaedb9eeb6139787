"""gRPC: TensorFlow's standard protocol, client and server side.

    methods      the services' methods, independent of the transport
    service      serves a Master and a Worker on a port
    remote       RemoteMaster, RemoteWorker: the same two interfaces over a connection
    peers        the tasks of a cluster for a master and a worker
    discovery    a connection that switches to the faster channel if the other task is dtf
    connection   gRPC to one task: calls, deadlines, cancelling, and the errors of a lost connection
    status       errors as gRPC statuses and back
    messages     values inside requests and responses; large tensors bypass protobuf

Only this package imports grpc, and it is imported only when a server starts or a session has a remote target.
Protobuf messages do not leave this package: its interfaces take values and raise `errors.OpError`.
"""

import os

from dtf.wire import limits

# The caller gets an error for everything that gRPC would log (a lost peer, a refused connection).
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

MASTER_SERVICE = "tensorflow.MasterService"
WORKER_SERVICE = "tensorflow.WorkerService"

_GRPC_BYTES_MAX = (1 << 31) - 1


def message_options() -> list[tuple[str, int]]:
    """gRPC's options for the size of messages, sent ones unlimited, received ones bounded by `limits.MESSAGE_BYTES`.

    gRPC has no limit above 2 GB; beyond that the size is unlimited, as in TensorFlow. A compressed message could then
    expand to any size, so servers refuse compression; below it, gRPC bounds a message's size after decompression.
    """
    limit = limits.MESSAGE_BYTES.value
    options = [("grpc.max_send_message_length", -1)]
    if limit <= _GRPC_BYTES_MAX:
        return [*options, ("grpc.max_receive_message_length", limit)]
    only_identity = ("grpc.compression_enabled_algorithms_bitset", 1)
    return [*options, ("grpc.max_receive_message_length", -1), only_identity]
