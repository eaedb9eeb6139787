"""gRPC: TensorFlow's standard protocol, from both ends; and who uses the channel instead.

    methods      what the services' requests mean, whatever carries them
    service      serves a Master and a Worker on a port
    remote       RemoteMaster, RemoteWorker: the same two interfaces over a connection
    peers        the tasks of a cluster as a master and a worker see them
    discovery    a connection that moves to the faster channel when the other task is dtf
    connection   gRPC to one task: calls, deadlines, cancelling, and what it means when nobody answers
    status       errors as gRPC statuses and back
    messages     values inside requests and responses, without protobuf on large tensors

Only this package imports grpc, and it is imported only when a server starts or a session has a remote target.
Protobuf messages stop here: behind it are values and `errors.OpError`.
"""

import os

from dtf.wire import limits

# What gRPC logs of itself (a peer that goes away, a connection that is refused) reaches the caller as an error.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

MASTER_SERVICE = "tensorflow.MasterService"
WORKER_SERVICE = "tensorflow.WorkerService"

_GRPC_BYTES_MAX = (1 << 31) - 1


def message_options() -> list[tuple[str, int]]:
    """gRPC's options for the size of messages, sent ones unlimited, received ones bounded by `limits.MESSAGE_BYTES`.

    gRPC knows no limit above 2 GB: beyond it there is none, as in TensorFlow. A compressed message could then stand for
    any size, so servers refuse compression; below it, gRPC bounds what a message is after decompression.
    """
    limit = limits.MESSAGE_BYTES.value
    options = [("grpc.max_send_message_length", -1)]
    if limit <= _GRPC_BYTES_MAX:
        return [*options, ("grpc.max_receive_message_length", limit)]
    only_identity = ("grpc.compression_enabled_algorithms_bitset", 1)
    return [*options, ("grpc.max_receive_message_length", -1), only_identity]
