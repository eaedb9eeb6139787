"""RegisteredPartition: a partition of a compiled step that its task has taken.

Owns the value alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dtf.run.interfaces import Worker
from dtf.wire.pb import graph_pb2

__all__ = ["RegisteredPartition"]


class RegisteredPartition(NamedTuple):
    """A partition at its task: where it is, and which keys carry what of the client's tensors. `may_repeat`: its steps
    have identities and may be sent again, for durable tasks take part.
    """

    task: str
    address: str
    worker: Worker
    graph_handle: str
    feeds: Mapping[str, str]
    fetches: Mapping[str, str]
    graph_def: graph_pb2.GraphDef
    is_local: bool = False
    may_repeat: bool = False
