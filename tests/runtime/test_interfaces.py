"""Local, in-process and remote twins must fulfil their Protocols, defaults included; mypy holds the types."""

from __future__ import annotations

import inspect

import pytest

from dtf.rpc.remote import RemoteMaster, RemoteWorker
from dtf.run import interfaces
from dtf.run.exchange.push_exchange import PushExchange
from dtf.run.exchange.rendezvous import StepRendezvous
from dtf.run.master.master import Master
from dtf.run.worker.worker import LocalWorker
from dtf.server import InProcessMaster

TWINS = [
    (interfaces.ServingMaster, Master),
    (interfaces.Master, InProcessMaster),
    (interfaces.Master, RemoteMaster),
    (interfaces.ServingWorker, LocalWorker),
    (interfaces.Worker, RemoteWorker),
    (interfaces.StepExchange, StepRendezvous),
    (interfaces.StepExchange, PushExchange),
]


def parameters(function):
    """(name, default) of each parameter but self."""
    signature = inspect.signature(function)
    return [(each.name, each.default) for each in signature.parameters.values() if each.name != "self"]


@pytest.mark.parametrize(("protocol", "twin"), TWINS, ids=lambda each: each.__name__)
def test_a_twin_has_the_methods_of_its_protocol(protocol, twin):
    if twin is InProcessMaster:
        twin = InProcessMaster(Master(None))
    for name, wanted in inspect.getmembers(protocol, inspect.isfunction):
        if not name.startswith("_"):
            assert parameters(getattr(twin, name)) == parameters(wanted), name
