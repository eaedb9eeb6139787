"""tensorflow.python.eager.context: there are only graphs, and these say so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = [
    "ASYNC", "DEVICE_PLACEMENT_SILENT", "EAGER_MODE", "GRAPH_MODE", "SYNC", "anonymous_name", "context",
    "eager_mode", "executing_eagerly", "global_seed", "graph_mode", "in_eager_mode", "in_graph_mode", "num_gpus",
    "set_global_seed", "shared_name",
]  # fmt: skip

GRAPH_MODE = 0
EAGER_MODE = 1
SYNC = 0
ASYNC = 1
DEVICE_PLACEMENT_SILENT = 2


def executing_eagerly() -> bool:
    """False."""
    return False


def in_eager_mode() -> bool:
    """False."""
    return False


def in_graph_mode() -> bool:
    """True."""
    return True


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    """A block that changes nothing."""
    yield


def eager_mode() -> Any:
    """Raises, like every use of eager execution.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError("eager execution is not supported: build a graph and run it in a tf.Session")


class _Context:
    """The one context: of graphs."""

    summary_writer: Any = None
    scope_name = ""
    device_name = ""

    def executing_eagerly(self) -> bool:
        """False."""
        return False

    def num_gpus(self) -> int:
        """The number of GPUs of sessions in this process."""
        return num_gpus()

    def list_devices(self) -> list[str]:
        """No devices are used outside of sessions."""
        return []

    def ensure_initialized(self) -> None:
        """Does nothing."""

    def enable_run_metadata(self) -> None:
        """Does nothing: sessions have RunOptions."""

    def disable_run_metadata(self) -> None:
        """Does nothing."""

    def shared_name(self, name: str | None = None) -> str | None:
        """The name itself: names of graphs are shared."""
        return name


_the_context = _Context()


def context() -> _Context:
    """The one context."""
    return _the_context


def num_gpus() -> int:
    """The number of GPUs of sessions in this process."""
    from dtf.client.device_lib import list_local_devices

    return sum(device.device_type == "GPU" for device in list_local_devices())


def shared_name(name: str | None = None) -> str | None:
    """The name itself."""
    return name


def anonymous_name() -> str:
    """A name that resources of eager execution get."""
    return "cd2c89b7-88b7-44c8-ad83-06c2a9158347"


def global_seed() -> int | None:
    """The default graph's seed."""
    from dtf.build.default_graph import get_default_graph

    return get_default_graph().seed


def set_global_seed(seed: int) -> None:
    """Sets the default graph's seed."""
    from dtf.build.default_graph import get_default_graph

    get_default_graph().seed = seed
