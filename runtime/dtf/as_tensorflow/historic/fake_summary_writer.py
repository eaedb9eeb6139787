"""tensorflow.contrib.testing.python.framework.fake_summary_writer: a writer of summaries that keeps them in memory."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from dtf.wire.pb import summary_pb2

__all__ = ["FakeSummaryWriter"]


class FakeSummaryWriter:
    """A `tf.summary.FileWriter` without a file.

    Attributes:
      summaries: step -> its Summary messages.
    """

    _replaced: Any = None

    @classmethod
    def install(cls) -> None:
        """Makes hooks get such writers.

        Raises:
          ValueError: it is installed already.
        """
        if cls._replaced is not None:
            raise ValueError("FakeSummaryWriter already installed.")
        from dtf import summary

        writers: dict[str, FakeSummaryWriter] = {}
        cls._replaced = [
            mock.patch.object(summary, "FileWriter", cls),
            mock.patch.object(summary.FileWriterCache, "get", lambda logdir: writers.setdefault(logdir, cls(logdir))),
        ]
        for each in cls._replaced:
            each.start()

    @classmethod
    def uninstall(cls) -> None:
        """Gives hooks real writers again.

        Raises:
          ValueError: it is not installed.
        """
        if cls._replaced is None:
            raise ValueError("FakeSummaryWriter not installed.")
        for each in cls._replaced:
            each.stop()
        cls._replaced = None

    def __init__(self, logdir: str, graph: Any = None) -> None:
        self._logdir = logdir
        self._graph = graph
        self._summaries: dict[int, list[Any]] = {}
        self._added_graphs: list[Any] = []
        self._added_meta_graphs: list[Any] = []
        self._added_session_logs: list[Any] = []
        self._added_run_metadata: dict[str, Any] = {}

    @property
    def summaries(self) -> dict[int, list[Any]]:
        """Step -> its Summary messages."""
        return self._summaries

    def assert_summaries(
        self, test_case: Any, expected_logdir: str | None = None, expected_graph: Any = None,
        expected_summaries: Any = None, expected_added_graphs: Any = None, expected_added_meta_graphs: Any = None,
        expected_session_logs: Any = None,
    ) -> None:  # fmt: skip
        """Asserts what was written, for each argument that is given."""
        if expected_logdir is not None:
            test_case.assertEqual(expected_logdir, self._logdir)
        if expected_graph is not None:
            test_case.assertTrue(expected_graph is self._graph)
        for step, values in (expected_summaries or {}).items():
            test_case.assertIn(step, self._summaries)
            written = {each.tag: each.simple_value for message in self._summaries[step] for each in message.value}
            for tag, value in values.items():
                test_case.assertIn(tag, written)
                np.testing.assert_allclose(value, written[tag], rtol=0.1)
        for wanted, found in (
            (expected_added_graphs, self._added_graphs),
            (expected_added_meta_graphs, self._added_meta_graphs),
            (expected_session_logs, self._added_session_logs),
        ):
            if wanted is not None:
                test_case.assertEqual(wanted, found)

    def add_summary(self, summary: Any, current_global_step: int) -> None:
        """Keeps a Summary, a message or its bytes."""
        if isinstance(summary, bytes):
            summary = summary_pb2.Summary.FromString(summary)
        self._summaries.setdefault(current_global_step, []).append(summary)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Keeps a graph.

        Raises:
          ValueError: a step or a GraphDef is given.
        """
        if global_step is not None and global_step >= 0:
            raise ValueError("Expected no global_step.")
        if graph_def is not None:
            raise ValueError("Expected no graph_def.")
        self._added_graphs.append(graph)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Keeps a MetaGraphDef.

        Raises:
          ValueError: a step is given.
        """
        if global_step is not None and global_step >= 0:
            raise ValueError("Expected no global_step.")
        self._added_meta_graphs.append(meta_graph_def)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Keeps a SessionLog."""
        self._added_session_logs.append(session_log)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Keeps a step's metadata.

        Raises:
          ValueError: a negative step is given.
        """
        if global_step is not None and global_step < 0:
            raise ValueError("Expected a global_step of 0 or more.")
        self._added_run_metadata[tag] = run_metadata

    def flush(self) -> None:
        """Does nothing."""

    def reopen(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""
