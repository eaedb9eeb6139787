"""A server without descriptors must wait for them without computing, and serve again when there are some."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os, resource, socket, threading, time
import dtf as tf
from dtf.testing import LocalCluster

with LocalCluster({"worker": 1}) as cluster:
    server = cluster.servers["worker", 0]
    port = server._service._listener.endpoint.port
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    waiting = [socket.socket() for _ in range(3)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for each in waiting:
        each.connect(("127.0.0.1", port))
    thread = next(each for each in threading.enumerate() if each.name == "dtf-channel-accept")
    def used():
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    before = used()
    time.sleep(2)
    spun = used() - before
    for each in taken:
        os.close(each)
    for each in waiting:
        each.close()
    with tf.Graph().as_default(), tf.Session(server.target, config=tf.ConfigProto(
        rpc_options=dict(use_rpc_for_inprocess_master=True)
    )) as session:
        x = tf.constant(1.0) + 1.0
        for _ in range(1000):
            assert session.run(x) == 2.0
            if session._master._connection.channel is not None:
                break
            time.sleep(0.05)
        else:
            raise AssertionError("no channel")
    print(spun)
"""


def test_a_server_without_descriptors_does_not_spin_and_recovers():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.0, "the thread that accepts connections spins"
    assert done.stderr.count("cannot accept connections") <= 10, done.stderr
