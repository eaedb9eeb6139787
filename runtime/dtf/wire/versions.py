"""Who may read a graph or a checkpoint: what its writer asks of its readers, compared with what this reader is.

Source: https://www.tensorflow.org/guide/versions ("Data versioning for graphs and checkpoints")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtf.wire import errors

if TYPE_CHECKING:
    from dtf.wire.pb import versions_pb2

__all__ = ["CHECKPOINT", "GRAPH", "check_versions"]

GRAPH = 2474
"""The version of graphs up to which this package reads: TensorFlow 2.21's."""

CHECKPOINT = 1

_RELEASE = "2.21"


def check_versions(versions: versions_pb2.VersionDef, consumer: int, what: str) -> None:
    """Compares a message's versions with those of its reader.

    Args:
      consumer: the reader's version: GRAPH or CHECKPOINT.
      what: names the message in errors.

    Raises:
      InvalidArgumentError: the writer was too old, or wants a newer reader, or excludes this one by name.
    """
    if versions.min_consumer > consumer:
        message = f"{what} min consumer version {versions.min_consumer} above current version {consumer}"
        raise errors.InvalidArgumentError.of(f"{message} for TensorFlow {_RELEASE}.  Please upgrade TensorFlow.")
    if versions.producer < 0:
        message = f"{what} producer version {versions.producer} below min producer 0"
        raise errors.InvalidArgumentError.of(
            f"{message} supported by TensorFlow {_RELEASE}.  Please regenerate your graph."
        )
    if consumer in versions.bad_consumers:
        raise errors.InvalidArgumentError.of(
            f"{what} disallows consumer version {consumer}.  Please upgrade TensorFlow: this version is likely buggy."
        )
