"""Ports of a LocalCluster: reserved from the choice until the end, so that no other program takes one in between."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import dtf as tf
from dtf.testing import LocalCluster, ReservedPorts
from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]

BUSY = """
import pathlib, socket, struct
import dtf as tf
from dtf.testing import LocalCluster

pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40009")
cluster = LocalCluster({"ps": 1, "worker": 1}, start=False)
taken = []
with socket.create_server(("127.0.0.1", 50000), backlog=100) as listener:
    while True:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            client.connect(listener.getsockname())
        except OSError:
            break
        taken.append(client)
    cluster.start("ps")
    cluster.start("worker")
    print(len(taken), "connections have all other ports")
    for client in taken:
        client.close()
with cluster, tf.device("/job:ps"), tf.Session(cluster.target("worker")) as session:
    print(session.run(tf.constant(1) + 1))
"""


def test_outgoing_connections_leave_the_ports_of_a_cluster_that_is_not_started():
    """In a network of its own, connections use up all ports that the system gives to them."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("unshare and ip are not installed")
    program = ["sh", "-c", 'ip link set lo up && exec "$0" -c "$1"', sys.executable, BUSY]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "DTF_CHANNEL": "off"}
    done = subprocess.run(
        ["unshare", "--map-root-user", "--net", *program], env=environment, capture_output=True, text=True, timeout=120
    )
    if "unshare" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.stdout == "8 connections have all other ports\n2\n", done.stderr


@pytest.mark.parametrize("reserve", [free_ports, lambda count: ReservedPorts(count).numbers], ids=["tests", "dtf"])
def test_a_reserved_port_is_for_a_server_and_for_no_other_that_reserves(reserve):
    holder = ReservedPorts(2)
    for port in holder.numbers:
        with socket.socket() as stranger, pytest.raises(OSError):
            stranger.bind(("127.0.0.1", port))
        with tf.train.Server({"worker": [f"127.0.0.1:{port}"]}) as server, tf.Session(server.target) as session:
            assert session.run(tf.constant(1) + 1) == 2
    assert len({*holder.numbers, *reserve(3)}) == 5
    holder.release()
    for port in holder.numbers:
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stranger.bind(("127.0.0.1", port))


def test_the_port_of_a_stopped_task_stays_its_own_until_the_cluster_ends():
    with LocalCluster({"worker": 1}) as cluster:
        port = int(cluster.target("worker").rpartition(":")[2])
        cluster.stop("worker")
        with socket.socket() as stranger, pytest.raises(OSError):
            stranger.bind(("127.0.0.1", port))
        cluster.start("worker")
        with tf.Session(cluster.target("worker")) as session:
            assert session.run(tf.constant(1) + 1) == 2
