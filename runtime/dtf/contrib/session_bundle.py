"""tf.contrib.session_bundle: its exporter came before SavedModel, and is not supported."""

from __future__ import annotations

from typing import Any

__all__ = ["Exporter"]


class Exporter:
    """Refuses: models are exported with tf.saved_model.simple_save.

    Raises:
      NotImplementedError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("session_bundle is not supported: export with tf.saved_model.simple_save")


exporter = Exporter
