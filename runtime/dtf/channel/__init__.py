"""The channel: requests between two dtf tasks, and between a dtf client and its master, over sockets of their own.

    endpoint     where a task's channel listens, as GetStatus tells it; the proof that both ends know its token
    lane         one socket: frames in, frames out, never a thread that waits in a write for a slow reader
    client       Channel: calls to one task
    listener     answers the calls of others
    shared_memory  large bodies between processes of one host: written once, read where they lie
    receive_buffers  memory for those that come by socket, used again
    idle         who keeps memory is asked to forget what nobody needs
    tls          what lanes over TCP are wrapped in where the cluster has certificates

The requests are those of TensorFlow's services, and this package does not look into them: bytes or buffers go in and
come out. gRPC is `rpc`, which also decides who uses which.

A connection is two sockets, one for small and one for large messages, so that a small one never waits behind megabytes.
Two sockets need no scheduling of chunks, and the kernel shares the way between them; a large body is one sendmsg from
the arrays' own memory, and one recv_into the buffer that the decoded arrays will view. Between processes of one host,
from the second large body of a connection on, it is one copy into shared memory instead, and a small message.
"""
