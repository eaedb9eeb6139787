"""The channel: requests between two dtf tasks, and between a dtf client and its master, over sockets of their own.

    endpoint         the address in GetStatus's answer, and the proof that both ends know its token
    lane             one socket: sends and receives frames, and never blocks on a slow reader
    client           Channel: calls to one task
    listener         answers calls
    reactor          one thread that reads all connections of the process
    spin_wait        how long a reader polls before it sleeps
    shared_memory    large bodies between processes of one host: written once, read in place
    receive_buffers  buffers for large bodies that arrive by socket, used again
    cache_reaper     frees cached memory that has been idle for a while
    tls              encrypts lanes over TCP if the cluster has certificates

Requests have the form of TensorFlow's services. This package treats them as opaque bytes or buffers. `rpc` is the gRPC
transport and chooses between the two.

A connection is two sockets, one for small and one for large messages, so that a small one never waits behind megabytes.
With two sockets, large bodies need no scheduling in chunks: the kernel shares the bandwidth. A large body is one
sendmsg from the arrays' own memory, and one recv_into a buffer that the decoded arrays view. Between processes of one
host, from a connection's second large body on, a body is instead one copy into shared memory plus a small message.
"""
