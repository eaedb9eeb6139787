"""ClientGraph: the graph of one session as its client has told it so far.

Owns the nodes, functions and versions, the check of what is added, and what placing has to know of the whole graph.
Does not compile anything.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Mapping, Sequence

from dtf.run.passes import Nodes, NodesView
from dtf.run.passes.connect import connect
from dtf.run.passes.inline_functions import lower, with_plain_calls
from dtf.run.passes.place import Request, collect_requests
from dtf.run.passes.prune import prune
from dtf.run.passes.validate import validate
from dtf.wire import errors, opdef, versions
from dtf.wire.constant_sizes import check_repeated
from dtf.wire.node_checks import check_function
from dtf.wire.pb import function_pb2, graph_pb2, versions_pb2


class ClientGraph:
    """A graph that grows. The lock guards everything.

    Attributes:
      version: counts the extensions.
      library, versions: of the last graph that was added, functions of all.
    """

    def __init__(self, is_spread: bool = False) -> None:
        """An empty graph. `is_spread`: it may run on several tasks, bodies of functions too."""
        self.version = 0
        self._is_spread = is_spread
        self._functions: dict[str, function_pb2.FunctionDef] = {}
        self.library = function_pb2.FunctionDefLibrary()
        self.versions = versions_pb2.VersionDef()
        self._lock = threading.RLock()
        self._nodes: Nodes = {}
        self._requests: dict[str, Request] | None = None
        self._whole: Nodes = {}
        self._assigned: dict[str, str] = {}
        self._repeated_bytes = 0

    def extend(self, graph_def: graph_pb2.GraphDef, version: int) -> int:
        """Adds nodes if `version` is the current one; returns the new version.

        Raises:
          AbortedError: it is not.
          OpError: see `add`.
        """
        with self._lock:
            if version != self.version:
                raise errors.AbortedError.of(f"Current version is {self.version} but caller expected {version}.")
            self.add(graph_def)
            self.version += 1
            return self.version

    def add(self, graph_def: graph_pb2.GraphDef) -> None:
        """Adds nodes, and functions that are new; all or nothing.

        Raises:
          InvalidArgumentError, NotFoundError: what is added cannot be part of the graph (see `validate`).
          ResourceExhaustedError: its constants stand for more than `limits.REPEATED_BYTES` (see `check_repeated`).
        """
        with self._lock:
            versions.check_versions(graph_def.versions, versions.GRAPH, "GraphDef")
            functions = dict(self._functions)
            for function in graph_def.library.function:
                _check_function(function, functions)
                functions.setdefault(function.signature.name, function)
            nodes = with_plain_calls(graph_def.node, functions)
            validate(nodes, self._nodes)
            bodies = [f.node_def for f in graph_def.library.function if f.signature.name not in self._functions]
            repeated_bytes = check_repeated([nodes, *bodies], self._repeated_bytes)
            self._nodes.update((node.name, node) for node in nodes)
            self._add_functions(graph_def.library)
            self._repeated_bytes = repeated_bytes
            self.versions.CopyFrom(graph_def.versions)
            self._requests = None

    def needed(
        self,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str],
        connections: Iterable[tuple[str, str]] = (),
    ) -> tuple[Nodes, dict[str, Request]]:
        """(the nodes of a step, see `prune`; what every node of the graph asks for, see `collect_requests`)."""
        with self._lock:
            nodes = connect(self._nodes, connections, feeds) if connections else self._nodes
            needed = self._lowered(prune(nodes, feeds, fetches, targets), targets)
            if self._requests is None:
                self._whole = self._lowered(self._nodes)
                self._requests = collect_requests(self._whole, self._assigned)
            return needed, self._requests

    def whole(self) -> Nodes:
        """All nodes that `needed` has given requests for, as they were placed."""
        with self._lock:
            return self._whole

    def feeds_of(self, feeds: Sequence[str], fetch: str) -> frozenset[str]:
        """Which of the feeds a fetch needs."""
        with self._lock:
            needed = prune(self._nodes, feeds, [fetch], [])
        return frozenset(node.attr["tensor_name"].s.decode() for node in needed.values() if node.op == "_Recv")

    def assign(self, placed: Nodes) -> None:
        """Remembers where nodes are, for the steps to come."""
        with self._lock:
            self._assigned.update((name, node.device) for name, node in placed.items() if node.device)

    def _lowered(self, nodes: NodesView, targets: Container[str] | None = None) -> Nodes:
        """Without the calls whose bodies may be on several tasks. On one task calls stay: they are faster there."""
        return lower(nodes, self._functions, targets) if self._is_spread and self._functions else dict(nodes)

    def _add_functions(self, library: function_pb2.FunctionDefLibrary) -> None:
        self.library.function.extend(f for f in library.function if f.signature.name not in self._functions)
        self._functions = {function.signature.name: function for function in self.library.function}
        gradients = {gradient.function_name for gradient in self.library.gradient}
        self.library.gradient.extend(g for g in library.gradient if g.function_name not in gradients)


def _check_function(function: function_pb2.FunctionDef, known: Mapping[str, function_pb2.FunctionDef]) -> None:
    name = function.signature.name
    if name not in known:
        check_function(function)
        if opdef.exists(name):
            raise errors.InvalidArgumentError.of(
                f"Cannot add function '{name}' because an op with the same name already exists."
            )
    elif known[name] != function:
        raise errors.InvalidArgumentError.of(
            f"Cannot add function '{name}' because a different function with the same name already exists.",
        )
